//! Clients of the Kubernetes API server: one parsed configuration, one pool of connections, and a
//! stack of layers per user of it.
//!
//! `cmd` loads [`Clients`] once per server; its users build one [`kube::Client`] per controller and
//! purpose from a [`Profile`]. What a request meets on its way, outermost first:
//!
//! 1. base address of the server;
//! 2. `gate`: the token bucket, which a watch does not pay;
//! 3. `attempt`: time limit, metrics, and the verdict on what an error says about the
//!    write;
//! 4. credentials: the root identity's, as they were last read, or a service account's token;
//! 5. `dispatch`: the leader's fence, asked when the request leaves and again when its
//!    body does; the server's own time limit; the caller's [`SendCheck`]; the wire.
//!
//! Nothing here repeats a request (`rule:no-hidden-retries`). A caller that must know whether a
//! write happened uses [`answer`] and reads [`CallError`].

mod call;
mod clients;
mod config;
mod error;
mod identity;
mod latency;
mod profile;
mod stack;
mod throttle;

#[cfg(test)]
mod testing;

pub use call::{
    Answer, CallError, RequestMetrics, SendCheck, TRAVEL, WaitingSince, answer, applicable_for,
};
pub use clients::Clients;
pub use config::ClientOptions;
pub use config::settings::AddressError;
pub use error::{ConfigError, KubeconfigError};
pub use identity::{PluginError, TokenError};
pub use profile::{Identity, Profile};
pub use throttle::{Throttle, ThrottleError, ThrottleMetrics};
