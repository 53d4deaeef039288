//! [`Claims`]: what must hold after each step, judged on the store and the wire (`tests/CHECKED.md`).

use std::collections::{BTreeMap, BTreeSet};

use cidr::IpNet;
use http::Method;
use serde_json::Value;

use crate::call::Call;
use crate::store::{Key, Store};

/// Range of the cluster CIDR, or of the ClusterCIDR of Nodes without a label.
pub(crate) const DEFAULT: &str = "10.0.0.0/25";
/// Range of the ClusterCIDR of the labelled Node.
pub(crate) const SECOND: &str = "10.0.1.0/26";

/// The range that a block lies in.
pub(crate) fn range_of(block: IpNet) -> Option<&'static str> {
    [DEFAULT, SECOND].into_iter().find(|it| cidr::parse(it).is_ok_and(|it| it.contains(&block)))
}

/// A PATCH of pod CIDRs that the server may yet apply.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    process: usize,
    name: String,
    uid: String,
    cidrs: Vec<IpNet>,
}

impl Sent {
    /// The PATCH, if the request is one.
    pub(crate) fn of(process: usize, call: &Call) -> Option<Self> {
        let target = call.target().filter(|target| target.kind.resource == "nodes")?;
        if call.method != Method::PATCH {
            return None;
        }
        let body = call.json();
        let cidrs = cidrs(&body);
        let uid = body["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        (!cidrs.is_empty()).then_some(Self { process, name: target.key.name, uid, cidrs })
    }
}

/// The pod CIDRs of a Node.
pub(crate) fn cidrs(node: &Value) -> Vec<IpNet> {
    let all = node["spec"]["podCIDRs"].as_array().into_iter().flatten();
    all.filter_map(|it| cidr::parse(it.as_str()?).ok()).collect()
}

/// A term of a process, and whether work has begun in it.
#[derive(Clone, Copy, Debug)]
struct Term {
    process: usize,
    has_begun: bool,
    has_listed: bool,
}

/// A pod CIDR that another allocator wrote.
#[derive(Clone, Debug)]
struct Foreign {
    name: String,
    uid: String,
    cidr: IpNet,
    /// Version of the Node then.
    revision: u64,
}

/// What is known of terms and of requests on their way.
#[derive(Default)]
pub(crate) struct Claims {
    wire: BTreeMap<u64, Sent>,
    terms: Vec<Term>,
    /// Requests for consistent lists of Nodes that were not answered yet, and their terms.
    asked: BTreeMap<u64, usize>,
    foreign: Vec<Foreign>,
    /// UIDs of two Nodes that may have the same addresses: another allocator wrote those of the first, and the
    /// PATCH for the second was decided before its process could know.
    excepted: BTreeSet<(String, String)>,
    /// PATCHes of pod CIDRs that left.
    pub(crate) sent: u64,
}

type Verdict = Result<(), String>;

impl Claims {
    /// A PATCH leaves that was decided when its process had been shown Nodes up to the version `shown`.
    pub(crate) fn send(&mut self, number: u64, sent: Sent, store: &Store, shown: u64) -> Verdict {
        self.sent += 1;
        let term = self.terms.iter().rev().find(|term| term.process == sent.process);
        match term {
            None => return Err(format!("C5: {} sends {sent:?} without the lease", sent.process)),
            Some(term) if !term.has_listed => {
                return Err(format!("C6: {sent:?} leaves before a consistent list"));
            }
            Some(_) => {}
        }
        self.begins(sent.process);
        let differs =
            |it: &&Sent| it.process == sent.process && it.uid == sent.uid && it.cidrs != sent.cidrs;
        if let Some(other) = self.wire.values().find(differs) {
            return Err(format!("C3: {sent:?} leaves while {other:?} may be applied"));
        }
        let theirs = self.foreign.iter().filter(|it| it.uid != sent.uid && it.is_in(store));
        for foreign in theirs.filter(|it| overlaps(it.cidr, &sent.cidrs)) {
            if foreign.revision <= shown {
                return Err(format!("C1: {sent:?} leaves after a watch has shown {foreign:?}"));
            }
            self.excepted.insert((foreign.uid.clone(), sent.uid.clone()));
        }
        self.wire.insert(number, sent);
        self.judge(store)
    }

