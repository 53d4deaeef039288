//! The AWSCluster controller: makes, keeps and removes what a cluster needs on AWS. What to do is
//! decided by `aws-network` and carried out by `aws`; here it meets the object.
//!
//! | file | holds |
//! |---|---|
//! | `run.rs` | caches, queue, workers and AWS account of one run |
//! | `aws_clusters.rs` | what every look shares, and how it publishes and tells |
//! | `reconcile.rs` | one look at one AWSCluster |
//! | `owner.rs` | whose it is, and whether that is known |
//! | `owner_ids.rs` | which of several AWSClusters with one owner id may use it; pure |
//! | `admission.rs` | in which account AWS is called |
//! | `goal.rs` | what AWS shall have, of the object and its Cluster; pure |
//! | `build.rs`, `publication.rs`, `removal.rs` | the way there, its endpoint, and the way back |
//! | `plan_only.rs` | what would be done, published instead of done |
//! | `left_behind.rs` | what a deletion leaves since it is not ours, and the ways to end it; pure |
//! | `leaks.rs` | what has outlived its AWSCluster, told |
//! | `spec_mirror.rs` | ids of what was made, written into the spec where that is asked for |
//! | `leg.rs`, `denial.rs` | one leg of a pass, and what it has met |
//! | `passes.rs` | passes that rest, and until when |
//! | `stored_memory.rs` | what survives a crash, in the words of the status; pure |
//! | `report.rs`, `findings.rs` | what a leg found out, and how that is published; pure |
//! | `write_events.rs` | the words for writes in events; pure |
//! | `metrics.rs`, `resource_counts.rs` | what is counted |

mod admission;
mod aws_clusters;
mod build;
mod denial;
mod findings;
mod goal;
mod leaks;
mod left_behind;
mod leg;
mod metrics;
mod owner;
mod owner_ids;
mod passes;
mod plan_only;
mod publication;
mod reconcile;
mod removal;
mod report;
mod resource_counts;
mod run;
mod spec_mirror;
mod stored_memory;
mod write_events;

pub(crate) use run::run;
