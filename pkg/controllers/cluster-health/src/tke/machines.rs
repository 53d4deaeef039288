//! Machines: whether each is a Node of its Cluster, and a ready one.
//!
//! All Machines of a Cluster are judged by one list of its Nodes. What a list says of a Machine
//! counts as the probe of a Cluster does, with the same thresholds; nothing here asks for a Node by
//! itself.
//!
//! | file | holds |
//! |---|---|
//! | `standing.rs` | [`Found`], [`Standing`]: what is said of a Machine, and what a list says |
//! | `host.rs` | [`Host`]: what can be known of the Machines of a Cluster |
//! | `record.rs` | [`Record`]: what is remembered of one Machine |
//! | `status.rs` | what is written, and what is read back after a restart |
//! | `book.rs` | [`Book`]: the Machines of each Cluster |
//! | `ward.rs` | [`Ward`]: takes in what is learnt, tells and writes |
//! | `following.rs` | follows the objects |
//! | `rounds.rs` | [`Rounds`]: looks at the Machines of each Cluster, period by period |

mod book;
mod following;
mod host;
mod record;
mod rounds;
mod standing;
mod status;
#[cfg(test)]
pub(crate) mod tests;
mod ward;

pub(crate) use following::{follow, lookup};
#[cfg(test)]
pub(crate) use record::Want;
pub(crate) use rounds::Rounds;
pub(crate) use ward::{KIND, Ward};
