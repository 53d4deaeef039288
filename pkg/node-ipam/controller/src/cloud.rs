//! Pod CIDRs that a cloud knows of: the CloudAllocator copies what the VM of a Node has been given;
//! IPAMFromCloud does so too and goes on looking; IPAMFromCluster gives out blocks and has the
//! cloud route them.
//!
//! | file | holds |
//! |---|---|
//! | `provider.rs` | [`Cloud`](provider::Cloud): what is asked of a cloud |
//! | `google.rs` | Google's |
//! | `families.rs`, `copying.rs`, `syncing.rs` | what is to be done for a Node, without I/O |
//! | `claims.rs` | who has which CIDRs, who may not have them, and what is counted of that |
//! | `condition.rs`, `writes.rs` | what is written to Nodes |
//! | `cloud_nodes.rs`, `node_events.rs` | the Nodes of a run, and what is said of them |
//! | `copier.rs`, `syncer.rs` | one pass over one Node |
//! | `metrics.rs` | what is shown |
//! | `run.rs` | one run of either |

mod claims;
mod cloud_nodes;
mod copying;
mod node_events;
mod provider;
pub(crate) mod run;
pub(crate) mod syncer;
mod writes;

pub(crate) use copying::Families;

#[cfg(test)]
mod tests;
