//! One process: its members, its queue, its shards.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use health::{Finding, LEADER, Member, Shards, Status, WriteQueue};
use resilience::{Rate, TokenBucket};

use crate::world::LEADING;

/// After so long without an answer of the API server a leader leads no more.
const LEADS_FOR: Duration = Duration::from_secs(15);

/// A cluster in the hands of a replica.
pub(crate) struct Held {
    pub(crate) member: Member,
    /// When it was taken over, in milliseconds.
    pub(crate) since: u64,
    /// When its policy last changed: silence counts from then on, too.
    pub(crate) tuned_at: u64,
    /// Number of the probe under way.
    pub(crate) probe: Option<u64>,
    pub(crate) last_start: Option<u64>,
    /// Time of the last probe with a result about the cluster.
    pub(crate) last_end: Option<u64>,
    /// Time of the last probe of any kind.
    pub(crate) asked_at: Option<u64>,
    /// When it was published as ready, or as ready no more.
    pub(crate) crossings: Vec<u64>,
    /// All results so far, newest last, each with whether it counted.
    pub(crate) results: Vec<Finding>,
    /// Time until which the task hangs.
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
    pub(crate) pace: TokenBucket,
    pub(crate) alive: bool,
    /// The replica cannot read the leases, and never could.
    pub(crate) blind: bool,
    /// When a request for a lease failed for the first time.
    pub(crate) failed_first: Option<Instant>,
    /// Differs after each restart: what was begun before is void.
    pub(crate) life: u64,
    /// Time until which the replica is paused, in milliseconds.
    pub(crate) still_until: u64,
    /// Since when it has been up, in milliseconds.
    pub(crate) up_since: u64,
    /// The replica has made its lease.
    pub(crate) leased: bool,
    /// When the last request for a lease that was answered well was sent; for the leader, also one
    /// for the Lease of the leadership.
    pub(crate) answered: Instant,
}

impl Replica {
    pub(crate) fn new(index: usize, life: u64, now: u64, at: Instant) -> Self {
        let leads = index == LEADING;
        let name: Box<str> =
            if leads { LEADER.into() } else { format!("replica-{index}-{life}").into() };
        let shards = if leads { Shards::of_leader() } else { Shards::new(name.clone()) };
        Self {
            shards,
            name,
            held: BTreeMap::new(),
            queue: WriteQueue::default(),
            pace: TokenBucket::new(Rate { per_second: 20.0, burst: 5 }, at),
            alive: true,
            blind: false,
            failed_first: None,
            life,
            still_until: 0,
            up_since: now,
            leased: false,
            answered: at,
        }
    }

    /// Whether it leads, for those that do not share.
    pub(crate) fn leads(&self) -> bool {
        *self.name == *LEADER
    }

    /// Name of the replica's lease: all leaders share one.
    pub(crate) fn lease(&self, index: usize) -> (usize, u64) {
        (index, if self.leads() { 0 } else { self.life })
    }

    /// Whether it leads no more, as nothing is known of the API server.
    pub(crate) fn is_deposed(&self, now: Instant) -> bool {
        self.leads() && now > self.answered + LEADS_FOR
    }

    pub(crate) fn may_probe(&self, uid: u64, now: Instant) -> bool {
        let may = self.alive && !self.is_deposed(now);
        may && self.shards.may_probe(health::hash(&uid.to_string()), now)
    }
}
