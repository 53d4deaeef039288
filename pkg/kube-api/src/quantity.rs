//! Kubernetes quantities, exact, and what a Pod requests of its Node.
//!
//! Called by controllers that add up the resources of a cluster: they read slim Pods into
//! [`PodRequests`], Nodes into [`Resources`], add, and show the sums rounded up by
//! [`Quantity::rounded_to_milli`] or [`Quantity::rounded_to_whole`]. No I/O.
//!
//! | file | holds |
//! |---|---|
//! | `amount.rs` | [`Quantity`]: a number, its sums and its texts |
//! | `parse.rs` | its syntax |
//! | `resources.rs` | [`Resources`]: a quantity per name |
//! | `pod_requests.rs` | [`PodRequests`]: the requests in a Pod, and what they come to |

mod amount;
mod parse;
mod pod_requests;
mod resources;

pub use amount::Quantity;
pub use parse::ParseError;
pub use pod_requests::PodRequests;
pub use resources::Resources;
