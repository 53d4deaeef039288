//! The product's command with its own controllers and the sample controller, for tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = std::env::args_os();
    infra_controller_manager::start_hosting(args, &[&node_ipam::NodeIpam, &sample::Sample])
}
