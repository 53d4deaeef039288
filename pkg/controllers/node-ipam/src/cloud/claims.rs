//! [`Claims`]: who has which CIDRs, where a cloud knows of them too. The watch and the workers share
//! it; no I/O.
//!
//! A claim is kept until its Node is gone or shows other CIDRs, whatever became of a write
//! (`rule:reserved-block-is-kept`).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use cidr::{Exhausted, IpNet, Ledger, Pool};
use model::Node;

/// A Node's UID.
type Uid = Arc<str>;

/// Who holds a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// Addresses that no Node may get of the pool.
    Reserved(IpNet),
    /// A Node, by UID: a name may be used again.
    Node(Uid),
}

/// Why a Node may not be given CIDRs now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// A list of Nodes is being taken in, or the Node is gone.
    #[error("cannot tell yet who has which pod CIDRs")]
    NotNow,
    /// Another Node has them (`rule:block-has-one-holder`).
    #[error("cannot give the Node {cidr}, which is still that of Node {by}")]
    Held {
        /// What was to be given.
        cidr: IpNet,
        /// Who has it.
        by: Arc<str>,
    },
    /// No block is left.
    #[error(transparent)]
    Full(#[from] Exhausted),
}

/// The claims of all Nodes.
#[derive(Debug)]
pub(super) struct Claims {
    ledger: Ledger<Owner>,
    /// The live Nodes.
    names: HashMap<Uid, Arc<str>>,
    /// Nodes whose claim may have left this process.
    sent: HashSet<Uid>,
    /// Nodes that were written to; the cache may not show it yet.
    written: HashSet<Uid>,
    /// Names of Nodes that were refused.
    waiting: BTreeSet<Arc<str>>,
    in_list: bool,
}

impl Claims {
    /// Of a pool, or of none where the cloud chooses.
    pub(super) fn new(pool: Option<Pool>, reserved: &[IpNet]) -> Self {
        let mut ledger = Ledger::new(pool.into_iter().collect());
        for range in reserved {
            ledger.occupy(&Owner::Reserved(*range), &[*range]);
        }
        Self {
            ledger,
            names: HashMap::new(),
            sent: HashSet::new(),
            written: HashSet::new(),
            waiting: BTreeSet::new(),
            in_list: false,
        }
    }

    /// Whether a list of Nodes is being taken in.
    pub(super) fn set_in_list(&mut self, in_list: bool) {
        self.in_list = in_list;
    }

    /// Takes in a Node as the watch shows it; the names of those that may try again.
    pub(super) fn see(&mut self, node: &Node) -> Vec<Arc<str>> {
        self.names.insert(Arc::clone(&node.uid), Arc::clone(&node.name));
        let shown: Vec<IpNet> =
            node.pod_cidrs.iter().filter_map(|it| cidr::parse(it).ok()).collect();
        if node.pod_cidrs.is_empty() {
            return Vec::new();
        }
        self.written.remove(&node.uid);
        let owner = Owner::Node(Arc::clone(&node.uid));
        if self.ledger.claim(&owner) == Some(&shown[..]) {
            return Vec::new();
        }
        let had = self.ledger.claim(&owner).is_some();
        self.ledger.occupy(&owner, &shown);
        if had { self.wake() } else { Vec::new() }
    }

    /// A Node is gone; the names of those that may try again.
    pub(super) fn gone(&mut self, uid: &Uid) -> Vec<Arc<str>> {
        self.names.remove(uid);
        self.sent.remove(uid);
        self.written.remove(uid);
        self.ledger.release(&Owner::Node(Arc::clone(uid)));
        self.wake()
    }

    /// The pod CIDRs of a Node: what the cache shows, or what was written since.
    pub(super) fn pod_cidrs(&self, node: &Node) -> Vec<String> {
        if node.pod_cidrs.is_empty() && self.written.contains(&node.uid) {
            return self.of(&node.uid).iter().map(cidr::canonical).collect();
        }
        node.pod_cidrs.iter().map(str::to_owned).collect()
    }

    /// What is claimed for a Node.
    pub(super) fn of(&self, uid: &Uid) -> &[IpNet] {
        self.ledger.claim(&Owner::Node(Arc::clone(uid))).unwrap_or_default()
    }

    /// The block of a Node that the cloud may have been told of.
    pub(super) fn told(&self, uid: &Uid) -> Option<IpNet> {
        let block = self.of(uid).first().copied();
        block.filter(|_| self.sent.contains(uid))
    }