    /// Another allocator wrote this pod CIDR of a Node.
    pub(crate) fn set_by_another(&mut self, name: &str, cidr: IpNet, store: &Store) {
        let key = node_key(name);
        let Some(node) = store.get(&key) else { return };
        let text = |field: &str| node["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (uid, revision) = (text("uid"), text("resourceVersion").parse().unwrap_or_default());
        let sent = self.wire.values().filter(|sent| sent.uid != uid && overlaps(cidr, &sent.cidrs));
        self.excepted.extend(sent.map(|sent| (uid.clone(), sent.uid.clone())));
        let theirs = self.foreign.iter().filter(|it| it.uid != uid && overlaps(cidr, &[it.cidr]));
        self.excepted.extend(theirs.map(|it| (uid.clone(), it.uid.clone())));
        self.foreign.push(Foreign { name: name.to_owned(), uid, cidr, revision });
    }

    /// The pod CIDR of a PATCH for this Node that the server may yet apply.
    pub(crate) fn on_wire_for(&self, name: &str) -> Option<IpNet> {
        self.wire.values().find(|sent| sent.name == name)?.cidrs.first().copied()
    }

    /// The pod CIDRs of the PATCHes that the server may yet apply.
    pub(crate) fn on_wire(&self) -> Vec<IpNet> {
        self.wire.values().flat_map(|sent| sent.cidrs.iter().copied()).collect()
    }

    /// The server will not apply this request any more.
    pub(crate) fn end(&mut self, number: u64) {
        self.wire.remove(&number);
    }

    /// A PATCH is applied.
    pub(crate) fn applied(&mut self, number: u64) -> Verdict {
        let Some(sent) = self.wire.remove(&number) else { return Ok(()) };
        let own = self.terms.iter().rposition(|term| term.process == sent.process);
        let mut later = self.terms.iter().skip(own.map_or(0, |own| own + 1));
        match later.find(|term| term.has_begun) {
            Some(next) => Err(format!("C5: {sent:?} is applied in the term of {}", next.process)),
            None => Ok(()),
        }
    }

    /// A process got the lease.
    pub(crate) fn wins(&mut self, process: usize) {
        if self.terms.last().is_none_or(|term| term.process != process) {
            self.terms.push(Term { process, has_begun: false, has_listed: false });
        }
    }

    /// A process asks for a consistent list of Nodes.
    pub(crate) fn asks(&mut self, number: u64, process: usize) {
        self.begins(process);
        if let Some(term) = self.terms.iter().rposition(|term| term.process == process) {
            self.asked.insert(number, term);
        }
    }

    /// The answer of this request comes to its process: if it is a consistent list that was begun in a term, the
    /// process may write in that term.
    pub(crate) fn delivers(&mut self, number: u64) {
        if let Some(term) = self.asked.remove(&number) {
            self.terms[term].has_listed = true;
        }
    }

    fn begins(&mut self, process: usize) {
        if let Some(term) = self.terms.iter_mut().rev().find(|term| term.process == process) {
            term.has_begun = true;
        }
    }

    /// How many terms there were.
    pub(crate) fn terms(&self) -> usize {
        self.terms.len()
    }

    /// The blocks that live Nodes have or may get, by UID, and a text that says so.
    fn held<'a>(&'a self, store: &'a Store) -> Vec<(&'a str, String, IpNet)> {
        let mut held: Vec<(&str, String, IpNet)> = Vec::new();
        for node in store.list("nodes", "", store.revision()) {
            let uid = node["metadata"]["uid"].as_str().unwrap_or_default();
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            held.extend(cidrs(node).into_iter().map(|cidr| (uid, format!("{name} has"), cidr)));
        }
        for sent in self.wire.values() {
            let may_apply = store
                .get(&node_key(&sent.name))
                .is_some_and(|node| node["metadata"]["uid"] == *sent.uid && cidrs(node).is_empty());
            let says = || format!("process {} may give {}", sent.process, sent.name);
            let cidrs = sent.cidrs.iter().filter(|_| may_apply);
            held.extend(cidrs.map(|cidr| (&*sent.uid, says(), *cidr)));
        }
        held
    }

    /// Since a version no ClusterCIDR has gone while a live Node has a block of it, or may get one (C2).
    pub(crate) fn judge_gone(&self, store: &Store, since: u64) -> Verdict {
        let changes = store.changes_after(since).iter();
        let gone = changes.filter(|it| it.key.resource == "clustercidrs" && it.after.is_none());
        for (name, before) in gone.filter_map(|it| Some((&it.key.name, it.before.as_ref()?))) {
            let ranges = ["ipv4", "ipv6"].map(|family| before["spec"][family].as_str());
            let ranges: Vec<_> =
                ranges.into_iter().flatten().filter_map(|it| cidr::parse(it).ok()).collect();
            let held = self.held(store);
            if let Some((_, says, cidr)) = held.iter().find(|(.., it)| overlaps(*it, &ranges)) {
                return Err(format!("C2: ClusterCIDR {name} is gone, and {says} {cidr}"));
            }
        }
        Ok(())
    }

    /// No two live Nodes have the same addresses, or may get them (C1).
    pub(crate) fn judge(&self, store: &Store) -> Verdict {
        let held = self.held(store);
        for (nth, (uid, says, cidr)) in held.iter().enumerate() {
            for (other, also, overlapping) in &held[..nth] {
                let pair = |one: &str, two: &str| (one.to_owned(), two.to_owned());
                if uid != other
                    && overlaps(*cidr, &[*overlapping])
                    && !self.excepted.contains(&pair(uid, other))
                    && !self.excepted.contains(&pair(other, uid))
                {
                    return Err(format!("C1: {says} {cidr}, and {also} {overlapping}"));
                }
            }
        }
        Ok(())
    }
}

impl Foreign {
    /// Whether the Node is still there.
    fn is_in(&self, store: &Store) -> bool {
        store.get(&node_key(&self.name)).is_some_and(|node| node["metadata"]["uid"] == *self.uid)
    }
}

fn node_key(name: &str) -> Key {
    Key { resource: "nodes", namespace: String::new(), name: name.to_owned() }
}

fn overlaps(one: IpNet, others: &[IpNet]) -> bool {
    others.iter().any(|other| one.contains(other) || other.contains(&one))
}
