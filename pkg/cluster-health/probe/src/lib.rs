//! Probes the API server of a member cluster: one probe within its time limit, one classified result.
//! The crate `health` plans the attempts and decides; this crate holds the client, its credentials and
//! the connection. The rules stand in `RULES.md`.
//!
//! | file | holds |
//! |---|---|
//! | `inputs.rs` | [`Inputs`]: settings and credentials of a client, with their hash; [`WaivedChecks`]: waived checks of certificates |
//! | `client.rs` | [`Client`]: the client of one member cluster |
//! | `headers.rs` | headers of every request |
//! | `prober.rs` | [`Prober`]: making a probe, and one attempt in it |
//! | `prober/run.rs` | [`Order`] and [`Probed`]: one probe under way |
//! | `prober/reader.rs` | [`Reader`]: reads that are no probes |
//! | `link.rs` | one open connection; [`Meters`]: counters of connections and handshakes |
//! | `clock.rs` | [`Timings`]: duration of each phase of an attempt |
//! | `failure.rs` | why an attempt got no answer; [`Problem`]: an input that cannot be used |
//! | `expiry.rs` | expiry of credentials |

mod client;
mod clock;
mod expiry;
mod failure;
mod headers;
mod inputs;
mod link;
mod prober;

pub use client::Client;
pub use clock::Timings;
pub use failure::Problem;
pub use inputs::{ClientPair, Fingerprint, Impersonation, Inputs, WaivedChecks};
pub use link::Meters;
pub use prober::{
    ConnectionLimits, Order, Probed, Prober, Read, ReadError, Reader, Reread, Trace, now,
};
pub use transport::{DialPolicy, Fields, Names, Resolver};
pub use validation::Address;
