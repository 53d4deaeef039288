//! The leases of the replicas: read, written, lost.

use std::time::Duration;

use health::Claim;

use super::{Event, LEASE, WRITER, World};
use crate::faults;
use crate::management::{Fate, Mode};

impl World {
    pub(super) fn lease_starts(&mut self, replica: usize) {
        let (now, life) = (self.instant(), self.replicas[replica].life);
        let leads = self.replicas[replica].leads();
        if leads && self.random.one_in(3) {
            faults::see(self, replica);
        }
        let fate = self.management.fate_of_lease(&mut self.random);
        let claims = self.management.claims();
        let this = &mut self.replicas[replica];
        if leads && (fate == Fate::Done || self.management.mode == Mode::LeasesFail) {
            this.answered = now;
        }
        if fate == Fate::Done && !this.blind {
            this.answered = now;
            this.shards.observe(claims, now, now);
        } else {
            this.failed_first.get_or_insert(now);
            let was_unread = this.shards.is_unread();
            this.shards.failed(false, now);
            if this.shards.is_unread() && self.somebody_renews(replica) {
                // The exception of rule:one-owner-at-a-time.
                self.exceptions += 1;
                return faults::kill(self, replica);
            }
            self.unread += u64::from(!was_unread && self.replicas[replica].shards.is_unread());
        }
        self.at(LEASE, Event::Lease { replica, life });
        let this = &mut self.replicas[replica];
        if !this.shards.has_read() {
            return;
        }
        let view = this.shards.desired();
        this.shards.publishing(view);
        self.share_out(replica);
        self.lease_is_sent(replica, fate);
    }

    /// Whether a request for a lease of another replica has succeeded since the first failure of
    /// this one.
    fn somebody_renews(&self, replica: usize) -> bool {
        let first = self.replicas[replica].failed_first;
        let others = self.replicas.iter().filter(|it| !it.leads());
        first.is_some_and(|first| others.map(|it| it.answered).any(|at| at > first))
    }

    /// Sends a view as soon as no write about a released cluster can be carried out any more.
    pub(super) fn lease_is_sent(&mut self, replica: usize, fate: Fate) {
        let life = self.replicas[replica].life;
        let held = &self.replicas[replica].held;
        let of_given_up = |(who, when, uid): &(usize, u64, u64)| {
            (*who, *when) == (replica, life) && !held.contains_key(uid)
        };
        if self.written.keys().any(of_given_up) {
            return self.at(WRITER, Event::LeaseWaits { replica, life });
        }
        let latency = self.management.latency(&mut self.random);
        self.leases.insert((replica, life), (fate, self.now));
        let on_the_way = self.random.below(latency);
        self.at(on_the_way, Event::LeaseArrives { replica, life });
        self.at(latency, Event::LeaseEnds { replica, life });
    }

    pub(super) fn lease_arrives(&mut self, replica: usize, life: u64) {
        let Some((fate, _)) = self.leases.get(&(replica, life)) else { return };
        let this = &mut self.replicas[replica];
        if this.life != life || !matches!(fate, Fate::Done | Fate::Lost) {
            return;
        }
        let key = this.lease(replica);
        if this.leased && !self.management.leases.contains_key(&key) {
            // The server knows no lease of the version that the write rests on.
            self.leases.insert((replica, life), (Fate::Missing, self.now));
            return;
        }
        if let Some(view) = this.shards.pending().cloned() {
            this.leased = true;
            let (replica_name, settled) = (this.name.clone(), this.shards.is_settled());
            let claim = Claim { replica: replica_name, renewal: 0, view, settled };
            self.management.renew(key, claim, self.now);
        }
    }

    pub(super) fn lease_ends(&mut self, replica: usize) {
        let life = self.replicas[replica].life;
        let Some((fate, sent)) = self.leases.remove(&(replica, life)) else { return };
        if fate == Fate::Missing {
            self.replicas[replica].leased = false;
            self.replicas[replica].shards.lost();
        }
        if fate == Fate::Done {
            let (now, sent) = (self.instant(), self.start + Duration::from_millis(sent));
            let this = &mut self.replicas[replica];
            this.answered = sent;
            this.shards.published(sent, now);
            self.share_out(replica);
            let latency = self.management.latency(&mut self.random);
            self.at(latency, Event::LeasesRead { replica, life, began: self.now });
        } else {
            let now = self.instant();
            self.replicas[replica].shards.failed(false, now);
            self.share_out(replica);
        }
    }

    /// Result of a read: the state at some moment since it began.
    pub(super) fn leases_read(&mut self, replica: usize, began: u64) {
        let reads = self.management.fate_of_lease(&mut self.random) == Fate::Done;
        if reads && !self.replicas[replica].blind {
            let claims = self.management.claims();
            let (now, began) = (self.instant(), self.start + Duration::from_millis(began));
            self.replicas[replica].answered = began;
            self.replicas[replica].shards.observe(claims, began, now);
            self.share_out(replica);
        }
    }
}
