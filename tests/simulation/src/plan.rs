//! [`Plan`]: all that decides a run. Each fault has a number that does not depend on the faults before it, so
//! that a plan without some of them is the same run but for what follows from those.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::sieve::WATCHED;

/// A fault or an edit: what draws it, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(pub char, pub u64);

/// Requests to the API server.
pub(crate) const REQUEST: char = 'r';
/// Edits of Nodes, and what happens to processes and servers.
pub(crate) const LIFE: char = 'l';
/// Versions on their way to an API server, which are no faults.
pub(crate) const LAG: char = 'g';

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0, self.1)
    }
}

/// One in so many seeds has Clusters.
const CLUSTERS_OF: u64 = 4;
/// One in so many seeds has a Cluster on AWS, where things take a minute; more of the first thousand, which CI runs.
const AWS_OF: [u64; 2] = [8, 32];

/// The command that repeats the run of the variables before it.
const REPEATS: &str = "cargo test -p simulation --test seeds -- --nocapture a_seed_is_replayed";

fn is_on_aws(seed: u64) -> bool {
    seed % AWS_OF[usize::from(seed >= 1_000)] == 2
}

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed of all draws.
    pub seed: u64,
    /// Number of names that Nodes have.
    pub nodes: u64,
    /// Whether cluster-health runs too, with its members.
    pub has_members: bool,
    /// Whether blocks come from ClusterCIDRs.
    pub has_cluster_cidrs: bool,
    /// Requests in a second that each controller of the program may send: PATCHes wait for each other, and the
    /// world changes meanwhile.
    pub qps: u64,
    /// Time with faults and edits.
    pub busy: Duration,
    /// The faults and edits that happen; `None` for all that are drawn.
    pub only: Option<BTreeSet<Number>>,
    /// The lines of the trace are kept.
    pub keeps_trace: bool,
    /// What happens in place of random faults and edits.
    pub script: Option<Script>,
}

impl Plan {
    /// The plan of a seed.
    pub fn new(seed: u64) -> Self {
        let busy = Duration::from_secs(if is_on_aws(seed) { 240 } else { 60 });
        Self {
            seed,
            nodes: 8,
            has_members: true,
            has_cluster_cidrs: false,
            qps: 4,
            busy,
            only: None,
            keeps_trace: false,
            script: None,
        }
    }

    /// Whether cluster-api runs too, with Clusters.
    pub(crate) fn has_clusters(&self) -> bool {
        self.script.is_none() && self.seed % CLUSTERS_OF == 2
    }

    pub(crate) fn has_aws(&self) -> bool {
        self.has_clusters() && is_on_aws(self.seed)
    }

    /// The random numbers of one decision.
    pub(crate) fn rng(&self, number: Number) -> SmallRng {
        let Number(domain, number) = number;
        let mixed = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(domain) << 56);
        SmallRng::seed_from_u64(mixed.wrapping_add(number.wrapping_mul(0xd1b5_4a32_d192_ed03)))
    }

    /// Whether this fault may happen.
    pub(crate) fn permits(&self, number: Number) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&number))
    }

    /// The command that repeats the run.
    pub fn command(&self) -> String {
        let Self { seed, nodes, qps, busy, only, .. } = self;
        if let Some(script) = self.script {
            let of = if self.has_cluster_cidrs { "SIMULATION_CLUSTER_CIDRS=1 " } else { "" };
            return format!("{of}SIMULATION_SCRIPT={script} {REPEATS}");
        }
        let drawn = Self::new(*seed);
        let mut set = vec![format!("SIMULATION_SEED={seed}")];
        if *nodes != drawn.nodes {
            set.push(format!("SIMULATION_NODES={nodes}"));
        }
        if *qps != drawn.qps {
            set.push(format!("SIMULATION_QPS={qps}"));
        }
        if *busy != drawn.busy {
            set.push(format!("SIMULATION_SECONDS={}", busy.as_secs()));
        }
        if let Some(only) = only {
            let numbers: Vec<_> = only.iter().map(ToString::to_string).collect();
            set.push(format!("SIMULATION_ONLY={}", numbers.join(",")));
        }
        let set = set.join(" ");
        format!("{set} {REPEATS}")
    }

    /// The plan of the variables that [`Plan::command`] sets.
    ///
    /// # Panics
    /// One of them cannot be read.
    pub fn of_environment() -> Option<Self> {
        let script = std::env::var("SIMULATION_SCRIPT").ok();
        let has_cluster_cidrs = number_of("SIMULATION_CLUSTER_CIDRS") == Some(1);
        let scripted =
            script.map(|text| Self::of_script(Script::of_name(&text), has_cluster_cidrs));
        scripted.or_else(|| number_of("SIMULATION_SEED").map(Self::of_seed_and_environment))
    }

    /// The plan of a seed, but for what variables of the environment set.
    ///
    /// # Panics
    /// One of them cannot be read.
    #[allow(clippy::panic, reason = "a test fails by panicking")]
    pub fn of_seed_and_environment(seed: u64) -> Self {
        let mut plan = Self::new(seed);
        plan.nodes = number_of("SIMULATION_NODES").unwrap_or(plan.nodes);
        plan.qps = number_of("SIMULATION_QPS").unwrap_or(plan.qps);
        plan.busy = number_of("SIMULATION_SECONDS").map_or(plan.busy, Duration::from_secs);
        plan.only = std::env::var("SIMULATION_ONLY").ok().map(|list| {
            let read = |text: &str| {
                let number = text.chars().next().zip(text.get(1..).and_then(|it| it.parse().ok()));
                let (domain, number) =
                    number.unwrap_or_else(|| panic!("SIMULATION_ONLY={list}: {text} is no fault"));
                Number(domain, number)
            };
            list.split(',').filter(|text| !text.is_empty()).map(read).collect()
        });
        plan
    }
}

