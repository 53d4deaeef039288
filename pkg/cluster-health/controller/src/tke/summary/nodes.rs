//! Nodes of a member cluster: [`NodeTotals`], what they add up to, and the [`Roster`], which finds the
//! Node of a Machine by what the Machine says of itself. Pure.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use kube_api::quantity::Resources;
use serde::Deserialize;

use crate::api::tke::{MachineInfo, NodeCounts, cut};
use crate::paging::{Abort, Collect};

/// The resources of all Nodes, and their number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeTotals {
    pub(crate) capacity: Resources,
    pub(crate) allocatable: Resources,
    pub(crate) counts: NodeCounts,
    /// Rounded down Node by Node.
    pub(crate) cores: i64,
}

/// The fields of a Node that are needed.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct Node {
    pub(super) metadata: Metadata,
    spec: Spec,
    pub(super) status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) name: Box<str>,
    pub(super) labels: Option<HashMap<Box<str>, Box<str>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    unschedulable: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    capacity: Option<Resources>,
    allocatable: Option<Resources>,
    conditions: Option<Vec<Condition>>,
    pub(super) addresses: Option<Vec<Address>>,
    pub(super) node_info: Option<MachineInfo>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
    #[serde(default)]
    reason: Option<Box<str>>,
}

#[derive(Deserialize)]
pub(super) struct Address {
    #[serde(rename = "type")]
    pub(super) kind: Box<str>,
    pub(super) address: Box<str>,
}

impl Status {
    fn ready(&self) -> Option<&Condition> {
        self.conditions.iter().flatten().find(|condition| &*condition.kind == "Ready")
    }

    /// Whether the Node has the condition Ready=True; a Node whose kubelet never reported is not ready.
    pub(super) fn is_ready(&self) -> bool {
        self.ready().is_some_and(|condition| &*condition.status == "True")
    }

    /// Why it is not ready, as one word of its kubelet or of the node lifecycle controller.
    pub(super) fn reason(&self) -> &str {
        self.ready().and_then(|condition| condition.reason.as_deref()).unwrap_or_default()
    }
}

impl NodeTotals {
    pub(super) fn count(&mut self, node: &Node) {
        let Node { spec, status, .. } = node;
        let ready = status.is_ready();
        self.counts.total += 1;
        self.counts.ready += i64::from(ready);
        self.counts.schedulable += i64::from(ready && !spec.unschedulable);
        let cores = status.capacity.as_ref().map_or(0, |own| own.get("cpu").as_milli() / 1000);
        self.cores = self.cores.saturating_add(i64::try_from(cores.max(0)).unwrap_or(i64::MAX));
        for (sum, own) in
            [(&mut self.capacity, &status.capacity), (&mut self.allocatable, &status.allocatable)]
        {
            if let Some(own) = own {
                add_published(sum, own);
            }
        }
    }
}

/// One list of Nodes: their totals, and the machine of each.
#[derive(Debug)]
pub(crate) struct NodeList {
    pub(crate) totals: NodeTotals,
    pub(crate) roster: Roster,
}

impl Collect for NodeList {
    type Item = Node;

    fn add(&mut self, node: Node) -> Result<(), Abort> {
        self.totals.count(&node);
        self.roster.add(node);
        Ok(())
    }
}

/// Says on which machine a Node is whose name and addresses are others.
const LABEL: &str = "platform.tkestack.io/machine-ip";

/// The Nodes of one list that belong to Machines; all others are dropped as they come
/// (`rule:lists-of-members-are-bounded`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Roster {
    /// The addresses of Machines; each may be the name, the address or the label of a Node.
    wanted: HashSet<Box<str>>,
    entries: Vec<MachineNode>,
    /// How the Node of a Machine was found, and its place in `entries`; the least of several.
    places: HashMap<Box<str>, (FoundBy, usize)>,
}

/// How a Node is known to be on a machine, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FoundBy {
    Name,
    InternalIp,
    Label,
}

/// The Node of a Machine, by one list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineNode {
    pub(crate) name: Box<str>,
    pub(crate) ready: bool,
    /// Why it is not ready, as one word; empty when it does not say.
    pub(crate) reason: Box<str>,
    pub(crate) info: Option<MachineInfo>,
}

