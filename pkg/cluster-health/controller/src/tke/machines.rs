//! Machines: whether each is a Node of its Cluster, and a ready one.
//!
//! All Machines of a Cluster are judged by one list of its Nodes. What a list says of a Machine
//! counts as the probe of a Cluster does, with the same thresholds; nothing here asks for a Node by
//! itself.
//!
//! | file | holds |
//! |---|---|
//! | `state.rs` | [`MachineState`](state::MachineState): one Machine, and what each list does to it |
//! | `host.rs` | [`ParentCluster`](host::ParentCluster): whether the Machines of a Cluster can be observed |
//! | `status.rs` | what is written, and what is read back after a restart |
//! | `index.rs` | [`MachineIndex`](index::MachineIndex): the Machines of each Cluster |
//! | `health.rs` | [`MachineHealth`]: lists of Nodes become states, events and writes |
//! | `following.rs` | follows the objects |
//! | `rounds.rs` | [`MachineReconciler`]: observes the Machines of each Cluster, period by period |

mod following;
mod health;
mod host;
mod index;
mod rounds;
mod state;
mod status;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use following::{follow, lookup};
pub(crate) use health::{KIND, MachineHealth};
pub(crate) use rounds::MachineReconciler;
#[cfg(test)]
pub(crate) use state::NextList;
