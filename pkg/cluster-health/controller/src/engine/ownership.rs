//! [`Ownership`]: which clusters this replica probes and writes: all of them, or the share that
//! [`Shards`] says. [`ShardClaim`]: what the lease of a replica says of that to the others.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use election::ReplicaLease;
use health::{Claim, LEADER, SHARD_TERM, Shards, View, hash};
use parking_lot::{Mutex, RwLock};
use resilience::Fence;
use tokio::sync::Semaphore;

use super::flavour::now;

/// Asked before each probe and each write. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Ownership(Option<Arc<Share>>);

/// The share of one replica of several.
pub(crate) struct Share {
    /// The name of this replica.
    pub(crate) name: String,
    /// How many replicas the command line speaks of.
    pub(crate) expected: usize,
    /// Where the leases are.
    pub(crate) namespace: Box<str>,
    /// This replica is the leader of replicas that do not share, and takes part as one of them.
    pub(crate) leads: bool,
    /// Opened by each renewal of this replica's lease; that of the leadership where it leads.
    pub(crate) fence: Fence,
    pub(crate) shards: RwLock<Shards>,
    began: Instant,
    flavours: u32,
    /// A permit for each flavour that can look at clusters.
    filled: Semaphore,
    /// The flavours whose kind is served to this replica.
    kinds: Mutex<Kinds>,
}

impl Ownership {
    /// A share in which no cluster is ours yet.
    pub(crate) fn of(share: &Arc<Share>) -> Self {
        Self(Some(Arc::clone(share)))
    }

    /// Notes that another flavour has its first list.
    pub(crate) fn filled(&self) {
        if let Some(share) = &self.0 {
            share.filled.add_permits(1);
        }
    }

    /// The kind of this flavour is served to this replica.
    pub(crate) fn serves(&self, flavour: &str) {
        if let Some(share) = &self.0 {
            share.kinds.lock().insert(flavour.to_owned());
        }
    }

    /// Whether all clusters are always ours.
    pub(crate) fn is_whole(&self) -> bool {
        self.0.is_none()
    }

    /// Whether there are, or were, other replicas that may own a cluster.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.as_ref().is_some_and(|share| share.shards.read().has_met_others())
    }

    /// Whether another replica was ever seen.
    pub(crate) fn has_met(&self) -> bool {
        self.0.as_ref().is_some_and(|share| share.shards.read().has_met())
    }

    /// Whether the cluster with this UID is ours at this moment (`rule:a-share-ends-by-time`).
    pub(crate) fn is_ours(&self, uid: &str) -> bool {
        self.0.as_ref().is_none_or(|share| share.is_ours(uid))
    }

    /// Since when it has been ours without a gap, as [`Shards::ours_since`]; `None` when it is not,
    /// and when there are no other replicas.
    pub(crate) fn ours_since(&self, uid: &str) -> Option<Instant> {
        let share = self.0.as_ref().filter(|share| share.fence.check().is_ok())?;
        share.shards.read().ours_since(hash(uid), now().monotonic)
    }

    /// The replica that has a cluster, as far as is known; `None` when one process has them all.
    pub(crate) fn owner(&self, uid: &str) -> Option<String> {
        let shards = self.0.as_ref()?.shards.read();
        if !shards.has_met_others() {
            return None;
        }
        shards.owner(hash(uid)).map(str::to_owned)
    }

    /// Whether this leader probes all clusters although its reads of the leases fail; `None` for a
    /// replica that shares.
    pub(crate) fn is_unread(&self) -> Option<bool> {
        let share = self.0.as_ref().filter(|share| share.leads)?;
        Some(share.shards.read().is_unread())
    }

    /// Replicas that are alive, and that the command line speaks of; `None` when one process has
    /// all clusters.
    pub(crate) fn replicas(&self) -> Option<(usize, usize)> {
        let share = self.0.as_ref()?;
        let shards = share.shards.read();
        shards.has_met_others().then(|| (shards.desired().len(), share.expected))
    }
}

