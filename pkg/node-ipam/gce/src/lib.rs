//! Calls to Google Compute Engine: the few calls that read and set the pod ranges of VMs, over the
//! connections of `transport`.
//!
//! A [`Client`] acts for one project by a [`Config`]; [`Readings`] answers who asks for one VM, and
//! asks for a whole zone at once where many do. The rules stand in `RULES.md`.
//!
//! | file | holds |
//! |---|---|
//! | `config.rs`, `gcfg.rs` | [`Config`]: the file of `--cloud-config` |
//! | `instance.rs` | [`ProviderId`]: which VM a Node is; its ranges, as Google answers |
//! | `client.rs` | [`Client`]: the calls |
//! | `exchange.rs` | one call, from its turn to its answer; how many at once, and how often |
//! | `zone.rs` | [`Readings`]: one VM, or all of a zone |
//! | `tokens.rs`, `credentials.rs`, `metadata.rs` | access tokens, and where they come from |
//! | `error.rs` | [`GceError`]: how a call fails |
//! | `metrics.rs` | what is counted |

mod client;
mod config;
mod credentials;
mod error;
mod exchange;
mod gcfg;
mod instance;
mod metadata;
mod metrics;
mod tokens;
mod zone;

pub use client::Client;
pub use config::{Config, ConfigError};
pub use credentials::CredentialsError;
pub use error::GceError;
pub use exchange::{CALLS_AT_ONCE, IsWanted};
pub use gcfg::SyntaxError;
pub use instance::{BadRange, Instance, PodRanges, ProviderId, ProviderIdError};
pub use metrics::Metrics;
pub use tokens::ClientError;
pub use zone::Readings;
