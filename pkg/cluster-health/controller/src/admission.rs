//! The webhook that the API server asks before it stores a Cluster, a Machine or a KubeFedCluster:
//! the judgement of `validation`, with what only the other objects and the network know
//! (`rule:the-webhook-helps-and-never-hurts`).
//!
//! | file | holds |
//! |---|---|
//! | `controller.rs` | [`ValidationWebhook`]: the controller as the manager sees it |
//! | `flags.rs`, `options.rs` | its flags, judged |
//! | `serving.rs` | the listener, its certificate and its registration |
//! | `review.rs` | AdmissionReview, in and out. Pure |
//! | `judge.rs` | one request, judged |
//! | `memory_budget.rs` | how much may be judged at once |
//! | `object_caches.rs`, `pruned_object.rs` | the stored objects that rules compare a new object with; the fields that are kept of them |
//! | `metrics.rs` | what was asked and answered |

mod controller;
mod flags;
mod judge;
mod memory_budget;
mod metrics;
mod object_caches;
mod options;
mod pruned_object;
mod review;
mod serving;

pub use controller::ValidationWebhook;
pub use review::{Review, Subject};
