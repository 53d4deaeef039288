//! Status writes: when they are sent, and what becomes of them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use health::{Published, Written};

use super::{Event, WRITER, World};
use crate::management::Fate;

impl World {
    /// Hands what is published to the queue if it is worth a write.
    pub(crate) fn consider(&mut self, replica: usize, uid: u64) {
        let (now, policy) = (self.instant(), self.policy(uid));
        let this = &mut self.replicas[replica];
        let Some(held) = this.held.get_mut(&uid) else { return };
        let fingerprint = match held.member.published() {
            Some(published) => fingerprint(published),
            None if self.paused.contains(&uid) => PAUSED,
            None => return,
        };
        if let Some(urgency) = held.member.write_due(fingerprint, &policy, now) {
            held.member.handed_over(fingerprint, now);
            this.queue.submit(uid, (), urgency, now);
        }
    }

    pub(super) fn writes(&mut self, replica: usize) {
        let (now, life) = (self.instant(), self.replicas[replica].life);
        loop {
            let this = &mut self.replicas[replica];
            if this.queue.next_at(now).is_none_or(|at| at > now) || this.pace.take(now).is_err() {
                break;
            }
            let Some((uid, ())) = this.queue.next(now) else { break };
            let ours = this.held.get(&uid).filter(|_| this.may_probe(uid, now));
            let status = ours.map(|held| held.member.published().cloned());
            let fate = self.management.fate_of_write(uid, &mut self.random);
            self.written.insert((replica, life, uid), (status, fate));
            let latency = self.management.latency(&mut self.random);
            self.at(latency, Event::WriteEnds { replica, life, uid });
        }
        self.at(WRITER, Event::Writes { replica, life });
    }

    pub(super) fn write_ends(&mut self, replica: usize, life: u64, uid: u64) {
        let Some((status, fate)) = self.written.remove(&(replica, life, uid)) else { return };
        let object = self.management.objects.get_mut(&uid);
        let written = match (object, fate) {
            (None, _) => Written::Gone,
            (Some(_), Fate::Refused | Fate::Missing) => Written::Failed,
            (Some(_), Fate::Conflict) => Written::Conflict,
            (Some(object), Fate::Done | Fate::Lost) => {
                // A replica that gave the cluster up meanwhile has nothing to say any more.
                if let Some(status) = status {
                    object.status = status;
                    self.management.writes += 1;
                }
                if fate == Fate::Done { Written::Done } else { Written::Failed }
            }
        };
        let (now, draw) = (self.instant(), self.random.share());
        let period = self.policy(uid).cadence.period;
        let this = &mut self.replicas[replica];
        if this.life == life {
            this.queue.finish(&uid, written, now, period, draw);
        }
    }
}

/// The fingerprint of a status that says that the cluster is not probed.
const PAUSED: u64 = 0;

/// Everything that matters in a status.
pub(crate) fn fingerprint(published: &Published) -> u64 {
    let mut hasher = DefaultHasher::new();
    published.health.hash(&mut hasher);
    hasher.finish()
}