    /// Whether a Node shows what we have written to it.
    pub(super) fn shows_ours(&self, node: &Node) -> bool {
        let shown = node.pod_cidrs.iter().map(|text| cidr::parse(text).ok());
        !node.pod_cidrs.is_empty()
            && self.sent.contains(&node.uid)
            && shown.eq(self.of(&node.uid).iter().copied().map(Some))
    }

    /// Claims what the cloud has given the VM of a Node.
    pub(super) fn take(&mut self, node: &Node, cidrs: &[IpNet]) -> Result<(), Refusal> {
        self.check(node)?;
        let owner = Owner::Node(Arc::clone(&node.uid));
        let before = self.of(&node.uid).to_vec();
        self.ledger.occupy(&owner, cidrs);
        let Err(held) = self.check_alone(&node.uid) else { return Ok(()) };
        self.waiting.insert(Arc::clone(&node.name));
        // What has not left is in nobody's way.
        let keeps = if self.sent.contains(&node.uid) { before } else { Vec::new() };
        self.ledger.occupy(&owner, &keeps);
        Err(held)
    }

    /// The block of a Node: the one that it was given before, or a free one.
    pub(super) fn block(&mut self, node: &Node) -> Result<IpNet, Refusal> {
        self.check(node)?;
        let owner = Owner::Node(Arc::clone(&node.uid));
        if let Err(held) = self.check_alone(&node.uid) {
            if self.sent.contains(&node.uid) {
                self.waiting.insert(Arc::clone(&node.name));
                return Err(held);
            }
            // Somebody else took it before it left.
            self.ledger.release(&owner);
        }
        let allocated = self.ledger.allocate(&owner).inspect_err(|_| {
            self.waiting.insert(Arc::clone(&node.name));
        });
        // A pool gives one block; none is left where there is no pool.
        allocated?.cidrs.first().copied().ok_or(Refusal::NotNow)
    }

    /// Asked when something of a Node is about to leave: whether it still may.
    pub(super) fn may_send(&mut self, uid: &Uid, cidrs: &[IpNet]) -> bool {
        let may = !self.in_list
            && self.names.contains_key(uid)
            && cidrs.iter().all(|cidr| self.of(uid).contains(cidr))
            && self.check_alone(uid).is_ok();
        if may {
            self.sent.insert(Arc::clone(uid));
        }
        may
    }

    /// The Node has what is claimed for it.
    pub(super) fn written(&mut self, uid: &Uid) {
        if self.names.contains_key(uid) {
            self.written.insert(Arc::clone(uid));
        }
    }

    /// Compares all claims with the live Nodes (`rule:claims-are-audited`); how many were mended.
    pub(super) fn audit<'a>(&mut self, live: impl Iterator<Item = &'a Node>) -> usize {
        let (mut known, mut mended) = (HashSet::new(), 0);
        for node in live {
            known.insert(Arc::clone(&node.uid));
            let (was_known, before) =
                (self.names.contains_key(&node.uid), self.of(&node.uid).to_vec());
            let woken = self.see(node);
            self.waiting.extend(woken);
            mended += usize::from(!was_known || before != self.of(&node.uid));
        }
        let gone: Vec<_> = self.names.keys().filter(|uid| !known.contains(*uid)).cloned().collect();
        mended += gone.len();
        for uid in gone {
            let woken = self.gone(&uid);
            self.waiting.extend(woken);
        }
        mended
    }

    /// Used blocks of the pool, and all of them.
    pub(super) fn usage(&self) -> Option<(IpNet, u128, u128)> {
        let pool = self.ledger.pools().first()?;
        Some((pool.cidr(), pool.used(), pool.blocks()))
    }

    fn check(&self, node: &Node) -> Result<(), Refusal> {
        let is_live = self.names.contains_key(&node.uid);
        if is_live && !self.in_list { Ok(()) } else { Err(Refusal::NotNow) }
    }

    /// Whether no other Node's claim overlaps that of this one.
    fn check_alone(&self, uid: &Uid) -> Result<(), Refusal> {
        for mine in self.of(uid) {
            for (other, _) in self.ledger.overlapping(mine) {
                let Owner::Node(other) = other else { continue };
                if other != *uid {
                    let by = self.names.get(&other).cloned().unwrap_or_default();
                    return Err(Refusal::Held { cidr: *mine, by });
                }
            }
        }
        Ok(())
    }

    fn wake(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.waiting).into_iter().collect()
    }
}

#[cfg(test)]
mod tests;
