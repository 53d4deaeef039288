//! `infra-controller-manager`: gives a Kubernetes cluster its infrastructure.

use std::process::ExitCode;

fn main() -> ExitCode {
    infra_controller_manager::start(std::env::args_os())
}
