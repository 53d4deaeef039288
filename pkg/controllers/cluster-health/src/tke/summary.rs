//! What a member cluster has and what is in use: read page by page, beside the probes.
//!
//! | file | holds |
//! |---|---|
//! | `pager.rs` | [`Pager`]: what to ask for next, and when a list cannot be had |
//! | `listing.rs` | [`list`]: a whole list through a pager |
//! | `node.rs` | `NodeTotals`, from Nodes |
//! | `pod.rs` | [`PodTotals`], from Pods |
//! | `gather.rs` | [`gather`]: both lists of one cluster, and what they come to |

mod gather;
mod listing;
mod node;
#[cfg(test)]
mod paged;
mod pager;
mod pod;

pub(crate) use gather::{Gathered, gather};
pub(crate) use listing::{Answer, Member};
pub(crate) use pager::Abort;
