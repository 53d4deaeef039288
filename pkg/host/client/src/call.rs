//! The way of one request through a client, outermost layer first: `gate`, `attempt`, `dispatch`;
//! and what a caller learns from its end.

pub(crate) mod answer;
pub(crate) mod attempt;
pub(crate) mod caller;
mod decode;
pub(crate) mod dispatch;
pub(crate) mod error;
pub(crate) mod gate;
pub(crate) mod link;
pub(crate) mod metrics;
mod progress;
pub(crate) mod request;
pub(crate) mod response_size;
pub(crate) mod sender;
mod warnings;

pub use self::metrics::RequestMetrics;
pub use answer::{Answer, answer};
pub use caller::Caller;
pub use decode::AnswerError;
pub use error::CallError;
pub use progress::{TRAVEL, applicable_for};
pub use request::{SendCheck, WaitingSince};
