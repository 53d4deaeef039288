//! The product's command with cluster-health alone, for tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    infra_controller_manager::start_hosting(std::env::args_os(), &[&cluster_health::ClusterHealth])
}
