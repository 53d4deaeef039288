//! The VMs of a project.

use std::collections::BTreeMap;

use http::{Method, Request};
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::faults::Fault;
use crate::operations::{Change, Operations, overlap};
use crate::reply::{Reply, error, ok};

/// The project of all VMs.
pub const PROJECT: &str = "the-project";
/// The secondary range that aliases may be of, and its name.
pub const SECONDARY_RANGE: (&str, &str) = ("pods", "10.0.0.0/8");

/// A VM.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vm {
    pub(crate) aliases: Vec<Value>,
    pub(crate) ipv6: String,
    pub(crate) interfaces: usize,
    pub(crate) version: u32,
}

/// All VMs, by zone and name.
#[derive(Debug, Default)]
pub(crate) struct Cloud {
    pub(crate) vms: BTreeMap<(String, String), Vm>,
    pub(crate) operations: Operations,
    /// No page is larger, whatever is asked for.
    pub(crate) page: usize,
}

pub(crate) fn alias(range: &str) -> Value {
    json!({"ipCidrRange": range, "subnetworkRangeName": SECONDARY_RANGE.0})
}

impl Vm {
    pub(crate) fn change(&mut self, aliases: Vec<Value>) {
        self.aliases = aliases;
        self.version += 1;
    }

    fn fingerprint(&self) -> String {
        format!("fingerprint-{}", self.version)
    }

    fn show(&self, name: &str) -> Value {
        let interface = |index: usize| {
            let mut shown =
                json!({"name": format!("nic{index}"), "fingerprint": self.fingerprint()});
            if index == 0 {
                // Google leaves out what is empty.
                if !self.aliases.is_empty() {
                    shown["aliasIpRanges"] = json!(self.aliases);
                }
                if !self.ipv6.is_empty() {
                    shown["ipv6Address"] = json!(self.ipv6);
                }
            }
            shown
        };
        let interfaces: Vec<_> = (0..self.interfaces).map(interface).collect();
        json!({"name": name, "networkInterfaces": interfaces})
    }
}

/// The name of a call, as the product's metrics have it, and the zone that it is about.
pub(crate) fn call_of<B>(request: &Request<B>) -> Option<(&'static str, String)> {
    let path = request.uri().path().strip_prefix("/compute/v1/projects/")?;
    let parts: Vec<_> = path.split('/').collect();
    let name = match (&parts[1..], request.method()) {
        (["zones", _, "instances"], &Method::GET) => "instances.list",
        (["zones", _, "instances", _], &Method::GET) => "instances.get",
        (["zones", _, "instances", _, "updateNetworkInterface"], &Method::PATCH) => {
            "instances.updateNetworkInterface"
        }
        (["zones", _, "operations", _], &Method::GET) => "zoneOperations.get",
        _ => return None,
    };
    Some((name, (*parts.get(2)?).to_owned()))
}

impl Cloud {
    /// Carries out a call.
    pub(crate) fn answer(&mut self, request: &Request<String>, fault: Option<Fault>) -> Reply {
        let path = request.uri().path().to_owned();
        let parts: Vec<_> = path.trim_start_matches("/compute/v1/projects/").split('/').collect();
        if parts[0] != PROJECT {
            return error(403, "forbidden", "not your project");
        }
        let query = request.uri().query().unwrap_or_default();
        let query: BTreeMap<_, _> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let (zone, name) = (parts[2], parts.get(4).copied().unwrap_or_default());
        let Self { operations, vms, .. } = self;
        operations.go_on(|change| apply(vms, change));
        match call_of(request).map(|(call, _)| call) {
            Some("instances.list") => self.list(zone, &query, fault),
            Some("instances.get") => match self.vms.get(&key(zone, name)) {
                Some(vm) => ok(&vm.show(name)),
                None => error(404, "notFound", name),
            },
            Some("instances.updateNetworkInterface") => {
                self.update(zone, name, &query, request.body(), fault)
            }
            Some(_) => match self.operations.get(name) {
                Some(operation) => ok(&operation),
                None => error(404, "notFound", name),
            },
            None => error(404, "notFound", &path),
        }
    }

