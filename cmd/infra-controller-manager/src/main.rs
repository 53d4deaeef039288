//! `infra-controller-manager`: runs the infrastructure controllers of a Kubernetes cluster.

use std::process::ExitCode;

fn main() -> ExitCode {
    infra_controller_manager::start(std::env::args_os())
}