impl Roster {
    /// The roster of a list in which these Machines are looked for.
    pub(crate) fn wanting<'a>(machines: impl IntoIterator<Item = &'a str>) -> Self {
        let wanted = machines.into_iter().map(canonical).collect();
        Self { wanted, ..Self::default() }
    }

    /// Whether the Machine with this address was looked for.
    pub(crate) fn wanted(&self, ip: &str) -> bool {
        self.wanted.contains(&canonical(ip))
    }

    pub(super) fn add(&mut self, node: Node) {
        let (metadata, status) = (node.metadata, node.status);
        let (ready, reason, place) =
            (status.is_ready(), cut(status.reason(), TEXT_MAX).into(), self.entries.len());
        let addresses = status.addresses.iter().flatten();
        let addresses = addresses.filter(|address| &*address.kind == "InternalIP");
        let label = metadata.labels.as_ref().and_then(|labels| labels.get(LABEL));
        let ways = std::iter::once((FoundBy::Name, &metadata.name))
            .chain(addresses.map(|address| (FoundBy::InternalIp, &address.address)))
            .chain(label.map(|machine| (FoundBy::Label, machine)));
        let ways = ways.map(|(way, text)| (way, canonical(text)));
        let mut ways = ways.filter(|(_, text)| self.wanted.contains(text)).peekable();
        if ways.peek().is_none() {
            return;
        }
        for (way, text) in ways {
            let best = self.places.entry(text).or_insert((way, place));
            *best = (*best).min((way, place));
        }
        let info = status.node_info.map(MachineInfo::cut);
        let name = cut(&metadata.name, TEXT_MAX).into();
        self.entries.push(MachineNode { name, ready, reason, info });
    }

    /// The Node on the machine with this address: the one of that name, else of that `InternalIP`,
    /// else with that label; of several that fit alike the first one of the list.
    pub(crate) fn find(&self, ip: &str) -> Option<&MachineNode> {
        let address = canonical(ip);
        let (_, place) = self.places.get(&address)?;
        self.entries.get(*place).filter(|_| !address.is_empty())
    }
}

/// Names and reasons are no longer.
const TEXT_MAX: usize = 253;

/// One spelling for each address.
fn canonical(text: &str) -> Box<str> {
    let text = text.trim();
    text.parse::<IpAddr>().map_or_else(|_| text.into(), |ip| ip.to_canonical().to_string().into())
}

/// The resources that are published.
pub(super) const PUBLISHED: [&str; 2] = ["cpu", "memory"];

/// Adds what `own` has of them to `sum`.
pub(super) fn add_published(sum: &mut Resources, own: &Resources) {
    for name in PUBLISHED {
        sum.set(name, sum.get(name) + own.get(name));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The roster of a list in which these Machines are looked for.
    fn roster(nodes: &[Value], machines: &[&str]) -> Roster {
        let mut roster = Roster::wanting(machines.iter().copied());
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
        let machines = rows.map(|(ip, _)| ip);
        let roster = roster(&nodes, &machines);
        for (ip, expected) in rows {
            assert_eq!(roster.find(ip).map(|entry| &*entry.name), expected, "{ip:?}");
        }
    }

    /// rule:lists-of-members-are-bounded
    #[test]
    fn nodes_on_which_nobody_has_a_machine_are_forgotten_and_long_texts_are_cut() {
        let long = "x".repeat(1 << 20);
        let mut nodes: Vec<_> = (0..1000)
            .map(|at| node(&format!("n{at}"), &[("InternalIP", "10.9.9.9")], None))
            .collect();
        nodes.push(node(&long, &[("InternalIP", "10.0.0.1")], None));
        nodes[1000]["status"]["nodeInfo"] = json!({"osImage": long, "kernelVersion": "6.1"});
        let roster = roster(&nodes, &["10.0.0.1"]);
        assert_eq!(roster.entries.len(), 1);
        let entry = roster.find("10.0.0.1").unwrap();
        let info = entry.info.as_ref().unwrap();
        assert!(entry.name.len() <= TEXT_MAX && info.os_image.len() <= 256, "{entry:?}");
        assert_eq!(info.kernel_version, "6.1");
        assert!(roster.wanted("::ffff:10.0.0.1") && !roster.wanted("10.9.9.9"));
    }

    #[test]
    fn only_an_explicit_word_makes_a_node_ready() {
        let conditions = |conditions: Value| {
            let node = json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}});
            roster(&[node], &["n"])
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