impl Share {
    /// Creates the share of the replica `name` without any cluster; with one shard, that of the
    /// leader.
    pub(crate) fn new(
        name: &str,
        (shards, namespace): (usize, &str),
        flavours: usize,
        fence: Fence,
    ) -> Self {
        let leads = shards <= 1;
        let name = if leads { LEADER } else { name };
        Self {
            name: name.to_owned(),
            expected: shards,
            namespace: namespace.into(),
            leads,
            fence,
            shards: RwLock::new(if leads { Shards::of_leader() } else { Shards::new(name) }),
            began: now().monotonic,
            flavours: u32::try_from(flavours).unwrap_or(u32::MAX),
            filled: Semaphore::new(0),
            kinds: Mutex::default(),
        }
    }

    /// The flavours whose kind is served to this replica.
    pub(crate) fn kinds(&self) -> Kinds {
        self.kinds.lock().clone()
    }

    /// Whether every flavour can look at clusters.
    pub(crate) fn is_filled(&self) -> bool {
        usize::try_from(self.flavours).is_ok_and(|all| self.filled.available_permits() >= all)
    }

    /// Waits until every flavour can look at clusters (`rule:no-share-before-the-first-list`).
    pub(crate) async fn all_filled(&self) {
        // It is never closed.
        drop(self.filled.acquire_many(self.flavours).await);
    }

    /// The check of readiness.
    pub(crate) fn check(&self) -> Result<(), String> {
        let shards = self.shards.read();
        let in_touch = shards.in_touch().unwrap_or(self.began);
        if shards.is_alone() || now().monotonic < in_touch + SHARD_TERM {
            return Ok(());
        }
        let namespace = &self.namespace;
        Err(format!(
            "cannot share the clusters with the other replicas: the leases in the namespace {namespace} \
             were not read and written for 30 s; see the log, and config/rbac/cluster-health-shards.yaml"
        ))
    }

    /// Whether neither clock has passed the end of our claims: the monotonic one, which may stop while
    /// the machine sleeps, and that of the fence, which does not stop.
    pub(crate) fn is_ours(&self, uid: &str) -> bool {
        self.fence.check().is_ok() && self.shards.read().may_probe(hash(uid), now().monotonic)
    }
}

/// The prefix of the claim of a replica that may not know all other replicas yet.
const NEW: &str = "new:";

/// The names of the flavours whose kind is served to a replica.
pub(crate) type Kinds = BTreeSet<String>;

/// The claim in the lease of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShardClaim {
    /// The replica knows all replicas that may be probing.
    pub(crate) settled: bool,
    /// The replicas that share the clusters by its view; empty when it takes no share.
    pub(crate) view: View,
    pub(crate) kinds: Kinds,
}

impl fmt::Display for ShardClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.kinds.iter().map(String::as_str).collect();
        let new = if self.settled { "" } else { NEW };
        write!(f, "{new}{};{}", self.view.join(","), kinds.join(","))
    }
}

impl ShardClaim {
    fn parse(text: &str) -> Self {
        let (text, settled) = text.strip_prefix(NEW).map_or((text, true), |rest| (rest, false));
        let (view, kinds) = text.split_once(';').unwrap_or((text, ""));
        let names = |list: &str| -> Vec<String> {
            list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let view = names(view).into_iter().map(Into::into).collect();
        Self { settled, view, kinds: names(kinds).into_iter().collect() }
    }
}

/// The claim of a lease, and the kinds that are served to its replica. A released lease has only
/// the name of its replica.
pub(crate) fn read(lease: &ReplicaLease) -> (Claim, Kinds) {
    let (replica, says) = match lease.identity.as_str() {
        "" => (lease.says.as_str(), ""),
        holder => (holder, lease.says.as_str()),
    };
    let ShardClaim { settled, view, kinds } = ShardClaim::parse(says);
    (Claim { replica: replica.into(), renewal: lease.renewal, view, settled }, kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_again() {
        let kinds = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let word = |settled, view: &[&str], names: &[&str]| {
            let view = view.iter().map(|&name| name.into()).collect();
            ShardClaim { settled, view, kinds: kinds(names) }
        };
        let rows = [
            (word(true, &["a", "b"], &["kubefed", "tke"]), "a,b;kubefed,tke"),
            (word(false, &["a"], &["tke"]), "new:a;tke"),
            (word(true, &[], &[]), ";"),
        ];
        for (word, text) in rows {
            assert_eq!(word.to_string(), text);
            assert_eq!(ShardClaim::parse(text), word);
        }
        assert_eq!(ShardClaim::parse("a"), word(true, &["a"], &[]));
    }
}
