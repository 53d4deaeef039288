//! Authentication and authorization, delegated to the API server as every component of Kubernetes
//! does it. [`Delegation`] guards the secure port of the process.
//!
//! A request is authenticated by the first of these that knows it: a proxy that speaks for others,
//! a client certificate, a bearer token, which the API server reviews. Then it is authorized by the
//! first of these: `system:masters`, a path that is always allowed, a reader of metrics by flag, a
//! review of access.
//!
//! | file | holds |
//! |---|---|
//! | `guard.rs` | [`Delegation`]: the order of the above |
//! | `options.rs` | options from flags, and what needs no review |
//! | `user.rs` | the user of a request |
//! | `trust.rs` | judges a client's certificate; the CAs, from files or from the cluster, and how they stay fresh |
//! | `api_reviews.rs` | the two kinds of reviews: request, retries, log |
//! | `reviews.rs` | the cache of reviews: reuse, one at a time, bounds, outages |
//! | `metrics.rs` | metrics of reviews and of the guard |

mod api_reviews;
mod guard;
mod metrics;
mod options;
mod reviews;
mod trust;
mod user;

pub use guard::{Delegation, DelegationError, Reviewers};
pub use options::{DelegationOptions, OpenPaths};
pub use trust::{LookupError, TrustError};
pub use user::RequestHeaders;