/// The number in a variable of the environment; `None` when it is not set.
///
/// # Panics
/// It is no number.
#[allow(clippy::panic, reason = "a test fails by panicking")]
pub fn number_of(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: set it to a number")))
}

/// What differs from the first run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Nothing.
    First,
    /// At the end of the scenario all processes crash, and the next ones find API servers that show no change after the
    /// one with this version, for a while.
    Stale(u64),
    /// The process that sends the write with this number crashes.
    Crash(u64, Moment),
    /// Until `until` no watch of the kind shows its changes from the version `from` on; then it has to list again.
    Unobserved {
        /// Plural of the kind.
        resource: &'static str,
        /// Version of the first change that is not shown.
        from: u64,
        /// Time since the start of the run.
        until: Duration,
    },
}

/// When a process crashes that sends a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The request does not leave.
    Before,
    /// The request is on its way and arrives.
    During,
    /// The write is stored, and the answer is on its way.
    After,
}

pub(crate) const MOMENTS: [Moment; 3] = [Moment::Before, Moment::During, Moment::After];

impl Moment {
    fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::During => "during",
            Self::After => "after",
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => write!(f, "first"),
            Self::Stale(version) => write!(f, "stale-{version}"),
            Self::Crash(number, moment) => {
                write!(f, "crash-{}-{number}", moment.name())
            }
            Self::Unobserved { resource, from, until } => {
                write!(f, "unobserved-{resource}-{from}-{}", until.as_millis())
            }
        }
    }
}

impl Script {
    /// The script of this name.
    ///
    /// # Panics
    /// It has another form.
    #[allow(clippy::panic, reason = "a test fails by panicking")]
    fn of_name(name: &str) -> Self {
        let parts: Vec<_> = name.split('-').collect();
        let number = |text: &str| {
            text.parse().unwrap_or_else(|_| panic!("SIMULATION_SCRIPT={name}: {text} is no number"))
        };
        let moment = |text: &str| MOMENTS.into_iter().find(|it| it.name() == text);
        let kind = |text: &str| WATCHED.into_iter().find(|it| *it == text);
        match &*parts {
            ["first"] => Script::First,
            ["stale", version] => Script::Stale(number(version)),
            ["crash", text, at] if let Some(moment) = moment(text) => {
                Script::Crash(number(at), moment)
            }
            ["unobserved", text, from, until] if let Some(resource) = kind(text) => {
                let until = Duration::from_millis(number(until));
                Script::Unobserved { resource, from: number(from), until }
            }
            _ => panic!("SIMULATION_SCRIPT={name}: no script has such a name"),
        }
    }
}

/// What becomes of a request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No connection: nothing is sent.
    NotSent,
    /// The connection breaks on the way to the server.
    Reset,
    /// The server refuses it with this code and does nothing.
    Refused(u16),
    /// The server carries it out, and the connection breaks.
    AnswerReset,
    /// The server carries it out, and the answer never arrives.
    AnswerLost,
    /// The server carries it out, and answers with this code.
    Failed(u16),
    /// The server works on it for seconds.
    Slow,
    /// As `Slow`, and the connection breaks before the server answers.
    Abandoned,
}

