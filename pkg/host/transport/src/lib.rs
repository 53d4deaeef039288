//! Connections to API servers: for the clients of this process's own cluster, and for a prober with
//! thousands of member clusters.
//!
//! Nothing here knows of leadership, throttling or metrics; `client` puts those on top.
//!
//! | file | holds |
//! |---|---|
//! | `endpoint.rs` | [`Endpoint`]: where a server is reached, through which [`Proxy`], and what is trusted there |
//! | `wire.rs` | [`Wire`]: the connections to an endpoint, HTTP/2 on one and HTTP/1.1 in a pool; headers |
//! | `dial.rs` | [`dial`]: one connection, opened phase by phase |
//! | `names.rs` | [`Names`]: the addresses of hosts |
//! | `resolver.rs` | [`Resolver`]: the addresses that may be dialled |
//! | `tls.rs` | trust, client certificates, and the TLS configurations that connections share |
//! | `certificates.rs` | bounded verification of certificate chains; `serving` uses it, too |
//! | `error.rs` | [`ErrorChain`], [`PemProblem`], [`DialError`]: errors as text without secrets |
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod certificates;
mod dial;
mod endpoint;
mod error;
mod names;
mod resolver;
mod tls;
mod wire;

pub use certificates::Validity;
pub use dial::{Dialed, Dialer, Duplex, Phase, Way, dial, dial_by};
pub use endpoint::{Endpoint, Proxy, ProxyError};
pub use error::{DialError, ErrorChain, PemProblem, ProxyFault};
pub use names::{Asker, Names};
pub use resolver::{DialPolicy, DialPolicyError, Resolver, Unresolved};
pub use tls::{ClientCertificate, Fields, Protocol, TlsConfigs, TlsError, Trust, Waived};
pub use wire::{AnswerBody, Answering, RequestBody, SendPermit, Wire, WireError};
pub use wire::{RETRY_AFTER_MAX, retry_after, sensitive_header, wipe};
pub use wire::{open, rest_if_busy};
