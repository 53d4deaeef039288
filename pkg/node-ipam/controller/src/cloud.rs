//! Pod CIDRs that a cloud knows of: the CloudAllocator copies what the VM of a Node has been given;
//! IPAMFromCloud does so too and goes on looking; IPAMFromCluster gives out blocks and has the
//! cloud route them.
//!
//! | file | holds |
//! |---|---|
//! | `provider.rs` | [`Cloud`](provider::Cloud): what is asked of a cloud |
//! //! | `copying.rs` | the CloudAllocator: what it does for a Node, and its pass over one |
//! | `claims.rs` | who has which CIDRs, who may not have them, and what is counted of that |
//! | `writes.rs` | what is written to Nodes |
//! | `cloud_nodes.rs`, `node_events.rs` | the Nodes of a run, and what is said of them |
//! | `syncer.rs` | IPAMFromCluster and IPAMFromCloud likewise |
//! //! | `run.rs` | one run of either |

mod claims;
mod cloud_nodes;
mod copying;
mod node_events;
mod provider;
pub(crate) mod run;
mod syncer;
mod writes;

#[cfg(test)]
mod tests;
