//! Who asks, and whether it may: delegated to the API server, as every component of Kubernetes does
//! it. The secure port of the process is guarded by [`Delegation`].
//!
//! A request is authenticated by the first of these that knows it: a proxy that speaks for others,
//! a client certificate, a bearer token, which the API server reviews. Then it is authorized by the
//! first of these: `system:masters`, a path that is always allowed, a reader of metrics by flag, a
//! review of access.
//!
//! | file | holds |
//! |---|---|
//! | `guard.rs` | [`Delegation`]: the order of the above |
//! | `options.rs` | what flags decide |
//! | `user.rs`, `certificate.rs`, `request_header.rs` | who a request is of |
//! | `trust.rs`, `lookup.rs` | the CAs, from files or from the cluster, and how they stay fresh |
//! | `tokens.rs`, `access.rs` | the two kinds of reviews |
//! | `reviews.rs`, `memory.rs` | what they share: reuse, one at a time, bounds, outages |
//! | `backend.rs` | one review: request, repetition, what is said of failures |
//! | `allowed.rs` | what needs no review |
//! | `error.rs`, `metrics.rs` | why it cannot begin; what is counted |

mod api_reviews;
mod guard;
mod metrics;
mod options;
mod reviews;
mod trust;
mod user;

pub use guard::{Delegation, DelegationError, Reviewers};
pub use options::{DelegationOptions, OpenPaths, RequestHeaders};
pub use trust::{LookupError, TrustError};
