//! `infra-controller-manager probe`: looks once at an API server as the controller would, and tells
//! what it found and where the time went. Exit code 0 when the server is well, else 1.
//!
//! | file | holds |
//! |---|---|
//! | `arguments.rs` | its command line |
//! | `target.rs` | whom to ask, from a kubeconfig or from the arguments |
//! | `object.rs` | whom to ask, by an object that stands for the cluster |
//! | `printed.rs` | the answer, for people and for programs |

mod arguments;
mod printed;
mod target;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use manager::command::{Command, Parsed, Program, told};
use probe::{ConnectionLimits, Meters, Names, Order, Probed, Prober};
use prometheus::Registry;

use arguments::Arguments;
use target::Found;

/// What the program is told of it.
pub(crate) const COMMAND: Command =
    Command { name: "probe", about: "Looks once at an API server", start };

/// Runs it with the arguments after its name.
fn start(program: Program, args: Vec<OsString>) -> ExitCode {
    let arguments = match Arguments::parse(args) {
        Parsed::Run(arguments) => arguments,
        Parsed::Print { text, is_error } => return told(&text, is_error),
    };
    match run(program, &arguments) {
        Ok(probed) => {
            let text = printed::of(&probed, arguments.json);
            let is_well = probed.report.finding.is_ok();
            told(&text, false);
            if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => told(&format!("error: {error:#}\n"), true),
    }
}

fn run(program: Program, arguments: &Arguments) -> anyhow::Result<Probed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let probed = runtime.block_on(look(program, arguments));
    // A name that nobody answers for must not hold up the end.
    runtime.shutdown_background();
    probed
}

async fn look(program: Program, arguments: &Arguments) -> anyhow::Result<Probed> {
    let mut authenticated_read = arguments.authenticated_read;
    let by_object = arguments.object.is_some() || arguments.file.is_some();
    let inputs = if by_object {
        let Found { subject, inputs } = target::find(program, arguments).await?;
        authenticated_read |= subject.is_read();
        match inputs {
            Ok(inputs) => inputs,
            // What the controller would publish.
            Err(problem) => return Ok(Probed::of_problem(&problem)),
        }
    } else {
        target::inputs(program, arguments)?
    };
    let limits = ConnectionLimits { max_age: Duration::ZERO, ..ConnectionLimits::default() };
    let prober = Prober::new(Meters::new(&Registry::new())?, limits, Names::default());
    let client = match prober.client(&inputs) {
        Ok(client) => Arc::new(client),
        Err(problem) if by_object => return Ok(Probed::of_problem(&problem)),
        Err(problem) => return Err(problem.into()),
    };
    drop(inputs);
    let order = Order {
        budget: arguments.timeout,
        authenticated_read,
        next_in: Duration::MAX,
        newest: &|| None,
        reread: None,
    };
    Ok(prober.probe(&client, &order).await)
}
