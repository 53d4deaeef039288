//! `infra-controller-manager plan`: tells what would be made on AWS for the AWSClusters of manifests,
//! if there were nothing of them yet. Exit code 0 when all of it can be made, else 1. It asks
//! neither AWS nor an API server; what is done to a cluster that exists is told by `--plan-only`.
//!
//! | file | holds |
//! |---|---|
//! | `arguments.rs` | its command line |
//! | `printed.rs` | the plan, for people and for programs |

mod arguments;
mod printed;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use manager::command::{Command, Parsed, Program, manifests, to_stdout, told};

use crate::aws_plan::{self, Planned};
use arguments::Arguments;

/// What the program is told of it.
pub(crate) const COMMAND: Command =
    Command { name: "plan", about: "Tells what AWSClusters come to before they are made", start };

/// Runs it with the arguments after its name.
fn start(_: Program, args: Vec<OsString>) -> ExitCode {
    let arguments = match Arguments::parse(args) {
        Parsed::Run(arguments) => arguments,
        Parsed::Print { text, is_error } => return told(&text, is_error),
    };
    match run(&arguments) {
        Ok(planned) => {
            let print = if arguments.json { printed::json } else { printed::text };
            let text = print(&planned);
            to_stdout(&text);
            let is_complete = planned.iter().all(printed::is_complete);
            if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => told(&format!("error: {error:#}\n"), true),
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<Vec<Planned>> {
    let mut objects = Vec::new();
    for file in &arguments.files {
        objects.extend(manifests::objects(file)?);
    }
    let planned = aws_plan::of_manifests(&objects, &arguments.given);
    if planned.is_empty() {
        bail!("there is no AWSCluster in what -f names");
    }
    Ok(planned)
}
