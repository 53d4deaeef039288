//! The management API: the objects of the clusters and the leases of the replicas.

use std::collections::BTreeMap;

use health::{Claim, Published};

use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Well,
    /// Answers after seconds.
    Throttled,
    /// Refuses everything.
    Refusing,
    /// Every other answer is lost, or a conflict.
    Losing,
    /// Refuses every request for the leases of replicas, and carries out all others.
    LeasesFail,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    pub(crate) status: Option<Published>,
    /// Every write of it is refused, whatever the mode, as a webhook does.
    pub(crate) refused: bool,
    /// In milliseconds: since when its writes are no longer refused.
    pub(crate) allowed_since: u64,
}

#[derive(Debug)]
pub(crate) struct Management {
    pub(crate) mode: Mode,
    /// By UID; only live ones.
    pub(crate) objects: BTreeMap<u64, Object>,
    /// By replica and life, with the time of the last renewal: a process that died leaves its
    /// lease.
    pub(crate) leases: BTreeMap<(usize, u64), (Claim, u64)>,
    /// Renewals of all leases so far: no two are alike, also when a lease was deleted in between.
    renewals: u64,
    /// Writes that arrived.
    pub(crate) writes: u64,
    /// In milliseconds: since when it has been well.
    pub(crate) well_since: u64,
}

/// Fate of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    /// Carried out, and the answer lost.
    Lost,
    Refused,
    Conflict,
    /// State of a lease that was deleted.
    Missing,
}

impl Management {
    pub(crate) fn new() -> Self {
        let (objects, leases) = (BTreeMap::new(), BTreeMap::new());
        Self { mode: Mode::Well, objects, leases, renewals: 0, writes: 0, well_since: 0 }
    }

    pub(crate) fn claims(&self) -> Vec<Claim> {
        self.leases.values().map(|(claim, _)| claim.clone()).collect()
    }

    /// Leases that ended long ago are swept away.
    pub(crate) fn renew(&mut self, replica: (usize, u64), mut claim: Claim, now: u64) {
        self.renewals += 1;
        claim.renewal = self.renewals;
        self.leases.insert(replica, (claim, now));
        self.leases.retain(|_, (_, renewed)| now < *renewed + 120_000);
    }

    /// The last request of its replica has arrived.
    pub(crate) fn release(&mut self, replica: (usize, u64)) {
        if let Some((claim, _)) = self.leases.get_mut(&replica) {
            self.renewals += 1;
            (claim.view, claim.renewal) = (Vec::new(), self.renewals);
        }
    }

    pub(crate) fn fate(&self, random: &mut Random) -> Fate {
        match self.mode {
            Mode::Well | Mode::Throttled | Mode::LeasesFail => Fate::Done,
            Mode::Refusing => Fate::Refused,
            Mode::Losing => random.pick(&[Fate::Done, Fate::Lost, Fate::Refused, Fate::Conflict]),
        }
    }

    /// The fate of a request for leases of replicas, when it is sent.
    pub(crate) fn fate_of_lease(&self, random: &mut Random) -> Fate {
        if self.mode == Mode::LeasesFail { Fate::Refused } else { self.fate(random) }
    }

    /// The fate of a write of one object, when it is sent.
    pub(crate) fn fate_of_write(&self, uid: u64, random: &mut Random) -> Fate {
        let refused = self.objects.get(&uid).is_some_and(|object| object.refused);
        if refused { Fate::Refused } else { self.fate(random) }
    }

    pub(crate) fn refuse(&mut self, uid: u64) {
        if let Some(object) = self.objects.get_mut(&uid) {
            object.refused = true;
        }
    }

    /// Writes of the objects for which `which` holds are refused no more.
    pub(crate) fn allow(&mut self, now: u64, which: impl Fn(u64) -> bool) {
        let refused = self.objects.iter_mut().filter(|(uid, it)| it.refused && which(**uid));
        for (_, object) in refused {
            (object.refused, object.allowed_since) = (false, now);
        }
    }

    /// How long a request takes, in milliseconds.
    pub(crate) fn latency(&self, random: &mut Random) -> u64 {
        match self.mode {
            Mode::Well | Mode::Refusing | Mode::LeasesFail => 1 + random.below(50),
            Mode::Throttled | Mode::Losing => 500 + random.below(4500),
        }
    }
}
