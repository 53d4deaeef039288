//! The Cluster controller: brings what makes a cluster together, and takes it apart in order.
//!
//! | file | holds |
//! |---|---|
//! | `run.rs` | caches, queue and workers of one run |
//! | `reconcile.rs` | one pass over one Cluster |
//! | `infrastructure_step.rs`, `kubeconfig_step.rs`, `control_plane_step.rs`, `spec_step.rs` | its parts |
//! | `deletion.rs` | the end of a Cluster |
//! | `report.rs` | what a pass found out, and how that is published |
//! | `references.rs`, `checked.rs` | which Clusters wait for which object; which kubeconfigs are in order |
//! | `step_error.rs`, `metrics.rs` | what went wrong; what is counted |

mod checked;
mod control_plane_step;
mod deletion;
mod infrastructure_step;
mod kubeconfig_step;
mod metrics;
mod reconcile;
mod references;
mod report;
mod run;
mod spec_step;
mod step_error;

pub(crate) use run::run;
