//! The way to an API server and back, for whoever talks to one: the clients of this process's own
//! cluster, and a prober with thousands of member clusters.
//!
//! Nothing here knows of leadership, throttling or metrics; `client` puts those on top.
//!
//! | file | holds |
//! |---|---|
//! | `endpoint.rs` | [`Endpoint`]: where a server is reached and what is trusted there |
//! | `wire.rs` | [`Wire`]: the connections to an endpoint, HTTP/2 on one and HTTP/1.1 in a pool |
//! | `dial.rs` | [`dial`]: one connection, opened phase by phase |
//! | `names.rs` | [`Names`]: the addresses of hosts |
//! | `dial_policy.rs`, `resolver.rs` | [`Resolver`]: those of them that may be dialled |
//! | `tls.rs` | trust, client certificates, and the TLS configurations that connections share |
//! | `certificates.rs` | chains of strangers, bounded and judged; `serving` uses it, too |
//! | `pem_problem.rs` | [`PemProblem`]: what is wrong with a PEM text, without any of it |
//! | `proxy.rs` | the proxy on the way, and which one the environment wants |
//! | `secret_bytes.rs` | headers and bodies that are overwritten |
//! | `error_chain.rs` | an error of hyper or kube with its causes in one line |
//! | `retry_after.rs` | how long the server wants to be left alone |

pub mod certificates;
mod dial;
mod dial_policy;
mod endpoint;
mod error_chain;
mod names;
mod pem_problem;
mod protocol;
mod proxy;
mod resolver;
mod retry_after;
mod secret_bytes;
mod tls;
mod wire;

pub use certificates::Validity;
pub use dial::{DialError, Dialed, Duplex, Phase, ProxyFault, Way, dial};
pub use dial_policy::{DialPolicy, DialPolicyError};
pub use endpoint::Endpoint;
pub use error_chain::ErrorChain;
pub use names::{Asker, Names};
pub use pem_problem::PemProblem;
pub use protocol::Protocol;
pub use proxy::{Proxy, ProxyError};
pub use resolver::{Resolver, Unresolved};
pub use retry_after::{RETRY_AFTER_MAX, retry_after};
pub use secret_bytes::{sensitive_header, wipe};
pub use tls::{ClientCertificate, Fields, TlsConfigs, TlsError, Trust, Waived};
pub use wire::{AnswerBody, Answering, MayLeave, Wire, WireError, open, rest_if_busy};
