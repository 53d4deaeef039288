//! Probes the API server of a member cluster: one probe within its time limit, one classified result.
//! The crate `health` plans the attempts and decides; this crate holds the client, its credentials and
//! the connection. The rules stand in `RULES.md`.
//!
//! | file | holds |
//! |---|---|
//! | `inputs.rs` | [`Inputs`]: settings and credentials of a client, with their hash; [`WaivedChecks`]: waived checks of certificates |
//! | `client.rs` | [`Client`]: the client of one member cluster |
//! | `credentials.rs` | headers of every request; expiry of credentials |
//! | `prober.rs` | [`Prober`]: making a probe, and one attempt in it |
//! | `prober/run.rs` | [`Order`] and [`Probed`]: one probe under way; [`Timings`]: duration of each phase of an attempt |
//! | `prober/reader.rs` | [`Reader`]: requests that are no probes |
//! | `link.rs` | one open connection; [`Meters`]: counters of connections and handshakes |
//! | `failure.rs` | why an attempt got no answer; [`Problem`]: an input that cannot be used |
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod client;
mod credentials;
mod failure;
mod inputs;
mod link;
mod prober;

pub use client::Client;
pub use failure::Problem;
pub use inputs::{ClientPair, Fingerprint, Impersonation, Inputs, WaivedChecks};
pub use link::{ConnectionLimits, Meters};
pub use prober::{Order, Probed, Prober, Read, ReadError, Reader, Reread, Timings, Trace, now};
pub use transport::{DialPolicy, Fields, Names, Resolver};
pub use validation::Address;