    fn list(&self, zone: &str, query: &BTreeMap<String, String>, fault: Option<Fault>) -> Reply {
        let asked: usize =
            query.get("maxResults").and_then(|size| size.parse().ok()).unwrap_or(500);
        let size = asked.min(self.page).max(1);
        let from = query.get("pageToken").cloned().unwrap_or_default();
        let all = self.vms.range(key(zone, &from)..).take_while(|((of, _), _)| of == zone);
        let mut shown: Vec<_> = all.take(size + 1).collect();
        let next = (shown.len() > size).then(|| shown.pop().expect("one more").0.1.clone());
        let next = next.or_else(|| (fault == Some(Fault::NoLastPage)).then(|| format!("{from}z")));
        let items: Vec<_> = shown.into_iter().map(|((_, name), vm)| vm.show(name)).collect();
        let mut page = json!({"items": items});
        if let Some(next) = next {
            page["nextPageToken"] = json!(next);
        }
        ok(&page)
    }

    fn update(
        &mut self,
        zone: &str,
        name: &str,
        query: &BTreeMap<String, String>,
        body: &str,
        fault: Option<Fault>,
    ) -> Reply {
        let Some(vm) = self.vms.get(&key(zone, name)) else {
            return error(404, "notFound", name);
        };
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let interface = query.get("networkInterface").map(String::as_str);
        if interface != Some("nic0") || body["name"] != "nic0" {
            return error(400, "invalid", "networkInterface");
        }
        match body["fingerprint"].as_str() {
            None | Some("") => return error(400, "required", "fingerprint"),
            Some(given) if given != vm.fingerprint() => {
                return error(412, "conditionNotMet", "fingerprint");
            }
            Some(_) => {}
        }
        let aliases = body["aliasIpRanges"].as_array().cloned().unwrap_or_default();
        let is_good = |alias: &Value| {
            let range = alias["ipCidrRange"].as_str().unwrap_or_default();
            let name = alias["subnetworkRangeName"].as_str().unwrap_or_default();
            range.parse::<IpNet>().is_ok() && ["", SECONDARY_RANGE.0].contains(&name)
        };
        if !aliases.iter().all(is_good) {
            return error(400, "invalid", "aliasIpRanges");
        }
        let request = query.get("requestId").cloned().unwrap_or_default();
        let change = Change { zone: zone.to_owned(), vm: name.to_owned(), aliases };
        let fails_with = match fault {
            Some(Fault::LateFailure(code)) => Some(code),
            _ => None,
        };
        ok(&self.operations.begin(&request, change, fails_with))
    }
}

pub(crate) fn key(zone: &str, name: &str) -> (String, String) {
    (zone.to_owned(), name.to_owned())
}

/// Aliases must be of the secondary range, and of no other VM.
fn apply(vms: &mut BTreeMap<(String, String), Vm>, change: &Change) -> Result<(), &'static str> {
    let own = key(&change.zone, &change.vm);
    let range: IpNet = SECONDARY_RANGE.1.parse().expect("a range");
    for wanted in &change.aliases {
        let cidr: IpNet =
            wanted["ipCidrRange"].as_str().unwrap_or_default().parse().expect("judged");
        if !range.contains(&cidr) {
            return Err("INVALID_USAGE");
        }
        let others = vms.iter().filter(|(key, _)| **key != own);
        if others.flat_map(|(_, vm)| &vm.aliases).any(|other| overlap(wanted, other)) {
            return Err("IP_IN_USE_BY_ANOTHER_RESOURCE");
        }
    }
    let vm = vms.get_mut(&own).ok_or("RESOURCE_NOT_FOUND")?;
    vm.change(change.aliases.clone());
    Ok(())
}
