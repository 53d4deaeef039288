//! The health of a member cluster, decided: what one probe found, when the next one starts, what is
//! published and when it is written. Pure: no Kubernetes, no I/O, no clock of its own; callers pass
//! the time and the random numbers in. The rules stand in `RULES.md`.
//!
//! [`Member`] is the state of one cluster and ties the parts together; a prober drives [`Attempts`]
//! within each probe, and [`WriteQueue`] carries what is published to the API server.
//!
//! | file | holds |
//! |---|---|
//! | `code.rs` | [`Code`]: why a probe failed, as a short word that never changes |
//! | `finding.rs` | [`Finding`], [`Verdict`], [`Report`]: what one probe found; [`Moment`]: a time on both clocks |
//! | `classify.rs` | [`classify`]: from an HTTP answer to a finding; [`PathMemory`]: which health path a server knows |
//! | `attempts.rs` | [`Attempts`]: how one probe spends its time |
//! | `attempt.rs` | what it and the prober tell each other |
//! | `policy.rs` | [`Policy`]: how a cluster is watched over |
//! | `member.rs` | [`Member`]: everything that is remembered about one cluster |
//! | `thresholds.rs` | [`Tally`]: how many probes in a row said the same |
//! | `damping.rs` | a cluster that keeps changing has to be well for longer |
//! | `schedule.rs` | when the next probe starts |
//! | `standing.rs` | [`Standing`]: what is published, and the statuses and reasons that say so |
//! | `published.rs` | [`Published`]: the same with its times |
//! | `causes.rs` | whether another cause of the same trouble is told |
//! | `lifetime.rs` | [`Lifetime`]: until when a credential is good, and when its end is told |
//! | `message.rs` | [`explain`]: the message of a condition; [`one_line`]: text that may stand in it |
//! | `availability.rs` | the share of the time in which a cluster was well |
//! | `write_gate.rs` | [`WriteGate`]: whether a state is worth a write |
//! | `write_queue.rs` | [`WriteQueue`]: the status writes that wait, none lost |
//! | `capacity.rs` | how many probes may be under way at once |
//! | `shards.rs` | [`Shards`]: which replica probes a cluster |
//! | `spread.rs` | where a cluster lies among all others |

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
pub use code::Code;
pub use finding::{Endpoints, Finding, Moment, ProbePath, Report, Verdict};
pub use lifetime::{ExpiryNotice, ExpiryStage, Lifetime};
pub use member::{Arrival, Effect, Last, Member};
pub use message::{explain, one_line};
pub use policy::Policy;
pub use published::{Change, Condition, Published};
pub use schedule::Cadence;
pub use shards::{Claim, LEADER, SHARD_INHERITED, SHARD_MARGIN, SHARD_TERM, Shards, View};
pub use standing::{Standing, Status};
pub use thresholds::Damping;
pub use thresholds::{Decision, Tally, Thresholds};
pub use write_gate::hash;
pub use write_gate::{Urgency, WriteGate};
pub use write_queue::{WriteQueue, Written};
