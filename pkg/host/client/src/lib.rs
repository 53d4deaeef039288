//! Clients of the Kubernetes API server: one parsed configuration, one pool of connections, and a
//! stack of layers per user of it.
//!
//! `cmd` loads [`Clients`] once per server; its users build one [`Caller`] per controller and
//! purpose from a [`Profile`], or a [`kube::Client`] over the same layers. What a request meets on
//! its way, outermost first:
//!
//! 1. `gate`: the token bucket, which a watch does not pay;
//! 2. `attempt`: time limit, metrics, and the verdict on what an error says about the
//!    write;
//! 3. `identity`: the credentials as they were last read, or a service account's token;
//! 4. `dispatch`: the server's address, of the same reading; the leader's fence, asked when the
//!    request leaves and again when its body does; the server's own time limit; the caller's
//!    [`SendCheck`]; the wire.
//!
//! A layer is a `Sender` over the next one; a request passes all of them in its caller's own task,
//! without a box or a queue. Behind kube's API there are one of each.
//!
//! Nothing here repeats a request. A caller that must know whether a
//! write happened uses [`Caller::answer`] and reads [`CallError`].
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod call;
mod caller;
mod clients;
mod config;
mod error;
mod identity;
mod throttle;

#[cfg(test)]
mod testing;

pub use call::{
    Answer, AnswerError, CallError, RequestMetrics, SendCheck, TRAVEL, WaitingSince, answer,
    applicable_for,
};
pub use caller::{Caller, Identity, Profile};
pub use clients::Clients;
pub use config::ClientOptions;
pub use config::settings::{AddressError, PluginSpec, check_address};
pub use error::{ConfigError, KubeconfigError};
pub use identity::{PluginError, PluginLimits, PluginRuns, Printed, TokenError};
pub use throttle::{Throttle, ThrottleError, ThrottleMetrics};
