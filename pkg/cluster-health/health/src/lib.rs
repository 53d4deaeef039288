//! The health of a member cluster, decided: what one probe found, when the next one starts, what is
//! published and when it is written. Pure: no Kubernetes, no I/O, no clock of its own; callers pass
//! the time and the random numbers in. The rules stand in `RULES.md`.
//!
//! [`Member`] is the state of one cluster and ties the parts together; a prober drives [`Attempts`]
//! within each probe, and [`WriteQueue`] carries what is published to the API server.
//!
//! | file | holds |
//! |---|---|
//! | `code.rs` | [`Verdict`], and [`Code`]: why a probe failed, as a short word that never changes |
//! | `finding.rs` | [`Finding`], [`Report`]: the result of one probe; [`classify`]: from an HTTP answer to a finding; [`one_line`]: text for messages |
//! | `attempts.rs` | [`Attempts`]: the attempts of one probe within its time limit |
//! | `schedule.rs` | [`Policy`]: period, thresholds and damping of a cluster; when the next probe starts |
//! | `member.rs`, `member/` | [`Member`]: the state of one cluster; what becomes of one that does not answer, or is judged by its Lease alone; [`explain`]: its message |
//! | `beats.rs` | [`Beats`]: signs of life of clusters that cannot be probed |
//! | `guard.rs` | [`Guard`]: whether silent members are down, or this process is cut off |
//! | `checks.rs`, `checks/` | [`Checks`]: what objects of a cluster say while it answers |
//! | `thresholds.rs` | [`Tally`]: equal results in a row; [`Damping`]: higher thresholds for a cluster that flaps |
//! | `published.rs` | [`Health`]: the published verdict; [`Published`]: the published state with its times; whether a new cause of a failure gets an event |
//! | `lifetime.rs` | [`Lifetime`]: validity of a credential, and notices before its end |
//! | `availability.rs`, `availability/` | [`Ratios`]: the share of the time in which a cluster was well; [`Record`]: its text in objects; [`Objective`] |
//! | `write_gate.rs` | whether a state is worth a write; delays of first probes and heartbeats |
//! | `write_queue.rs` | [`WriteQueue`]: the status writes that wait, none lost |
//! | `write_window.rs` | [`WriteWindow`]: how many writes may be under way, by the 429s of the server |
//! | `capacity.rs` | limit of concurrent probes |
//! | `shards.rs` | [`Shards`]: which replica probes a cluster |
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod attempts;
mod availability;
mod beats;
mod capacity;
mod checks;
mod code;
mod finding;
mod guard;
mod lifetime;
mod member;
mod published;
mod schedule;
mod shards;
mod thresholds;
mod write_gate;
mod write_queue;
mod write_window;

pub use attempts::{Attempt, AttemptOutcome, Attempts, Conclusion, Connection, Setup, Step};
pub use availability::Ratios;
pub use availability::objective::{Objective, WithinObjective, observed_ratio, within_objective};
pub use availability::record::{Record, Sums};
pub use beats::{Beat, Beats, EvidenceSource, Heard, Renewal};
pub use capacity::{Load, is_insufficient, probes_at_once};
pub use checks::{
    Check, CheckChange, CheckEvidence, CheckKind, CheckReport, CheckStatus, Checks, SeenLease,
    Workload,
};
pub use code::{Code, Verdict};
pub use finding::{Endpoints, Finding, Moment, PathMemory, ProbePath, Report, classify, one_line};
pub use guard::{Evidence, Guard, GuardPolicy, GuardState, Round, Ruling};
pub use lifetime::{ExpiryNotice, ExpiryStage, Lifetime};
pub use member::readings::explain;
pub use member::{Arrival, Effect, Last, Member};
pub use published::{Change, Condition, Health, Published, Status};
pub use schedule::{Cadence, Policy};
pub use shards::{Claim, LEADER, SHARD_INHERITED, SHARD_MARGIN, SHARD_TERM, Shards, View};
pub use thresholds::{Damping, Decision, Tally, Thresholds};
pub use write_gate::{Urgency, hash};
pub use write_queue::{WriteQueue, Written};
pub use write_window::WriteWindow;
