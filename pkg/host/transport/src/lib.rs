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
mod endpoint;
mod error_text;
mod headers;
mod names;
mod resolver;
mod tls;
mod wire;

pub use certificates::Validity;
pub use dial::{DialError, Dialed, Duplex, Phase, ProxyFault, Way, dial};
pub use endpoint::{Endpoint, Proxy, ProxyError};
pub use error_text::{ErrorChain, PemProblem};
pub use headers::{RETRY_AFTER_MAX, retry_after, sensitive_header, wipe};
pub use names::{Asker, Names};
pub use resolver::{DialPolicy, DialPolicyError, Resolver, Unresolved};
pub use tls::{ClientCertificate, Fields, Protocol, TlsConfigs, TlsError, Trust, Waived};
pub use wire::{AnswerBody, Answering, MayLeave, Wire, WireError, open, rest_if_busy};
