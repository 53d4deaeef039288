//! [`Claims`]: what must hold after each step, judged on the store and the wire (`tests/CHECKED.md`).

use std::collections::BTreeMap;

use cidr::IpNet;
use http::Method;
use serde_json::Value;

use crate::call::Call;
use crate::store::{Key, Store};

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

fn cidrs(node: &Value) -> Vec<IpNet> {
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

/// What is known of terms and of requests on their way.
#[derive(Default)]
pub(crate) struct Claims {
    wire: BTreeMap<u64, Sent>,
    terms: Vec<Term>,
    /// PATCHes of pod CIDRs that left.
    pub(crate) sent: u64,
}

type Verdict = Result<(), String>;

impl Claims {
    /// A PATCH leaves.
    pub(crate) fn send(&mut self, number: u64, sent: Sent, store: &Store) -> Verdict {
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
        self.wire.insert(number, sent);
        self.judge(store)
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

    /// A process made a consistent list of Nodes.
    pub(crate) fn lists(&mut self, process: usize) {
        self.begins(process);
        if let Some(term) = self.terms.iter_mut().rev().find(|term| term.process == process) {
            term.has_listed = true;
        }
    }

    /// Whether the process has a term.
    pub(crate) fn has_term(&self, process: usize) -> bool {
        self.terms.iter().any(|term| term.process == process)
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

    /// No two live Nodes have the same addresses, or may get them (C1).
    pub(crate) fn judge(&self, store: &Store) -> Verdict {
        let mut held: Vec<(&str, String, IpNet)> = Vec::new();
        for node in store.list("nodes", "", store.revision()) {
            let uid = node["metadata"]["uid"].as_str().unwrap_or_default();
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            held.extend(cidrs(node).into_iter().map(|cidr| (uid, format!("{name} has"), cidr)));
        }
        for sent in self.wire.values() {
            let (resource, name) = ("nodes", sent.name.clone());
            let key = Key { resource, namespace: String::new(), name };
            let may_apply = store
                .get(&key)
                .is_some_and(|node| node["metadata"]["uid"] == *sent.uid && cidrs(node).is_empty());
            let says = || format!("process {} may give {}", sent.process, sent.name);
            let cidrs = sent.cidrs.iter().filter(|_| may_apply);
            held.extend(cidrs.map(|cidr| (&*sent.uid, says(), *cidr)));
        }
        for (nth, (uid, says, cidr)) in held.iter().enumerate() {
            for (other, also, overlapping) in &held[..nth] {
                let overlaps = cidr.contains(overlapping) || overlapping.contains(cidr);
                if uid != other && overlaps {
                    return Err(format!("C1: {says} {cidr}, and {also} {overlapping}"));
                }
            }
        }
        Ok(())
    }
}
