//! One process: its members, its queue, its shards.

use std::collections::BTreeMap;
use std::time::Instant;

use health::{Finding, Member, Pace, Shards, Status, WriteQueue};

/// A cluster in the hands of a replica.
pub(crate) struct Held {
    pub(crate) member: Member,
    /// When it was taken over, in milliseconds.
    pub(crate) since: u64,
    /// Number of the probe under way.
    pub(crate) probe: Option<u64>,
    pub(crate) last_start: Option<u64>,
    pub(crate) last_end: Option<u64>,
    /// All results so far, newest last, each with whether it counted.
    pub(crate) results: Vec<Finding>,
    /// Its task does nothing until then: it hangs.
    pub(crate) hangs_until: u64,
    /// Since when its task does what it should, in milliseconds.
    pub(crate) calm_since: u64,
    /// When what is published last changed, in milliseconds.
    pub(crate) changed_at: u64,
    pub(crate) retargeted: bool,
    pub(crate) ready: Option<Status>,
}

pub(crate) struct Replica {
    pub(crate) name: Box<str>,
    pub(crate) shards: Shards,
    pub(crate) held: BTreeMap<u64, Held>,
    pub(crate) queue: WriteQueue<u64, ()>,
    pub(crate) pace: Pace,
    pub(crate) alive: bool,
    /// It cannot read the leases, and never could.
    pub(crate) blind: bool,
    /// Differs after each restart: what was begun before is void.
    pub(crate) life: u64,
    /// It stands still until then, in milliseconds.
    pub(crate) still_until: u64,
    /// Since when it has been up, in milliseconds.
    pub(crate) up_since: u64,
    pub(crate) renewals: u64,
    /// It has made its lease.
    pub(crate) leased: bool,
}

impl Replica {
    pub(crate) fn new(index: usize, life: u64, now: u64) -> Self {
        let name: Box<str> = format!("replica-{index}-{life}").into();
        Self {
            shards: Shards::new(name.clone()),
            name,
            held: BTreeMap::new(),
            queue: WriteQueue::default(),
            pace: Pace::new(20.0, 5),
            alive: true,
            blind: false,
            life,
            still_until: 0,
            up_since: now,
            renewals: 0,
            leased: false,
        }
    }

    pub(crate) fn may_probe(&self, uid: u64, now: Instant) -> bool {
        self.alive && self.shards.may_probe(health::hash(&uid.to_string()), now)
    }
}
