//! The way to an API server and back, for whoever talks to one: the clients of this process's own
//! cluster, and a prober with thousands of member clusters.
//!
//! Nothing here knows of leadership, throttling or metrics; `client` puts those on top.
//!
//! | file | holds |
//! |---|---|
//! | `error_chain.rs` | an error of hyper or kube with its causes in one line |
//! | `retry_after.rs` | how long the server wants to be left alone |
//! | `status.rs` | the `Status` object in which the server words its refusals |

mod error_chain;
mod retry_after;
mod status;

pub use error_chain::ErrorChain;
pub use retry_after::{RETRY_AFTER_MAX, retry_after};
pub use status::{Cause, Details, Status};
