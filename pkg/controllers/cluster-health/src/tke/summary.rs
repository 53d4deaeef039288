//! What a member cluster has and what is in use: read page by page, beside the probes.
//!
//! | file | holds |
//! |---|---|
//! | `pager.rs` | [`Pager`]: what to ask for next, and when a list cannot be had |
//! | `listing.rs` | [`list`]: a whole list through a pager |
//! | `reader.rs` | [`MemberReader`]: the member that is read |
//! | `node.rs`, `node_list.rs` | [`NodeTotals`], and what else a list of Nodes says |
//! | `roster.rs` | [`Roster`]: which Node is on which machine |
//! | `pod.rs` | [`PodTotals`], from Pods |
//! | `gather.rs` | [`nodes`], [`pods`], [`Gathered`]: both lists of one cluster, and what they come to |

mod gather;
mod listing;
mod node;
mod node_list;
#[cfg(test)]
mod paged;
mod pager;
mod pod;
mod reader;
mod roster;

pub(crate) use gather::{Gathered, nodes, pods};
pub(crate) use node::NodeTotals;
pub(crate) use node_list::NodeList;
#[cfg(test)]
pub(crate) use paged::list_of;
pub(crate) use pager::Abort;
pub(crate) use reader::MemberReader;
pub(crate) use roster::Roster;
