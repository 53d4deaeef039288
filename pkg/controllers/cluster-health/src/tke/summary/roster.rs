//! [`Roster`]: the Nodes of one cluster, found by what a Machine says of itself. Pure.

use std::collections::HashMap;
use std::net::IpAddr;

use super::node::Node;
use crate::api::tke::MachineInfo;

/// Says on which machine a Node is whose name and addresses are others.
const LABEL: &str = "platform.tkestack.io/machine-ip";

/// The Nodes of one list.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    entries: Vec<Entry>,
    by_name: HashMap<Box<str>, usize>,
    by_address: HashMap<Box<str>, usize>,
    by_label: HashMap<Box<str>, usize>,
}

/// What a Machine is told of its Node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Box<str>,
    pub(crate) ready: bool,
    /// Why it is not ready, as one word; empty when it does not say.
    pub(crate) reason: Box<str>,
    pub(crate) info: Option<MachineInfo>,
}

impl Roster {
    pub(super) fn add(&mut self, node: Node) {
        let (metadata, status) = (node.metadata, node.status);
        let (ready, reason, place) =
            (status.is_ready(), status.reason().into(), self.entries.len());
        for address in status.addresses.into_iter().flatten() {
            if &*address.kind == "InternalIP" {
                self.by_address.entry(canonical(&address.address)).or_insert(place);
            }
        }
        if let Some(machine) = metadata.labels.and_then(|mut labels| labels.remove(LABEL)) {
            self.by_label.entry(canonical(&machine)).or_insert(place);
        }
        self.by_name.entry(metadata.name.clone()).or_insert(place);
        self.entries.push(Entry { name: metadata.name, ready, reason, info: status.node_info });
    }

    /// The Node on the machine with this address: the one of that name, else of that `InternalIP`,
    /// else with that label; of several that fit alike the first one of the list.
    pub(crate) fn find(&self, ip: &str) -> Option<&Entry> {
        let address = canonical(ip);
        let place = self
            .by_name
            .get(ip.trim())
            .or_else(|| self.by_address.get(&address))
            .or_else(|| self.by_label.get(&address))?;
        self.entries.get(*place).filter(|_| !address.is_empty())
    }
}

/// One spelling for each address.
fn canonical(text: &str) -> Box<str> {
    let text = text.trim();
    text.parse::<IpAddr>().map_or_else(|_| text.into(), |ip| ip.to_canonical().to_string().into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn roster(nodes: &[Value]) -> Roster {
        let mut roster = Roster::default();
        for node in nodes {
            roster.add(serde_json::from_value(node.clone()).unwrap());
        }
        roster
    }

    fn node(name: &str, addresses: &[(&str, &str)], label: Option<&str>) -> Value {
        let addresses: Vec<_> = addresses
            .iter()
            .map(|(kind, address)| json!({"type": kind, "address": address}))
            .collect();
        let labels = label.map(|label| json!({ LABEL: label }));
        json!({"metadata": {"name": name, "labels": labels}, "status": {"addresses": addresses}})
    }

    #[test]
    fn a_machine_is_found_by_name_then_internal_ip_then_label() {
        let nodes = [
            node("a", &[("InternalIP", "10.0.0.1"), ("ExternalIP", "1.1.1.1")], None),
            node("10.0.0.1", &[("InternalIP", "10.0.0.9")], None),
            node("b", &[("Hostname", "10.0.0.3"), ("InternalIP", "10.0.0.2")], Some("10.0.0.3")),
            node("c", &[("InternalIP", "fd00:0::5")], Some("10.0.0.2")),
            node("d", &[("InternalIP", "10.0.0.2")], None),
            node("e", &[("InternalIP", "")], None),
        ];
        let roster = roster(&nodes);
        let rows = [
            ("10.0.0.1", Some("10.0.0.1")),
            (" 10.0.0.1 ", Some("10.0.0.1")),
            ("10.0.0.9", Some("10.0.0.1")),
            ("10.0.0.2", Some("b")),
            ("10.0.0.3", Some("b")),
            ("fd00::5", Some("c")),
            ("::ffff:10.0.0.9", Some("10.0.0.1")),
            ("1.1.1.1", None),
            ("10.0.0.4", None),
            ("", None),
        ];
        for (ip, expected) in rows {
            assert_eq!(roster.find(ip).map(|entry| &*entry.name), expected, "{ip:?}");
        }
    }

    #[test]
    fn only_an_explicit_word_makes_a_node_ready() {
        let conditions = |conditions: Value| {
            roster(&[json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}})])
        };
        let rows = [
            (json!(null), false, ""),
            (json!([]), false, ""),
            (
                json!([{"type": "Ready", "status": "True", "reason": "KubeletReady"}]),
                true,
                "KubeletReady",
            ),
            (
                json!([{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]),
                false,
                "NodeStatusUnknown",
            ),
            (json!([{"type": "DiskPressure", "status": "True"}]), false, ""),
        ];
        for (given, ready, reason) in rows {
            let roster = conditions(given.clone());
            let entry = roster.find("n").unwrap();
            assert_eq!((entry.ready, &*entry.reason), (ready, reason), "{given}");
        }
    }
}
