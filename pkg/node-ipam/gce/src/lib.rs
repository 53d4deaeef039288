//! Calls to Google Compute Engine: the few calls that read and set the pod ranges of VMs, over the
//! connections of `transport`.
//!
//! A [`Client`] acts for one project by a [`Config`]; [`Readings`] answers who asks for one VM, and
//! asks for a whole zone at once where many do. The rules stand in `RULES.md`.
//!
//! | file | holds |
//! |---|---|
//! | `config.rs`, `gcfg.rs` | [`Config`]: the file of `--cloud-config` |
//! | `provider_id.rs` | [`ProviderId`]: which VM a Node is |
//! | `instance.rs`, `operation.rs`, `answer_error.rs` | what Google answers, read |
//! | `client.rs`, `exchange.rs` | [`Client`]: the calls; one of them, from its turn to its answer |
//! | `readings.rs`, `zone.rs` | [`Readings`]: one VM, or all of a zone |
//! | `limits.rs` | how many calls at once, and how often |
//! | `tokens.rs`, `credentials.rs`, `jwt.rs`, `metadata.rs` | who calls |
//! | `channel.rs` | a request and its whole answer |
//! | `call_error.rs` | [`CallError`]: how a call fails |
//! | `metrics.rs` | what is counted |

mod answer_error;
mod call_error;
mod client;
mod config;
mod credentials;
mod exchange;
mod gcfg;
mod instance;
mod metadata;
mod metrics;
mod provider_id;
mod tokens;
mod zone;

pub use call_error::CallError;
pub use client::{Client, ClientError};
pub use config::{Config, ConfigError, SyntaxProblem};
pub use credentials::CredentialsError;
pub use exchange::CALLS_AT_ONCE;
pub use exchange::IsWanted;
pub use instance::{BadRange, Instance, PodRanges};
pub use metrics::Metrics;
pub use provider_id::{ProviderId, ProviderIdError};
pub use zone::Readings;
