//! The resources of a member cluster and their use: read page by page, apart from the probes.
//!
//! | file | holds |
//! |---|---|
//! | `node.rs` | [`NodeTotals`], and what else a list of Nodes says |
//! | `roster.rs` | [`Roster`]: which Node is on which machine |
//! | `pod.rs` | [`PodTotals`], from Pods |
//! | `gather.rs` | [`nodes`], [`pods`], [`Gathered`]: both lists of one cluster, and what they come to |

mod gather;
mod node;
#[cfg(test)]
mod paged;
mod pod;
mod roster;
#[cfg(test)]
mod tests;

pub(crate) use gather::{Gathered, nodes, pods};
pub(crate) use node::{NodeList, NodeTotals};
#[cfg(test)]
pub(crate) use paged::list_of;
pub(crate) use roster::Roster;
