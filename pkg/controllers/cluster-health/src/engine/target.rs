//! [`Target`]: what a flavour tells of one cluster.

use std::sync::Arc;

use health::{Policy, Published};

use super::flavour::Cluster;
use super::prober::ClusterProber;

/// Everything that the engine has to know of one cluster, made from its object, its credential and
/// the settings of its flavour.
pub struct Target {
    /// Which object.
    pub cluster: Cluster,
    /// Where it is reached. A list that has nothing in common with the one before is another
    /// target, whose first result is published at once.
    pub addresses: Vec<Box<str>>,
    /// A hash of everything that `prober` is made of: addresses, trust, proxy, credential. While it
    /// stays the same the prober in use is kept, with its connections.
    pub inputs: u64,
    /// Makes the prober; called only if `inputs` is new.
    pub prober: Box<dyn FnOnce() -> Arc<dyn ClusterProber> + Send>,
    /// How it is watched over.
    pub policy: Policy,
    /// It is to be left alone: no probe, and no word that it was not probed.
    pub paused: bool,
    /// What its object says, of use only when the cluster is new to this process.
    pub published: Option<Published>,
    /// The fingerprint of the same, if it is known.
    pub written: Option<u64>,
    /// What was told already of ends that come near; of use only when the cluster is new to this
    /// process.
    pub ends_told: EndsTold,
    /// How many clusters came in the same first list; 0 for one that was created later.
    pub together: usize,
}

/// What was told, before a cluster came to this process, of the ends of its credential and
/// certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EndsTold {
    /// Nothing.
    #[default]
    Nothing,
    /// This, as its object shows.
    Shown(Box<str>),
    /// Nobody knows: something may have been.
    Unknown,
}

/// `rule:another-target-has-no-address-in-common`
pub(crate) fn is_another<A: PartialEq>(old: &[A], new: &[A]) -> bool {
    !old.is_empty() && !new.is_empty() && !old.iter().any(|address| new.contains(address))
}
