//! Looks at the API server of a member cluster: one probe within its time, one classified result.
//! What a probe does and concludes is planned in `health`; here are the client, its credentials and
//! the connection. The rules stand in `RULES.md`.
//!
//! | file | holds |
//! |---|---|
//! | `inputs.rs` | [`Inputs`]: what a client is made of, and the hash of it |
//! | `address.rs` | [`Address`]: where an API server answers |
//! | `tls_options.rs` | [`TlsOptions`]: checks of certificates that are left out |
//! | `problem.rs` | [`Problem`]: why no client can be made |
//! | `client.rs` | [`Client`]: a member cluster as the prober sees it |
//! | `headers.rs` | what goes with every request |
//! | `prober.rs` | [`Prober`], [`Order`] and [`Probed`]: making a probe |
//! | `prober/reader.rs` | [`Reader`]: reads that are no probes |
//! | `link.rs` | one open connection |
//! | `clock.rs` | [`Timings`]: where the time goes |
//! | `failure.rs` | why an attempt brought no answer |
//! | `expiry.rs` | until when credentials are good |
//! | `silent.rs` | which addresses gave no answer |
//! | `prober/around.rs` | asks the addresses that no probe has asked |
//! | `meters.rs` | [`Meters`]: connections and handshakes, counted |

mod address;
mod client;
mod clock;
mod expiry;
mod failure;
mod headers;
mod inputs;
mod link;
mod prober;
mod silent;

pub use address::Address;
pub use address::Problem;
pub use client::Client;
pub use clock::Timings;
pub use inputs::TlsOptions;
pub use inputs::{ClientPair, Fingerprint, Impersonation, Inputs};
pub use link::Meters;
pub use prober::{
    ConnectionLimits, Order, Probed, Prober, Read, ReadError, Reader, Reread, Trace, now,
};
pub use transport::{DialPolicy, Fields, Names, Resolver};
