//! AWS, called: carries out what `aws-network` plans, on the SDKs of EC2 and of both generations of
//! load balancers.
//!
//! An [`Account`] has credentials, and for each [`Region`] the connections, rates and metrics that
//! all clusters in it share. An [`Executor`] answers the queries and carries out the writes of one
//! cluster; [`run_leg`] leads a pass from step to step until it rests. The rules stand in
//! `RULES.md`.
//!
//! | file | holds |
//! |---|---|
//! | `options.rs`, `account.rs`, `credentials.rs`, `region.rs` | credentials, clients |
//! | `callers.rs` | which account the credentials belong to |
//! | `connections.rs` | what is sent, and the answers |
//! | `executor.rs`, `leg.rs` | one read, one write; one leg of a pass |
//! | `attempts.rs`, `call.rs`, `call_error.rs` | one call: its turn, its attempts, how it fails |
//! | `limits.rs` | how often AWS is called |
//! | `gate.rs` | the fence, asked last |
//! | `describe.rs`, `polls.rs` | queries, answered; those about what takes minutes, for many clusters at once |
//! | `perform.rs` | writes, sent |
//! | `metrics.rs` | what is counted |

mod account;
mod attempts;
mod call;
mod call_error;
mod callers;
mod connections;
mod credentials;
mod describe;
mod executor;
mod gate;
mod leg;
mod limits;
mod metrics;
mod options;
mod perform;
mod polls;
mod region;

pub use account::Account;
pub use aws_credential_types::Credentials;
pub use call_error::CallError;
pub use describe::Marked;
pub use executor::Executor;
pub use leg::{Surroundings, look, run_leg};
pub use limits::Rates;
pub use metrics::Metrics;
pub use options::{Endpoints, Options};
pub use region::Region;
pub use resilience::Rate;
