//! [`Guard`]: whether members that do not answer are down, or cut off by a fault on the side of this process.

mod census;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::Report;
use census::{Census, WITNESSES, before};

pub use census::{Evidence, Round};

/// How long failures must be few before a partition counts as over.
const PARTITION_OVER_AFTER: Duration = Duration::from_secs(15);
/// How long failures must be few before an outage of many members counts as over.
const OUTAGE_OVER_AFTER: Duration = Duration::from_secs(30);
/// How long all references may be silent, while members answer, before they count as dead.
const REFERENCES_DEAD_AFTER: Duration = Duration::from_secs(60);
/// Rounds without a sign of the network in a row that make a partition.
const ROUNDS_DOWN: u32 = 2;
/// Rounds that find the same members failing, and make an outage of theirs.
const ROUNDS_OF_OUTAGE: u32 = 3;
/// With fewer fresh results further members are probed, as many as these.
const SAMPLE: usize = 50;
/// Members that fail before rounds come each second, or further members are probed.
const WORTH_A_LOOK: usize = 3;

/// Settings of the guard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GuardPolicy {
    /// Share of members that fail, from which on they are many.
    pub ratio: f64,
    /// Number of members that must fail to be many.
    pub min: usize,
    /// Time between two rounds.
    pub interval: Duration,
    /// Time limit of each target in a round.
    pub timeout: Duration,
    /// How long a suspicion lasts before it is a partition, and a partition before it is published.
    pub hold: Duration,
}

impl GuardPolicy {
    /// The time before a round whose answers of members count for it: long enough for a sample.
    fn window(&self) -> Duration {
        2 * self.interval + self.timeout
    }
}

/// What the guard knows about silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardState {
    /// The network works: a member that does not answer is down.
    Clear,
    /// The cause of failures is not known yet.
    Suspect,
    /// Many members are down, and the network works.
    MassOutage,
    /// This process is cut off.
    Partition,
}

impl GuardState {
    /// All states, for metrics.
    pub const ALL: [Self; 4] = [Self::Clear, Self::Suspect, Self::MassOutage, Self::Partition];

    /// The label of metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Suspect => "suspect",
            Self::MassOutage => "mass-outage",
            Self::Partition => "partition",
        }
    }
}

/// A result that waits for the guard.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// When the probe started that crossed the threshold.
    pub(crate) crossed: Instant,
    /// The last result.
    pub(crate) report: Report,
}

/// The decision after one round. [`crate::Member::obey`] applies it to each member.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    /// State of the guard before the round.
    pub before: GuardState,
    /// State of the guard now.
    pub state: GuardState,
    /// Share of members that fail.
    pub ratio: f64,
    /// Members that waited for this ruling.
    pub waiting: usize,
    /// Members whose crossing probe started by then are published as unreachable.
    pub release: Option<Instant>,
    /// Members that wait are published as unknown, for the partition.
    pub publish_partition: bool,
    /// The failures were ours: they are forgotten.
    pub forgive: bool,
    /// Members to probe over a new connection, by the hash of their UID.
    pub sample: Vec<u64>,
    /// When the next round begins, unless a member that begins to wait asks for one earlier.
    pub next_in: Duration,
}

/// One for a process: weighs the silence of members against the signs of life of everything else.
#[derive(Clone, Debug)]
pub struct Guard {
    policy: GuardPolicy,
    state: GuardState,
    /// When this state began.
    since: Instant,
    /// When the guard was last clear.
    episode_began: Option<Instant>,
    /// Rounds in a row without a sign of the network.
    rounds_down: u32,
    /// A round since the guard was last clear had no sign of the network, or found many failing members.
    is_in_doubt: bool,
    /// Since when failures are few.
    calm_since: Option<Instant>,
    /// Since when the references are silent while members answer.
    references_silent_since: Instant,
    /// The references answered at least once.
    references_answered: bool,
    outage: Option<OutageTest>,
    sampled_at: Option<Instant>,
}

/// The test for an outage of the members: some rounds with signs of the network, in which those that failed at first
/// still fail.
#[derive(Clone, Debug)]
struct OutageTest {
    failing: HashSet<u64>,
    began: Instant,
    rounds: u32,
    counted_at: Instant,
}

