//! The way of one request through a client, outermost layer first: `gate`, `attempt`, `dispatch`;
//! and what a caller learns from its end.

pub(crate) mod answer;
pub(crate) mod attempt;
pub(crate) mod dispatch;
pub(crate) mod error;
pub(crate) mod gate;
pub(crate) mod metrics;
pub(crate) mod request;

pub use answer::{Answer, AnswerError, answer};
pub use error::CallError;
pub use metrics::RequestMetrics;
pub use request::{SendCheck, TRAVEL, WaitingSince, applicable_for};
