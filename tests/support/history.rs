//! Checks what was seen: no two live nodes ever share an address, at any resourceVersion, and no
//! PATCH on the wire could have made them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;

use crate::fault_proxy::NodePatch;
use crate::observer::Seen;
use crate::stalls;

/// Minimum lag of the observer, however quick it was where the lag can be measured.
const LEAST_LAG: Duration = Duration::from_millis(100);
/// More is not excused, unless the machine adds it: an observer that lags for longer cannot tell
/// whether a block was free.
const MOST_LAG: Duration = Duration::from_secs(1);
/// Longest time of a PATCH, whatever the lease leaves.
const LONGEST_PATCH: Duration = Duration::from_secs(5);

/// Fails if two nodes that exist at the same resourceVersion have overlapping pod CIDRs. Pairs
/// of nodes whose names are both in `foreign` are let pass: the test itself made those.
pub fn assert_never_shared(history: &[Seen], foreign: &[&str]) {
    assert_none(&shared(history, foreign));
}

/// Fails if a PATCH carried addresses that another live node had at that moment, or that another
/// PATCH still under way could have given to another live node. `foreign` as above, by name.
pub fn assert_patches_never_share(patches: &[NodePatch], history: &[Seen], foreign: &[&str]) {
    assert_none(&patches_that_share(patches, history, foreign));
}

fn assert_none(findings: &[String]) {
    assert!(findings.is_empty(), "{} times: {}", findings.len(), findings[0]);
}

/// What [`assert_never_shared`] fails for, one sentence each.
pub fn shared(history: &[Seen], foreign: &[&str]) -> Vec<String> {
    let (mut live, mut found) = (Live::default(), Vec::new());
    for seen in history {
        live.end(&seen.uid);
        if seen.deleted {
            continue;
        }
        for cidr in parsed(&seen.pod_cidrs) {
            if let Err(other) = live.add(cidr, seen, foreign.contains(&&*seen.name)) {
                found.push(format!(
                    "at resourceVersion {} the nodes {} and {other} both have addresses of {cidr}",
                    seen.resource_version, seen.name
                ));
            }
        }
    }
    found
}

/// The networks in use. Those of ordinary nodes never overlap each other, so that neighbours in
/// the order of addresses are all there is to look at.
#[derive(Default)]
struct Live {
    ordinary: BTreeMap<(bool, u128), (IpNet, Arc<str>)>,
    foreign: Vec<(IpNet, Arc<str>, Arc<str>)>,
    of: HashMap<Arc<str>, Vec<IpNet>>,
}

impl Live {
    /// Err: the name of a node that has addresses of this network.
    fn add(&mut self, net: IpNet, node: &Seen, foreign: bool) -> Result<(), Arc<str>> {
        if let Some(name) = self.ordinary_overlap(net) {
            return Err(name);
        }
        if foreign {
            self.foreign.push((net, node.name.clone(), node.uid.clone()));
            return Ok(());
        }
        if let Some((_, name, _)) = self.foreign.iter().find(|(n, ..)| overlap(*n, net)) {
            return Err(name.clone());
        }
        self.ordinary.insert(start(net), (net, node.name.clone()));
        self.of.entry(node.uid.clone()).or_default().push(net);
        Ok(())
    }

    fn ordinary_overlap(&self, net: IpNet) -> Option<Arc<str>> {
        let at = start(net);
        let before = self.ordinary.range(..=at).next_back();
        let after = self.ordinary.range(at..).next();
        [before, after]
            .into_iter()
            .flatten()
            .find(|(_, (other, _))| overlap(*other, net))
            .map(|(_, (_, name))| name.clone())
    }

    fn end(&mut self, uid: &Arc<str>) {
        for net in self.of.remove(uid).unwrap_or_default() {
            self.ordinary.remove(&start(net));
        }
        self.foreign.retain(|(.., owner)| owner != uid);
    }
}