/// The signs of the network in a round.
#[derive(Clone, Copy, Debug)]
struct Signs {
    /// Half of the references, or enough members, answer.
    witness: bool,
    /// There is a sign of the network.
    up: bool,
    /// References that usually answer are silent.
    shaky: bool,
    /// The network works at least since then.
    proven_since: Instant,
}

impl Guard {
    /// A guard that begins without suspicion.
    pub fn new(policy: GuardPolicy, now: Instant) -> Self {
        Self {
            policy,
            state: GuardState::Clear,
            since: now,
            episode_began: None,
            rounds_down: 0,
            is_in_doubt: false,
            calm_since: None,
            references_silent_since: now,
            references_answered: false,
            outage: None,
            sampled_at: None,
        }
    }

    /// The state now.
    pub fn state(&self) -> GuardState {
        self.state
    }

    /// Takes in a round, and the last probe of every member at its end.
    pub fn judge(&mut self, round: &Round, members: &[Evidence]) -> Ruling {
        let times = (self.policy.interval, self.policy.window());
        let census = Census::of(round, members, times, self.episode_began);
        let signs = self.signs(round, &census);
        self.rounds_down = if signs.up { 0 } else { self.rounds_down.saturating_add(1) };
        let before = self.state;
        let state = self.next_state(round, &census, signs, members);
        let forgive = state == GuardState::Clear && before != state && self.is_in_doubt;
        if state != before {
            self.enter(state, round.ended);
        }
        let clean = signs.up && !signs.shaky;
        let released = match state {
            GuardState::Clear => clean,
            GuardState::MassOutage => clean && signs.witness,
            GuardState::Suspect | GuardState::Partition => false,
        };
        let held = round.ended.saturating_duration_since(self.since) >= self.policy.hold;
        let is_unclear = state != GuardState::MassOutage && census.failing >= WORTH_A_LOOK;
        let is_busy = census.waiting > 0 || is_unclear;
        Ruling {
            before,
            state,
            ratio: census.ratio(),
            waiting: census.waiting,
            release: released.then_some(signs.proven_since),
            publish_partition: state == GuardState::Partition && held,
            forgive: forgive && before != GuardState::MassOutage,
            sample: self.sample(round, &census, clean, members),
            next_in: if is_busy { Self::SPACING } else { self.policy.interval },
        }
    }

    /// Least time between the begins of two rounds.
    pub const SPACING: Duration = Duration::from_secs(1);

    fn signs(&mut self, round: &Round, census: &Census) -> Signs {
        let has_references = round.references > 0;
        let references = has_references && 2 * round.references_up >= round.references;
        let members = census.is_witness();
        let witness = references || members;
        self.references_answered |= references;
        // References that never answered are mistyped or gone: they prove nothing, in either direction.
        let by_api = round.api && !self.references_answered;
        let up = !round.local_down && (witness || by_api);
        // While nothing else answers either it is not known that the references are dead.
        if references || !up {
            self.references_silent_since = round.began;
        }
        let silent_for = round.began.saturating_duration_since(self.references_silent_since);
        let is_shaky = has_references && !references && silent_for < REFERENCES_DEAD_AFTER;
        let proven_since = if references || by_api {
            round.began
        } else {
            before(round.began, self.policy.window())
        };
        Signs { witness, up, shaky: is_shaky, proven_since }
    }

