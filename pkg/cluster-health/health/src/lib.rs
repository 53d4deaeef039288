//! The health of a member cluster: what one probe found, when the next one starts, what is
//! published and when it is written. Pure: no Kubernetes, no I/O, no clock of its own; callers pass
//! the time and the random numbers in. The rules stand in `RULES.md`.
//!
//! [`Member`] is the state of one cluster and ties the parts together; a prober drives [`Attempts`]
//! within each probe, and [`WriteQueue`] carries what is published to the API server.
//!
//! | file | holds |
//! |---|---|
//! | `code.rs` | [`Verdict`], and [`Code`]: why a probe failed, as a short word that never changes |
//! | `finding.rs` | [`Finding`], [`Report`]: the result of one probe; [`Moment`]: a time on both clocks |
//! | `classify.rs` | [`classify`]: from an HTTP answer to a finding; [`PathMemory`]: which health path a server knows |
//! | `attempts.rs`, `attempt.rs` | [`Attempts`]: the attempts of one probe within its time limit |
//! | `policy.rs` | [`Policy`]: period, thresholds and damping of a cluster |
//! | `member.rs` | [`Member`]: the state of one cluster |
//! | `thresholds.rs` | [`Tally`]: equal results in a row; [`Damping`]: higher thresholds for a cluster that flaps |
//! | `schedule.rs` | [`Cadence`]: when the next probe starts |
//! | `standing.rs` | [`Standing`]: the published verdict, with its statuses and reasons |
//! | `published.rs` | [`Published`]: the published state with its times |
//! | `causes.rs` | whether a new cause of a failure gets an event |
//! | `lifetime.rs` | [`Lifetime`]: validity of a credential, and notices before its end |
//! | `message.rs`, `one_line.rs` | [`explain`]: the message of a condition; [`one_line`]: text that may stand in it |
//! | `availability.rs` | [`Ratios`]: the share of the time in which a cluster was well |
//! | `write_gate.rs` | whether a state is worth a write; delays of first probes and heartbeats |
//! | `write_queue.rs` | [`WriteQueue`]: the status writes that wait, none lost |
//! | `capacity.rs` | limit of concurrent probes |
//! | `shards.rs` | [`Shards`]: which replica probes a cluster |

mod attempt;
mod attempts;
mod availability;
mod capacity;
mod causes;
mod classify;
mod code;
mod finding;
mod lifetime;
mod member;
mod message;
mod one_line;
mod policy;
mod published;
mod schedule;
mod shards;
mod standing;
mod thresholds;
mod write_gate;
mod write_queue;

pub use attempt::{Attempt, Conclusion, Connection, Outcome, Setup, Step};
pub use attempts::Attempts;
pub use availability::Ratios;
pub use capacity::{Load, is_insufficient, probes_at_once};
pub use classify::{PathMemory, classify};
pub use code::{Code, Verdict};
pub use finding::{Endpoints, Finding, Moment, ProbePath, Report};
pub use lifetime::{ExpiryNotice, ExpiryStage, Lifetime};
pub use member::{Arrival, Effect, Last, Member};
pub use message::explain;
pub use one_line::one_line;
pub use policy::Policy;
pub use published::{Change, Condition, Published};
pub use schedule::Cadence;
pub use shards::{Claim, LEADER, SHARD_INHERITED, SHARD_MARGIN, SHARD_TERM, Shards, View};
pub use standing::{Standing, Status};
pub use thresholds::{Damping, Decision, Tally, Thresholds};
pub use write_gate::{Urgency, hash};
pub use write_queue::{WriteQueue, Written};
