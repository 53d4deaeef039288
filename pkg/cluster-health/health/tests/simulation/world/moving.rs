//! Clusters that come to a replica and go from it, and the patrol over those that it has.

use health::{Arrival, Member};

use super::writing::fingerprint;
use super::{Event, PATROL, World};
use crate::faults;
use crate::replica::Held;

impl World {
    /// Takes over and gives up clusters, as the shards say.
    pub(crate) fn share_out(&mut self, replica: usize) {
        let now = self.instant();
        let uids: Vec<u64> = self.truths.keys().copied().collect();
        let this = &mut self.replicas[replica];
        let keep: Vec<u64> = this.held.keys().copied().collect();
        for uid in keep {
            if !self.truths.contains_key(&uid) || !this.may_probe(uid, now) {
                this.held.remove(&uid);
                this.queue.forget(&uid);
            }
        }
        for uid in uids {
            let this = &self.replicas[replica];
            let free = !this.held.contains_key(&uid) && !this.queue.is_writing(&uid);
            if free && this.may_probe(uid, now) {
                self.take_over(replica, uid);
            }
        }
    }

    pub(super) fn take_over(&mut self, replica: usize, uid: u64) {
        let life = self.replicas[replica].life;
        let ending = self.written.contains_key(&(replica, life, uid));
        assert!(!ending, "{uid} at {replica}");
        self.handovers += 1;
        let paused = self.paused.contains(&uid);
        let published = self.management.objects[&uid].status.clone().filter(|_| !paused);
        let arrival = Arrival {
            hash: health::hash(&uid.to_string()),
            written: published.as_ref().map(fingerprint),
            published,
            together: 0,
            has_waited: true,
            guarded: false,
            record: None,
        };
        let member = Member::new(arrival, &self.policy(uid), self.instant());
        let ready = member.published().map(|published| published.ready.status);
        let told = self.management.objects[&uid].status.as_ref().filter(|_| !paused);
        let told = told.map(|status| status.ready.status);
        assert_eq!(ready, told, "rule:a-restart-changes-nothing: {uid}");
        let held = Held {
            member,
            since: self.now,
            tuned_at: self.now,
            probe: None,
            last_start: None,
            last_end: None,
            asked_at: None,
            crossings: Vec::new(),
            results: Vec::new(),
            hangs_until: 0,
            calm_since: self.now,
            changed_at: self.now,
            retargeted: false,
            ready,
        };
        self.replicas[replica].held.insert(uid, held);
        self.consider(replica, uid);
        self.wait_for_due(replica, uid);
    }

    pub(super) fn patrol(&mut self, replica: usize) {
        if self.replicas[replica].is_deposed(self.instant()) {
            return faults::kill(self, replica);
        }
        let (now, moment) = (self.instant(), self.moment());
        self.share_out(replica);
        let held = self.replicas[replica].held.keys().copied();
        let probed: Vec<u64> = held.filter(|uid| !self.paused.contains(uid)).collect();
        for uid in probed {
            let policy = self.policy(uid);
            let held = self.replicas[replica].held.get_mut(&uid).expect("it is held");
            if held.member.stuck_at(&policy) <= now && held.hangs_until != u64::MAX {
                held.member.restart(now);
                held.probe = None;
                held.hangs_until = 0;
                held.calm_since = self.now;
                held.last_start = None;
                self.wait_for_due(replica, uid);
            }
            let held = self.replicas[replica].held.get_mut(&uid).expect("it is held");
            if let Some(effect) = held.member.sweep(&policy, moment) {
                held.results.clear();
                self.check_sweep(replica, uid, effect.change);
                self.consider(replica, uid);
            }
            self.check_held(replica, uid);
        }
        self.check_handover();
        let life = self.replicas[replica].life;
        self.at(PATROL, Event::Patrol { replica, life });
    }
}
