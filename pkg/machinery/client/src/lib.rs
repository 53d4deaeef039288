//! Clients of the Kubernetes API server: one parsed configuration, one pool of connections, and a
//! stack of layers per user of it (`host.md` 3.4, 4, 6).
//!
//! The manager loads [`Clients`] once and builds one [`kube::Client`] per controller and purpose
//! from a [`Profile`]. What a request meets on its way, outermost first:
//!
//! 1. base address of the server;
//! 2. `retry`: stock's rule, only if the profile asks for it, never on the client that
//!    PATCHes Nodes;
//! 3. `gate`: the token bucket, which every attempt pays and a watch does not;
//! 4. `attempt`: time limit, metrics, and the verdict on what an error says about the
//!    write;
//! 5. credentials and headers;
//! 6. `dispatch`: the leader's fence, asked when the request leaves and again when its
//!    body does; the caller's own [`SendCheck`]; the wire.
//!
//! A caller that must know whether a write happened uses [`answer`] and reads [`CallError`].

mod access;
mod answer;
mod attempt;
mod boot_clock;
mod call_error;
mod clients;
mod config;
mod dispatch;
mod error_chain;
mod fence;
mod gate;
mod metrics;
mod proxy;
mod request;
mod response_size;
mod retry;
mod service_account;
mod stack;
mod throttle;
mod throttle_log;
mod throttle_metrics;
mod token_layer;
mod token_request;
mod transport;
mod user_agent;

#[cfg(test)]
mod testing;

pub use answer::{Answer, answer};
pub use boot_clock::BootInstant;
pub use call_error::CallError;
pub use clients::{Clients, Identity, Profile};
pub use config::{ClientOptions, ConfigError};
pub use error_chain::ErrorChain;
pub use fence::{Fence, Fenced};
pub use request::SendCheck;
pub use service_account::TokenError;
pub use throttle::{Throttle, ThrottleError};
pub use throttle_metrics::ThrottleMetrics;
