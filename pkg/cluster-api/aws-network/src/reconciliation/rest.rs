//! How a pass of a reconciliation ends, and how the next one begins.

use std::collections::BTreeSet;

use super::pass::{MaySend, Rejection, lengthened};
use super::{Goal, Reconciliation, Rest, Step};
use crate::memory::{LATE, LogicalId, Timestamp};
use crate::outcome::{LONGEST_PAUSE, Refusal};
use crate::plan::{Planned, Reason};
use crate::planner::is_deeply_known;
use crate::query::Query;
use crate::tags::NAT_ZONE_TAG;

/// Seconds until a reconciliation that cannot see what it has done looks again.
const LOOK_AGAIN: u64 = 5;

impl Reconciliation {
    /// Ends a pass: what was written is polled once, what was learnt is stored, and then the
    /// reconciliation rests.
    pub(super) fn close(&mut self, now: Timestamp) -> Step {
        let awaited = self.awaited();
        if self.pass.is_unpolled && !awaited.is_empty() {
            self.pass.is_unpolled = false;
            return Step::Poll(awaited);
        }
        self.learn(now);
        if self.memory != self.stored && self.pass.may_send != MaySend::WithoutMemory {
            return Step::Persist(self.memory.clone());
        }
        Step::Rest(self.rest(now))
    }

    fn awaited(&self) -> Vec<Query> {
        let reads: BTreeSet<_> =
            self.plan.waits.iter().filter_map(|wait| wait.read.clone()).collect();
        reads.into_iter().collect()
    }

    fn learn(&mut self, now: Timestamp) {
        let is_right = self.plan.actions.is_empty() && self.plan.reads.is_empty();
        if let Goal::Present(desired) = &self.goal
            && is_right
            && self.is_deep_check_due(now)
            && is_deeply_known(desired, &self.observed)
        {
            self.memory.deep_checked = Some(now);
        }
        for (planned, code) in std::mem::take(&mut self.pass.outdated) {
            if self.plan.actions.contains(&planned) {
                Rejection::note(&mut self.rejections, &planned, Refusal::Outdated, &code, now);
            }
        }
        if self.plan.reads.is_empty() {
            let plan = &self.plan;
            let is_wanted = |rejection: &Rejection| {
                plan.actions.iter().any(|planned| rejection.is_about(&planned.action))
            };
            self.rejections.retain(is_wanted);
            self.drop_unused_names();
            self.drop_unmade_nat_gateways();
        }
        if self.rejections.iter().any(|rejection| rejection.problem.reason == Reason::InUse) {
            self.memory.blocked_since.get_or_insert(now);
        } else {
            self.memory.blocked_since = None;
        }
    }

    /// Drops records of names that neither the spec nor a read shows: each pass would look for them.
    fn drop_unused_names(&mut self) {
        let Goal::Present(desired) = &self.goal else { return };
        let (balancers, groups) = (&self.observed.network, &self.observed.target_groups);
        if groups.get().is_none() {
            return;
        }
        let (names, read_at) = (desired.target_group_names(), groups.read_at());
        self.memory.records.retain(|logical, record| {
            let (name, is_seen) = match logical {
                LogicalId::NamedLoadBalancer(name) => {
                    (name, balancers.all().iter().any(|it| it.name == *name))
                }
                LogicalId::NamedTargetGroup(name) => {
                    (name, groups.all().iter().any(|it| it.name == *name))
                }
                _ => return true,
            };
            is_seen || names.contains(name) || record.since.age(read_at) < LATE
        });
    }

    /// Drops records of NAT gateways whose create had no answer, and which no read shows in time. Where
    /// the policy has changed meanwhile, no other create would end them.
    fn drop_unmade_nat_gateways(&mut self) {
        let seen = &self.observed.nat_gateways;
        if seen.get().is_none() {
            return;
        }
        self.memory.records.retain(|logical, record| {
            let LogicalId::NatGateway(zone) = logical else { return true };
            let may_be_late = record.since.age(seen.read_at()) < LATE;
            let is_seen = seen.all().iter().any(|it| it.tags.get(NAT_ZONE_TAG) == Some(zone));
            // The attempt is a part of the next token.
            record.id.is_some() || record.attempt > 0 || may_be_late || is_seen
        });
    }

    fn rest(&mut self, now: Timestamp) -> Rest {
        // What was done and is planned all the same is not visible yet, or never will be.
        let is_rejected = |planned: &Planned| {
            self.rejections.iter().any(|rejection| rejection.is_about(&planned.action))
        };
        let is_in_doubt = !self.plan.reads.is_empty() || !self.plan.actions.iter().all(is_rejected);
        let failed = self.pass.failed.iter().map(|(_, refusal)| refusal.pause()).min();
        let doubt = failed.or(is_in_doubt.then_some(LOOK_AGAIN));
        self.idle_passes =
            if self.pass.progressed || doubt.is_none() { 0 } else { self.idle_passes + 1 };
        let doubt = doubt.map(|pause| lengthened(pause, LONGEST_PAUSE, self.idle_passes));
        let rejections = self.rejections.iter().map(|rejection| rejection.until.left(now));
        let waits = self.plan.waits.iter().map(|wait| wait.after);
        match waits.chain(self.plan.look_again).chain(doubt).chain(rejections).min() {
            Some(after) => Rest::For(after.max(1)),
            None if self.plan.problems.iter().any(|problem| !problem.reason.is_advice()) => {
                Rest::Stuck
            }
            // All is read once more before it is believed.
            None if self.pass.was_reported_gone => Rest::For(LOOK_AGAIN),
            None => Rest::Reached,
        }
    }

    /// Begins the next pass after a rest. What was awaited is read; everything is, when nothing
    /// was awaited or when what is known is in doubt.
    pub fn resume(&mut self) {
        let pass = std::mem::take(&mut self.pass);
        let only_waits = self.plan.actions.is_empty()
            && self.plan.reads.is_empty()
            && pass.failed.is_empty()
            && self.plan.look_again.is_none()
            && !self.awaited().is_empty();
        if only_waits {
            self.pass.due = self.awaited();
        } else {
            *self.earlier = std::mem::take(&mut self.observed).only_network();
        }
    }
}
