//! [`World`]: a cloud, the status of one cluster, and a reconciler that can be made to fail.

use aws_fixtures::{CLUSTER, identity};
use aws_network::{
    Goal, Identity, LogicalId, Memory, Outcome, Planned, Query, Reconciliation, Refused, Rest,
    Step, Timestamp,
};
use cloud_double::{Cloud, Nature};

/// Seconds and reads for which what was just made may not be shown.
const LATE_FOR: u64 = 5;
const LATE_READS: u32 = 3;

/// A fault of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process ends before the call is sent.
    CrashBefore,
    /// The call is carried out; the process ends before the answer comes.
    CrashAfter,
    /// The call is carried out and its answer is lost; the process lives.
    AnswerLost,
    /// The call is lost on its way; the process cannot tell.
    CallLost,
    /// The answer is lost, and the SDK sends the call again where it may.
    Repeated,
    /// The call is carried out and answered; what it has made is not visible yet.
    Late,
    /// The call is carried out, the process ends before the answer, and what was made is not visible yet.
    LateAndCrash,
    /// The call is carried out, its answer is lost, and what was made is not visible yet.
    LateAndLost,
}

impl Fault {
    pub(crate) const ALL: [Self; 8] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::AnswerLost,
        Self::CallLost,
        Self::Repeated,
        Self::Late,
        Self::LateAndCrash,
        Self::LateAndLost,
    ];

    fn is_late(self) -> bool {
        matches!(self, Self::Late | Self::LateAndCrash | Self::LateAndLost)
    }
}

/// When what goes wrong: asked with the number of each write, from 0.
pub(crate) type Faults<'a> = dyn FnMut(usize) -> Option<Fault> + 'a;

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) cloud: Cloud,
    pub(crate) memory: Memory,
    /// The status cannot be written.
    pub(crate) status_fails: bool,
    /// Calls of the run so far: reads as AWS counts them, and writes in order.
    pub(crate) reads: usize,
    pub(crate) writes: Vec<Planned>,
    /// Steps of the last run since its last fault.
    pub(crate) steps: usize,
    /// The identity of the cluster of the present run.
    identity: Identity,
    /// Checked after each write.
    pub(crate) invariant: fn(&Cloud),
}

/// The calls that a query takes.
fn calls(query: &Query) -> usize {
    match query {
        // Where there is no load balancer: load balancers and target groups by name.
        Query::NetworkLoadBalancers(_) | Query::VpcAttributes(_) => 2,
        Query::NetworkAttributes { target_groups, .. } => 1 + target_groups.len(),
        _ => 1,
    }
}

impl World {
    pub(crate) fn new(nature: Nature, seed: u64) -> Self {
        Self {
            cloud: Cloud::new(nature, seed, CLUSTER),
            memory: Memory::default(),
            status_fails: false,
            reads: 0,
            writes: Vec::new(),
            steps: 0,
            identity: identity(),
            invariant: |_| {},
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.cloud.now)
    }

    /// Forgets the calls, lets an hour pass, and runs without faults.
    pub(crate) fn run_later(&mut self, goal: &Goal) -> (Reconciliation, Rest) {
        (self.reads, self.writes) = (0, Vec::new());
        self.cloud.advance(1800);
        self.run(goal, &mut |_| None)
    }

    /// Runs until the process dies between a write and its answer.
    pub(crate) fn run_until_crash(&mut self, goal: &Goal, point: usize) {
        self.run_until(goal, point, Fault::CrashAfter);
    }

    /// Like [`Self::run_until_crash`], with this fault of the write.
    pub(crate) fn run_until(&mut self, goal: &Goal, point: usize, fault: Fault) {
        self.run_some(goal, &mut |sent| (sent == point).then_some(fault), false);
    }

    /// A reconciliation that has read what it needs and has written nothing.
    pub(crate) fn look(&mut self, goal: &Goal) -> Reconciliation {
        let mut reconciliation = Reconciliation::new(goal.clone(), self.memory.clone());
        loop {
            let mut next = reconciliation.clone();
            match next.next(self.now()) {
                Step::Read(queries) | Step::Poll(queries) => self.read(&mut next, queries),
                _ => return reconciliation,
            }
            reconciliation = next;
        }
    }

    /// Runs for so many seconds. The reconciliation as it then is, and how it has ended, if it has.
    pub(crate) fn run_once_for(
        &mut self,
        goal: &Goal,
        seconds: u64,
    ) -> (Reconciliation, Option<Rest>) {
        self.go_on(Reconciliation::new(goal.clone(), self.memory.clone()), seconds)
    }

    /// Like [`Self::run_once_for`], with this reconciliation.
    pub(crate) fn go_on(
        &mut self,
        mut reconciliation: Reconciliation,
        seconds: u64,
    ) -> (Reconciliation, Option<Rest>) {
        let end = self.cloud.now + seconds;
        loop {
            match reconciliation.next(self.now()) {
                Step::Read(queries) | Step::Poll(queries) => {
                    self.read(&mut reconciliation, queries);
                }
                Step::Persist(memory) => self.store(&mut reconciliation, memory),
                Step::Write(writes) => {
                    assert!(self.write(&mut reconciliation, writes, &mut 0, &mut |_| None));
                }
                Step::Rest(Rest::For(_)) if self.cloud.now >= end => return (reconciliation, None),
                Step::Rest(Rest::For(seconds)) => {
                    self.cloud.advance(seconds);
                    reconciliation.resume();
                }
                Step::Rest(rest) => return (reconciliation, Some(rest)),
            }
        }
    }