impl Fault {
    /// A name for the count of faults.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotSent => "request not sent",
            Self::Reset => "request lost",
            Self::Refused(429) => "429",
            Self::Refused(_) => "5xx without effect",
            Self::AnswerReset => "connection lost",
            Self::AnswerLost => "answer lost",
            Self::Failed(_) => "5xx after the effect",
            Self::Slow => "slow request",
            Self::Abandoned => "connection lost before the effect",
        }
    }

    fn draw(rng: &mut SmallRng) -> Self {
        match rng.random_range(0..15) {
            0 => Self::NotSent,
            1 => Self::Reset,
            2 => Self::Refused(429),
            3 => Self::Refused(if rng.random() { 500 } else { 503 }),
            4 | 5 => Self::AnswerReset,
            6 | 7 => Self::AnswerLost,
            8 | 9 => Self::Failed(if rng.random() { 504 } else { 500 }),
            10..13 => Self::Abandoned,
            _ => Self::Slow,
        }
    }
}

/// How a watch breaks its contract with one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// An addition or deletion is never sent.
    Skipped,
    /// It is sent twice.
    Doubled,
    /// It is sent after the next one.
    Reordered,
}

impl Breach {
    /// A name for the count of faults.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Skipped => "event skipped",
            Self::Doubled => "event doubled",
            Self::Reordered => "event reordered",
        }
    }
}

/// The times and the fault of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    /// Until the body is taken.
    pub(crate) open: Duration,
    /// From the client to the server: at most a second.
    pub(crate) travel: Duration,
    /// From its arrival to its effect.
    pub(crate) work: Duration,
    /// From the server to the client.
    pub(crate) back: Duration,
    pub(crate) fault: Option<Fault>,
    /// A watch breaks after this time.
    pub(crate) breaks_after: Option<Duration>,
    /// By another API server than the last one.
    pub(crate) is_moved: bool,
    /// Another allocator takes the block of a PATCH that meets a fault.
    pub(crate) is_contested: bool,
    /// How many events a watch sends before the breach.
    pub(crate) breach: Option<(u64, Breach)>,
    /// The process stands still for this time once the request has left.
    pub(crate) halt: Option<Duration>,
}

/// How many of a hundred requests of a kind have a fault.
#[derive(Clone, Copy)]
pub(crate) enum Share {
    /// A write of what controllers rely on: of a Node or an AWSCluster.
    Memory,
    /// Anything else.
    Other,
    /// All is well.
    None,
}

impl Plan {
    /// The fate of the request with this number.
    pub(crate) fn fate(&self, number: Number, share: Share) -> Fate {
        let mut rng = self.rng(number);
        let mut millis = |most: u64| Duration::from_millis(rng.random_range(1..=most));
        let (open, travel, work, back) = (millis(4), millis(6), millis(6), millis(6));
        let calm = Fate { open, travel, work, back, ..Fate::default() };
        let percent = match share {
            Share::Memory => 45,
            Share::Other => 6,
            Share::None => 0,
        };
        let is_drawn = rng.random_range(0..100) < percent;
        let breaks = percent > 0 && rng.random_range(0..2) == 0;
        let halts_of = if self.has_aws() { 240 } else { 60 };
        let halts = percent > 0 && rng.random_range(0..halts_of) == 0;
        let breaches = percent > 0 && rng.random_range(0..6) == 0;
        if !is_drawn && !breaks && !halts && !breaches || !self.permits(number) {
            return calm;
        }
        let breaks_after = breaks.then(|| Duration::from_millis(rng.random_range(1..20_000)));
        let fault = is_drawn.then(|| Fault::draw(&mut rng));
        let slow = match fault {
            Some(Fault::Slow | Fault::Abandoned) => rng.random_range(0..7_000),
            _ => 0,
        };
        let most = if rng.random() { 3_000 } else { 40_000 };
        let halt = halts.then(|| Duration::from_millis(rng.random_range(1..most)));
        let kinds = [Breach::Skipped, Breach::Doubled, Breach::Reordered];
        let kind = kinds[rng.random_range(0..kinds.len())];
        let breach = breaches.then(|| (rng.random_range(0..4), kind));
        let is_moved = rng.random_range(0..4) == 0;
        let is_contested = rng.random_range(0..3) == 0;
        let mut long = |most: u64| match rng.random_range(0..3_u8) {
            0 => Duration::from_millis(rng.random_range(1..=most)),
            _ => Duration::ZERO,
        };
        Fate {
            open: open + long(1_500),
            travel: (travel + long(900)).min(Duration::from_secs(1)),
            work: work + Duration::from_millis(slow),
            back: back + long(2_000),
            fault,
            breaks_after,
            is_moved,
            is_contested,
            breach,
            halt,
        }
    }
}
