//! Calls to AWS: carries out the actions that `aws-network` plans, with the SDKs of EC2 and of both
//! generations of load balancers.
//!
//! An [`Account`] has credentials, and for each [`Region`] the connections, rates and metrics that
//! all clusters in it share. An [`Executor`] answers the queries and carries out the writes of one
//! cluster; [`run_pass`] leads a reconciliation from step to step until it rests. The rules
//! stand in `RULES.md`.
//!
//! | file | holds |
//! |---|---|
//! | `account.rs`, `region.rs`, `callers.rs` | credentials, also of roles; clients; the account of the credentials |
//! | `connections.rs`, `gate.rs` | requests and answers; the fence, checked last; AWS in a simulation |
//! | `executor.rs` | one read, one write, one run of a reconciliation |
//! | `requests.rs`, `call.rs`, `limits.rs`, `metrics.rs` | one call: its turn, its requests, how it fails; rates and metrics |
//! | `describe.rs`, `polls.rs`, `sweep.rs` | queries; reads that serve many clusters: of those that wait for NAT gateways, of those at rest |
//! | `perform.rs` | writes |
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod account;
mod call;
mod callers;
mod connections;
mod describe;
mod executor;
mod gate;
mod limits;
mod metrics;
mod perform;
mod polls;
mod region;
mod requests;
mod sweep;

pub use account::{Account, Role};
pub use aws_credential_types::Credentials;
pub use call::AwsError;
pub use describe::Marked;
pub use executor::Executor;
pub use executor::{Judged, PassHooks, judge, look, run_pass};
pub use gate::{Simulated, Simulating, simulate};
pub use limits::Rates;
pub use metrics::Metrics;
pub use region::Region;
pub use region::{Endpoints, Options};
pub use resilience::Rate;