    /// Runs to the end of the way, or until the reconciliation is stuck.
    pub(crate) fn run(&mut self, goal: &Goal, faults: &mut Faults<'_>) -> (Reconciliation, Rest) {
        self.run_some(goal, faults, true).unwrap()
    }

    /// Runs a reconciliation with faults; a process that dies is restarted or not.
    fn run_some(
        &mut self,
        goal: &Goal,
        faults: &mut Faults<'_>,
        restarts: bool,
    ) -> Option<(Reconciliation, Rest)> {
        self.identity = match goal {
            Goal::Present(desired) => desired.identity.clone(),
            Goal::Absent(removal) => removal.identity.clone(),
        };
        let mut reconciliation = Reconciliation::new(goal.clone(), self.memory.clone());
        let mut sent = 0;
        self.steps = 0;
        for _ in 0..5000 {
            self.steps += 1;
            let step = reconciliation.next(self.now());
            let held = reconciliation
                .plan()
                .problems
                .iter()
                .find(|it| it.message.contains("not known as a resource"));
            assert!(held.is_none(), "rule:no-write-names-what-is-not-ours: {held:?}");
            match step {
                Step::Read(queries) | Step::Poll(queries) => {
                    self.read(&mut reconciliation, queries);
                }
                Step::Persist(memory) => self.store(&mut reconciliation, memory),
                Step::Write(writes) => {
                    if !self.write(&mut reconciliation, writes, &mut sent, faults) {
                        self.cloud.advance(1);
                        if !restarts {
                            return None;
                        }
                        reconciliation = Reconciliation::new(goal.clone(), self.memory.clone());
                    }
                }
                Step::Rest(Rest::For(seconds)) => {
                    self.cloud.advance(seconds);
                    reconciliation.resume();
                }
                Step::Rest(end) => return Some((reconciliation, end)),
            }
        }
        panic!("no end: {:#?}\n{:#?}", reconciliation.plan(), reconciliation.problems());
    }

    fn store(&mut self, reconciliation: &mut Reconciliation, memory: Memory) {
        if !self.status_fails {
            self.memory = memory;
        }
        reconciliation.persisted(!self.status_fails);
    }

    fn read(&mut self, reconciliation: &mut Reconciliation, queries: Vec<Query>) {
        let mut seen = Vec::new();
        for query in queries {
            assert!(!seen.contains(&query), "{query:?} twice in one step");
            self.reads += calls(&query);
            let reply = self.cloud.read(&query);
            reconciliation.answer(query.clone(), reply, self.now());
            seen.push(query);
        }
    }

    /// Sends a wave in a random order. Whether the process lives.
    fn write(
        &mut self,
        reconciliation: &mut Reconciliation,
        mut writes: Vec<Planned>,
        sent: &mut usize,
        faults: &mut Faults<'_>,
    ) -> bool {
        while !writes.is_empty() {
            let next = self.cloud.draw(writes.len() as u64);
            let planned = writes.remove(usize::try_from(next).unwrap());
            let fault = faults(*sent);
            *sent += 1;
            if fault.is_some() {
                self.steps = 0;
            }
            if fault == Some(Fault::CrashBefore) {
                return false;
            }
            let outcome = self.send(&planned, fault);
            (self.invariant)(&self.cloud);
            if matches!(fault, Some(Fault::CrashAfter | Fault::LateAndCrash)) {
                return false;
            }
            reconciliation.written(&planned, outcome, self.now());
        }
        true
    }

    fn send(&mut self, planned: &Planned, fault: Option<Fault>) -> Outcome {
        self.writes.push(planned.clone());
        let action = &planned.action;
        if let Some((logical, _)) = action.creates() {
            self.check_intent(&logical);
        }
        if fault == Some(Fault::CallLost) {
            return Outcome::Unknown;
        }
        let touched = self.cloud.touched_of_others(&self.identity, action);
        assert_eq!(touched, None);
        let mut called = self.cloud.call(action);
        if let Ok(answer) = &called
            && fault.is_some_and(Fault::is_late)
            && !answer.id.is_empty()
        {
            self.cloud.make_late(&answer.id, LATE_FOR, LATE_READS);
        }
        match fault {
            Some(Fault::Repeated) if action.is_repeatable() => called = self.cloud.call(action),
            Some(Fault::Repeated | Fault::AnswerLost | Fault::LateAndLost) => {
                return Outcome::Unknown;
            }
            _ => {}
        }
        match called {
            Ok(answer) => Outcome::Done(answer),
            Err(code) => Outcome::Refused(Refused::with_code(code)),
        }
    }

    /// Asserts that the intent of each unprotected create is stored before the create is sent.
    fn check_intent(&self, logical: &LogicalId) {
        let record = self.memory.records.get(logical);
        let is_known =
            record.is_some_and(|record| record.id.is_none() && record.since <= self.now());
        assert!(is_known || logical.is_protected(), "{logical} is created without an intent");
    }
}
