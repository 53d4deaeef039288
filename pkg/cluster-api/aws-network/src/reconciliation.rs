//! [`Reconciliation`]: one cluster's way to its goal, as a state machine without I/O.
//!
//! The reconciler asks [`Reconciliation::next`] what to do, does it, and reports: reads to
//! [`Reconciliation::answer`], writes to [`Reconciliation::written`], the status patch to
//! [`Reconciliation::persisted`]. It asks again when all of a step is reported. A reconciliation
//! never waits: [`Step::Rest`] ends a pass, and [`Reconciliation::resume`] begins the next one
//! when the time has come.

use pass::{MaySend, Pass, Rejection, are_tags_refused, is_not_offered, needs_memory};

use crate::action::Action;
use crate::deletion::{Ending, Removal, plan_removal};
use crate::desired::{Desired, NatPolicy};
use crate::guard::hold_back;
use crate::identity::Identity;
use crate::memory::{Memory, Record, SEND_WITHIN, Timestamp};
use crate::observed::Observed;
use crate::outcome::{Answer, Outcome, Refusal, Refused, classify, classify_read};
use crate::plan::{Part, Plan, Planned, Problem, Situation};
use crate::planner::plan;
use crate::query::{Query, Reply};

mod pass;
mod rest;

/// Seconds after which attributes that only extra calls show are compared again, unless a flag says
/// otherwise.
pub const DEEP_CHECK_PERIOD: u64 = 3600;

/// The goal of a reconciliation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The cluster shall be so.
    Present(Box<Desired>),
    /// Nothing of the cluster shall be left.
    Absent(Removal),
}

impl Goal {
    /// The identity of the cluster.
    fn identity(&self) -> &Identity {
        match self {
            Self::Present(desired) => &desired.identity,
            Self::Absent(removal) => &removal.identity,
        }
    }

    fn asks_for_a_regional_nat(&self) -> bool {
        matches!(self, Self::Present(desired) if matches!(desired.nat, NatPolicy::Regional { .. }))
    }
}

/// The next step of the reconciler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read all of these, in any order or at once.
    Read(Vec<Query>),
    /// Look again at what takes its time. The read may be a few seconds old, when it began after
    /// the last write.
    Poll(Vec<Query>),
    /// Store this, durably, before the next step.
    Persist(Memory),
    /// Carry out all of these, in any order or at once.
    Write(Vec<Planned>),
    /// Nothing more for now.
    Rest(Rest),
}

/// Why and for how long a reconciliation rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The goal is reached, and nothing is awaited.
    Reached,
    /// Rest for so many seconds, then read again.
    For(u64),
    /// Something stands in the way, and nothing but a change of the spec or of AWS helps.
    Stuck,
}

/// One cluster's way to its goal.
#[derive(Clone, Debug)]
pub struct Reconciliation {
    goal: Goal,
    observed: Observed,
    memory: Memory,
    stored: Memory,
    deep_check_period: u64,
    /// The second of each period at which a deep check is due, whenever the last one was.
    deep_check_offset: Option<u64>,
    /// Load balancers of the last pass.
    earlier: Box<Observed>,
    /// Planned from what is known; it is what reports are made of.
    plan: Plan,
    /// Writes that wait for the memory to be stored, and since when.
    prepared: Option<(Timestamp, Vec<Planned>)>,
    pass: Pass,
    /// Writes that AWS refused and that are wanted all the same.
    rejections: Vec<Rejection>,
    /// Passes in a row that ended in doubt and did nothing.
    idle_passes: u32,
}

impl Reconciliation {
    /// A reconciliation that knows nothing of AWS yet.
    pub fn new(goal: Goal, memory: Memory) -> Self {
        let stored = memory.clone();
        let regional_nat_refusal =
            memory.regional_nat_refusal.clone().filter(|_| goal.asks_for_a_regional_nat());
        Self {
            goal,
            observed: Observed::default(),
            stored,
            memory: Memory { regional_nat_refusal, ..memory },
            deep_check_period: DEEP_CHECK_PERIOD,
            deep_check_offset: None,
            earlier: Box::default(),
            plan: Plan::default(),
            prepared: None,
            pass: Pass::default(),
            rejections: Vec::new(),
            idle_passes: 0,
        }
    }

