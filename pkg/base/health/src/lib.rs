//! The health of a member cluster, decided: what one probe found, when the next one starts, what is
//! published and when it is written. Pure: no Kubernetes, no I/O, no clock of its own; callers pass
//! the time and the random numbers in. The rules stand in `RULES.md`.
//!
//! | file | holds |
//! |---|---|
//! | `verdict.rs` | [`Verdict`]: the four things that a probe can conclude |
//! | `code.rs` | [`Code`]: why a probe failed, as a short word that never changes |
//! | `finding.rs` | [`Finding`]: verdict, code and path of one probe |
//! | `classify.rs` | [`classify`]: from an HTTP answer to a finding |
//! | `report.rs` | [`Report`]: one completed probe |
//! | `attempts.rs` | [`Attempts`]: how one probe spends its time |
//! | `attempt.rs` | what it and the prober tell each other |
//! | `path_memory.rs` | [`PathMemory`]: which health path a server knows |
//! | `moment.rs` | [`Moment`]: a time on both clocks |
//! | `message.rs` | [`one_line`]: text that may stand in a condition |

mod attempt;
mod attempts;
mod classify;
mod code;
mod finding;
mod message;
mod moment;
mod path_memory;
mod report;
mod verdict;

pub use attempt::{Attempt, Conclusion, Connection, Outcome, Setup, Step};
pub use attempts::Attempts;
pub use classify::classify;
pub use code::Code;
pub use finding::{Finding, ProbePath};
pub use message::{MESSAGE_MAX, one_line};
pub use moment::Moment;
pub use path_memory::PathMemory;
pub use report::{Endpoints, Report};
pub use verdict::Verdict;