    fn next_state(
        &mut self,
        round: &Round,
        census: &Census,
        signs: Signs,
        members: &[Evidence],
    ) -> GuardState {
        let Self { state, policy, .. } = *self;
        let enough = census.failing >= policy.min;
        let many = enough && census.ratio() >= policy.ratio;
        // No member answers over a new connection, as when only open connections survive.
        let blind = enough && census.reached < WITNESSES;
        let calm = !enough || census.ratio() < policy.ratio / 2.0 && !blind;
        let clean = signs.up && !signs.shaky;
        let down = self.rounds_down >= ROUNDS_DOWN;
        let lasts = round.ended.saturating_duration_since(self.since) >= policy.hold;
        let is_over =
            |guard: &mut Self, after| clean && calm && guard.is_calm_for(round.ended, after);
        self.is_in_doubt |= many || !clean;
        if !(clean && calm) {
            self.calm_since = None;
        }
        let is_theirs = matches!(state, GuardState::Suspect | GuardState::Partition)
            && self.is_outage(round, clean && signs.witness && !calm, members);
        match state {
            _ if is_theirs => GuardState::MassOutage,
            _ if down => GuardState::Partition,
            GuardState::Clear if many || blind || !clean => GuardState::Suspect,
            GuardState::Clear => GuardState::Clear,
            GuardState::Suspect if clean && calm => GuardState::Clear,
            GuardState::Suspect if lasts && !(signs.up && calm) => GuardState::Partition,
            GuardState::Suspect => GuardState::Suspect,
            GuardState::MassOutage if is_over(self, OUTAGE_OVER_AFTER) => GuardState::Clear,
            GuardState::MassOutage if !signs.witness => GuardState::Suspect,
            GuardState::MassOutage => GuardState::MassOutage,
            GuardState::Partition if is_over(self, PARTITION_OVER_AFTER) => GuardState::Clear,
            GuardState::Partition => GuardState::Partition,
        }
    }

    fn enter(&mut self, state: GuardState, now: Instant) {
        if state == GuardState::Clear {
            (self.episode_began, self.is_in_doubt) = (None, false);
        } else {
            self.episode_began.get_or_insert(now);
            self.is_in_doubt |= state == GuardState::Partition;
        }
        (self.state, self.since, self.calm_since, self.outage) = (state, now, None, None);
    }

    /// Failures are few: whether they have been for so long.
    fn is_calm_for(&mut self, now: Instant, after: Duration) -> bool {
        let since = *self.calm_since.get_or_insert(now);
        now.saturating_duration_since(since) >= after
    }

    /// Whether the network has worked for some rounds, and those that failed in the first of them still fail. A network
    /// that comes back lets some of them answer.
    fn is_outage(&mut self, round: &Round, may_be: bool, members: &[Evidence]) -> bool {
        if !may_be {
            self.outage = None;
            return false;
        }
        if let Some(test) = &mut self.outage {
            let recovers = |it: &&Evidence| {
                it.answers && it.started > test.began && test.failing.contains(&it.member)
            };
            if 20 * members.iter().filter(recovers).count() < test.failing.len() {
                if round.began.saturating_duration_since(test.counted_at) >= self.policy.interval {
                    test.rounds += 1;
                    test.counted_at = round.began;
                }
                return test.rounds >= ROUNDS_OF_OUTAGE;
            }
        }
        let failing = members.iter().filter(|it| !it.answers && it.is_expected(self.episode_began));
        let failing = failing.map(|it| it.member).collect();
        self.outage =
            Some(OutageTest { failing, began: round.began, rounds: 1, counted_at: round.began });
        false
    }

    /// Members to probe over a new connection, where too little is known of the network: those that answered, and were
    /// probed the longest ago.
    fn sample(
        &mut self,
        round: &Round,
        census: &Census,
        clean: bool,
        members: &[Evidence],
    ) -> Vec<u64> {
        let has_no_reference = round.references > 0 && 2 * round.references_up < round.references;
        let is_unclear = !clean || has_no_reference || census.failing >= WORTH_A_LOOK;
        let is_known = census.fresh >= SAMPLE && census.answered_lately >= WITNESSES;
        // A little less than the rounds of ten seconds, so that the next sample comes before the window of this one ends.
        let pause = (2 * self.policy.interval).saturating_sub(Self::SPACING);
        let recently = |at| round.ended.saturating_duration_since(at) < pause;
        if !is_unclear || is_known || self.sampled_at.is_some_and(recently) {
            return Vec::new();
        }
        self.sampled_at = Some(round.ended);
        let mut answering: Vec<_> = members.iter().filter(|it| it.answers).collect();
        answering.sort_unstable_by_key(|it| it.started);
        answering.iter().take(SAMPLE).map(|it| it.member).collect()
    }
}

#[cfg(test)]
mod tests;