    /// Sets the seconds between deep checks. Each cluster has them at a time of its own, so that
    /// clusters that are looked at together are not all checked together.
    #[must_use]
    pub fn with_deep_check_period(self, seconds: u64) -> Self {
        let owner = self.goal.identity().owner_id.bytes();
        let offset = owner.fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let deep_check_offset = offset.checked_rem(seconds);
        Self { deep_check_period: seconds, deep_check_offset, ..self }
    }

    /// Whether this pass also compares attributes that only extra calls show.
    pub fn is_deep_check_due(&self, now: Timestamp) -> bool {
        let Some(checked) = self.memory.deep_checked else { return true };
        let period = self.deep_check_period;
        let has_come = |offset: u64| {
            let number = |at: Timestamp| at.plus(offset).0.checked_div(period);
            number(checked) < number(now)
        };
        checked.age(now) >= period || self.deep_check_offset.is_some_and(has_come)
    }

    /// The network load balancers that the last pass saw.
    pub fn earlier(&self) -> &Observed {
        &self.earlier
    }

    /// The goal.
    pub(crate) fn goal(&self) -> &Goal {
        &self.goal
    }

    /// The resources on AWS, as far as they were read.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// The state to store in the status.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The last plan. After a rest it holds the writes and waits that are left.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// All problems, refusals of this pass included.
    pub fn problems(&self) -> Vec<Problem> {
        let are_tags_refused = are_tags_refused(&self.rejections);
        let refused = self.rejections.iter().map(|rejection| rejection.report(are_tags_refused));
        let planned = self.plan.problems.iter().cloned();
        let mut all: Vec<_> = planned.chain(self.failures()).chain(refused).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Reads and writes of the status that failed in this pass.
    pub fn failures(&self) -> Vec<Problem> {
        self.pass.failed.iter().map(|(problem, _)| problem.clone()).collect()
    }

    /// Decides the next step.
    pub fn next(&mut self, now: Timestamp) -> Step {
        if let Some(step) = self.write_prepared(now) {
            return step;
        }
        if !self.pass.due.is_empty() {
            return Step::Poll(std::mem::take(&mut self.pass.due));
        }
        self.begin_deletion(now);
        self.plan = self.make_plan(now);
        let reads: Vec<_> = self.new_reads();
        if !reads.is_empty() {
            return Step::Read(reads);
        }
        let writes = self.new_writes(now);
        if !writes.is_empty() {
            return self.prepare(writes, now);
        }
        self.close(now)
    }

    fn make_plan(&self, now: Timestamp) -> Plan {
        let (observed, memory) = (&self.observed, &self.memory);
        let mut plan = match &self.goal {
            Goal::Present(desired) => {
                let deep = self.is_deep_check_due(now);
                plan(&Situation { desired, observed, memory, now, deep })
            }
            Goal::Absent(removal) => plan_removal(&Ending { removal, observed, memory, now }),
        };
        hold_back(self.goal.identity(), observed, memory, &mut plan);
        plan
    }

    fn begin_deletion(&mut self, now: Timestamp) {
        if matches!(self.goal, Goal::Absent(_)) {
            self.memory.deleting_since.get_or_insert(now);
        }
    }

    /// A query that was answered and is wanted still has not helped.
    fn new_reads(&self) -> Vec<Query> {
        let is_new = |query: &&Query| !self.pass.asked.contains(query);
        self.plan.reads.iter().filter(is_new).cloned().collect()
    }

    fn new_writes(&self, now: Timestamp) -> Vec<Planned> {
        let mut writes: Vec<Planned> = Vec::new();
        for planned in &self.plan.actions {
            if !self.is_held(&planned.action, now) && !writes.contains(planned) {
                writes.push(planned.clone());
            }
        }
        writes
    }

    fn is_held(&self, action: &Action, now: Timestamp) -> bool {
        let is_barred = match self.pass.may_send {
            MaySend::Everything => false,
            MaySend::WithoutMemory => needs_memory(action),
            MaySend::Nothing => true,
        };
        let mut rejections = self.rejections.iter().filter(|rejection| rejection.until > now);
        is_barred
            || self.pass.held.contains(action)
            || rejections.any(|rejection| rejection.is_about(action))
    }

    /// Notes what is about to be created, and has that stored first.
    fn prepare(&mut self, writes: Vec<Planned>, now: Timestamp) -> Step {
        for planned in &writes {
            if let Some((logical, attempt)) = planned.action.creates() {
                let record = Record { since: now, id: None, attempt };
                let before = self.memory.records.insert(logical.clone(), record);
                self.pass.before.insert(logical, before);
            }
            let has_attributes = matches!(
                planned.part,
                Part::Vpc | Part::LoadBalancer | Part::SecondaryLoadBalancer
            );
            if has_attributes {
                self.memory.deep_checked = None;
            }
        }
        self.prepared = Some((now, writes));
        self.write_prepared(now).unwrap_or_else(|| self.close(now))
    }

    fn write_prepared(&mut self, now: Timestamp) -> Option<Step> {
        let (since, writes) = self.prepared.take()?;
        if self.memory != self.stored && self.pass.may_send != MaySend::WithoutMemory {
            self.prepared = Some((since, writes));
            return Some(Step::Persist(self.memory.clone()));
        }
        // Otherwise the writes are planned again, with new intents.
        (since.age(now) < SEND_WITHIN).then_some(Step::Write(writes))
    }

    /// Tells whether the memory was stored.
    ///
    /// When it was not, creates that rest on it are left out of this pass and everything else
    /// goes on (`rule:a-failing-status-stops-only-unprotected-creates`).
    pub fn persisted(&mut self, is_stored: bool) {
        if is_stored {
            self.stored = self.memory.clone();
            return;
        }
        self.pass.may_send = MaySend::WithoutMemory;
        for planned in self.prepared.take().into_iter().flat_map(|(_, writes)| writes) {
            let Some((logical, _)) = planned.action.creates() else { continue };
            match self.stored.records.get(&logical) {
                Some(record) => self.memory.records.insert(logical, record.clone()),
                None => self.memory.records.remove(&logical),
            };
            if needs_memory(&planned.action) {
                let message = "the status cannot be written, and without it this resource would \
                    be unknown after a crash";
                self.note(planned.part, Refusal::Failed, message.to_owned());
            }
        }
    }

    /// Takes in the answer to a query that was sent at `began`.
    pub fn answer(&mut self, query: Query, reply: Reply, began: Timestamp) {
        self.observed.take_in(&query, reply, began);
        self.pass.asked.insert(query);
    }

    /// Takes in the whole world, as the answer to all of these queries.
    pub(crate) fn see(&mut self, queries: Vec<Query>, world: &Observed) {
        self.observed = world.clone();
        self.pass.asked.extend(queries);
    }

    /// Takes in that a query was refused; none when there was no answer.
    pub fn unanswered(&mut self, query: Query, refused: Option<&Refused>) {
        let part = match self.goal {
            Goal::Present(_) => Part::Vpc,
            Goal::Absent(_) => Part::Deletion,
        };
        let refusal = refused.map_or(Refusal::Failed, classify_read);
        let why = refused.map_or_else(|| "AWS did not answer".to_owned(), ToString::to_string);
        self.note(part, refusal, format!("cannot read {query}: {why}"));
        self.pass.asked.insert(query);
    }

    fn note(&mut self, part: Part, refusal: Refusal, message: String) {
        self.pass.failed.push((Problem { part, reason: refusal.reason(), message }, refusal));
    }

    /// Takes in what became of a write.
    pub fn written(&mut self, planned: &Planned, outcome: Outcome, now: Timestamp) {
        let action = &planned.action;
        self.pass.held.push(action.clone());
        self.pass.asked.clear();
        self.pass.is_unpolled = true;
        match outcome {
            Outcome::Done(answer) => self.done(action, &answer, now),
            Outcome::Refused(refused) => self.refused(planned, &refused, now),
            Outcome::NotSent => {
                self.forget_intent(action, false);
                self.pass.may_send = MaySend::Nothing;
            }
            // The intent stays: what may have been created is looked for, not created again.
            Outcome::Unknown => self.observed = Observed::default(),
        }
    }

    fn done(&mut self, action: &Action, answer: &Answer, now: Timestamp) {
        self.rejections.retain(|rejection| !rejection.is_about(action));
        self.pass.progressed = true;
        self.observed.fold(action, answer, now);
        if let Some((logical, attempt)) = action.creates() {
            let id = Some(answer.id.clone());
            self.memory.records.insert(logical, Record { since: now, id, attempt });
        }
    }

    fn refused(&mut self, planned: &Planned, refused: &Refused, now: Timestamp) {
        let action = &planned.action;
        if is_not_offered(&self.observed, &self.rejections, planned, refused, now) {
            self.memory.regional_nat_refusal = Some(refused.code.clone());
            self.pass.progressed = true;
            self.forget_intent(action, false);
            return;
        }
        let refusal = classify(refused, action);
        match refusal {
            Refusal::Gone => {
                self.pass.was_reported_gone = true;
                self.observed.fold(action, &Answer::default(), now);
                return;
            }
            Refusal::Failed => self.observed = Observed::default(),
            Refusal::Outdated => {
                self.observed = Observed::default();
                self.forget_intent(action, false);
                self.pass.outdated.push((planned.clone(), refused.to_string()));
                return;
            }
            _ => self.forget_intent(action, refusal == Refusal::TokenReused),
        }
        Rejection::note(&mut self.rejections, planned, refusal, &refused.to_string(), now);
    }

    /// This create did nothing. What is known of an earlier one, whose outcome may be unknown, is
    /// known again.
    fn forget_intent(&mut self, action: &Action, is_used_up: bool) {
        let Some((logical, attempt)) = action.creates() else { return };
        match self.pass.before.remove(&logical).flatten() {
            _ if is_used_up => {
                let record = Record { since: Timestamp::default(), id: None, attempt: attempt + 1 };
                self.memory.records.insert(logical, record);
            }
            Some(before) => drop(self.memory.records.insert(logical, before)),
            None => drop(self.memory.records.remove(&logical)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::deletion::ServiceResources;

    #[test]
    fn deep_checks_of_clusters_that_were_checked_together_are_spread_over_the_period() {
        let mut by_sweep = BTreeMap::<u64, usize>::new();
        for number in 0..500_u64 {
            let owner_id =
                format!("{:08x}-{:04x}-4c1d", number.wrapping_mul(2_654_435_761), number);
            let (cluster, owner_tag) = (String::new(), String::new());
            let goal = Goal::Absent(Removal {
                identity: Identity { cluster, owner_id, owner_tag, adopt: false },
                vpc_id: None,
                load_balancer_names: Vec::new(),
                named_groups: std::collections::BTreeSet::new(),
                service_resources: ServiceResources::Stay,
                deletes_free_interfaces: false,
            });
            let memory = Memory { deep_checked: Some(Timestamp(1_000_000)), ..Memory::default() };
            let reconciliation =
                Reconciliation::new(goal, memory).with_deep_check_period(DEEP_CHECK_PERIOD);
            let is_due =
                |sweep: &u64| reconciliation.is_deep_check_due(Timestamp(1_000_000 + 600 * sweep));
            let first = (0..10).find(is_due).unwrap();
            *by_sweep.entry(first).or_default() += 1;
        }
        assert!(by_sweep.keys().all(|sweep| (1..=6).contains(sweep)), "{by_sweep:?}");
        assert!(by_sweep.values().all(|number| (60..=110).contains(number)), "{by_sweep:?}");
    }
}