/// What [`assert_patches_never_share`] fails for, one sentence each.
pub fn patches_that_share(
    patches: &[NodePatch],
    history: &[Seen],
    foreign: &[&str],
) -> Vec<String> {
    let mut found = Vec::new();
    let terms = terms(history);
    let coarsest = |v6: bool| {
        let held = terms.iter().map(|term| term.net);
        let sent = patches.iter().flat_map(|patch| parsed(&patch.pod_cidrs));
        held.chain(sent).filter(|n| is_v6(*n) == v6).map(|n| n.prefix_len()).min().unwrap_or(0)
    };
    let widths = [coarsest(false), coarsest(true)];
    let mut by_place: HashMap<IpNet, Vec<&Term>> = HashMap::new();
    for term in &terms {
        by_place.entry(place(term.net, widths)).or_default().push(term);
    }
    let lag = observer_lag(patches, history);
    let gone: HashMap<&str, &Seen> =
        history.iter().filter(|seen| seen.deleted).map(|seen| (&*seen.uid, seen)).collect();

    let mut under_way: Vec<&NodePatch> = Vec::new();
    let mut ordered: Vec<_> = patches.iter().collect();
    ordered.sort_by_key(|patch| patch.arrived);
    for patch in ordered {
        under_way.retain(|other| other.settled.is_none_or(|at| at > patch.arrived));
        for net in parsed(&patch.pod_cidrs) {
            let both_foreign =
                |name: &str| foreign.contains(&name) && foreign.contains(&&*patch.node);
            for term in by_place.get(&place(net, widths)).into_iter().flatten() {
                let conflict = *term.uid != *patch.uid
                    && overlap(term.net, net)
                    && term.from < patch.arrived
                    && !term.end.as_ref().is_some_and(|end| end.before(patch, lag))
                    && !both_foreign(&term.name);
                if conflict {
                    found.push(format!("{patch:?} was sent while {} had {}", term.name, term.net));
                }
            }
            for other in &under_way {
                let is_gone =
                    gone.get(&*other.uid).is_some_and(|seen| End::of(seen).before(patch, lag));
                let shares = parsed(&other.pod_cidrs).any(|theirs| overlap(theirs, net));
                let conflict =
                    other.uid != patch.uid && shares && !is_gone && !both_foreign(&other.node);
                if conflict {
                    found.push(format!("{patch:?} was sent while {other:?} was under way"));
                }
            }
        }
        under_way.push(patch);
    }
    found
}

/// The time during which a node had a network.
struct Term {
    net: IpNet,
    name: Arc<str>,
    uid: Arc<str>,
    from: Instant,
    end: Option<End>,
}

#[derive(Clone, Copy)]
struct End {
    at: Instant,
    resource_version: u64,
}

impl End {
    fn of(seen: &Seen) -> Self {
        Self { at: seen.at, resource_version: seen.resource_version }
    }

    /// Exactly when the PATCH was applied and says where in history; else as far as we can tell.
    fn before(&self, patch: &NodePatch, lag: Duration) -> bool {
        match patch.resource_version {
            Some(version) => self.resource_version < version,
            None => stalls::without(patch.arrived, self.at) <= lag,
        }
    }
}

/// The observer hears of a deletion later than it happens, and the product may be quicker: by how
/// much is measured on the PATCHes that the server has applied. It excuses only those without a
/// resourceVersion in their answer, which cannot be ordered exactly.
fn observer_lag(patches: &[NodePatch], history: &[Seen]) -> Duration {
    let heard: HashMap<u64, Instant> =
        history.iter().map(|seen| (seen.resource_version, seen.at)).collect();
    let lag = |patch: &NodePatch| {
        let at = heard.get(&patch.resource_version?)?;
        Some(at.saturating_duration_since(patch.settled?))
    };
    patches.iter().filter_map(lag).fold(LEAST_LAG, Duration::max).min(MOST_LAG)
}

/// Fails if a PATCH does not tell the server when to give up, soon: it could reach a Node when its
/// block is another one's (rule:writes-end-with-their-timeout).
pub fn assert_patches_end(patches: &[NodePatch]) {
    for patch in patches {
        let timeout = patch.timeout.unwrap_or_else(|| panic!("{patch:?} has no timeout"));
        assert!(timeout <= LONGEST_PATCH, "{patch:?} may take longer than {LONGEST_PATCH:?}");
    }
}

fn terms(history: &[Seen]) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    let mut open: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
    for seen in history {
        let now: Vec<_> = if seen.deleted { vec![] } else { parsed(&seen.pod_cidrs).collect() };
        let held = open.entry(seen.uid.clone()).or_default();
        held.retain(|&term| {
            let kept = now.contains(&terms[term].net);
            if !kept {
                terms[term].end = Some(End::of(seen));
            }
            kept
        });
        for net in now {
            if held.iter().all(|&term| terms[term].net != net) {
                let (name, uid) = (seen.name.clone(), seen.uid.clone());
                held.push(terms.len());
                terms.push(Term { net, name, uid, from: seen.at, end: None });
            }
        }
    }
    terms
}

/// Networks that overlap have the same place: both cut to the coarsest mask there is.
fn place(net: IpNet, [v4, v6]: [u8; 2]) -> IpNet {
    let width = if is_v6(net) { v6 } else { v4 };
    IpNet::new_assert(net.addr(), width.min(net.prefix_len())).trunc()
}

fn parsed(cidrs: &[String]) -> impl Iterator<Item = IpNet> + '_ {
    cidrs.iter().filter_map(|cidr| cidr.parse().ok()).map(|net: IpNet| net.trunc())
}

fn overlap(a: IpNet, b: IpNet) -> bool {
    a.contains(&b) || b.contains(&a)
}

fn is_v6(net: IpNet) -> bool {
    matches!(net, IpNet::V6(_))
}

fn start(net: IpNet) -> (bool, u128) {
    match net {
        IpNet::V4(net) => (false, u32::from(net.network()).into()),
        IpNet::V6(net) => (true, net.network().into()),
    }
}

#[cfg(test)]
mod tests;
