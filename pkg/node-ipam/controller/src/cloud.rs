//! Pod CIDRs that a cloud knows of: the CloudAllocator copies what the VM of a Node has been given;
//! IPAMFromCloud does so too and goes on looking; IPAMFromCluster gives out blocks and has the
//! cloud route them. Claims, PATCHes and reads are those of all allocators (`allocator`, `reconciler`).
//!
//! | file | holds |
//! |---|---|
//! | `provider.rs` | [`Cloud`](provider::Cloud): what is asked of a cloud |
//! | `cloud_nodes.rs` | the Nodes of a run, and the calls of the cloud for one of them |
//! | `condition.rs` | the condition that says that the network of a Node is ready |
//! | `copying.rs` | the CloudAllocator: what it does for a Node, and its pass over one |
//! | `syncer.rs` | the same of IPAMFromCluster and IPAMFromCloud |
//! | `run.rs` | one run of each |

mod cloud_nodes;
mod condition;
mod copying;
mod provider;
pub(crate) mod run;
mod syncer;

#[cfg(test)]
mod tests;
