//! `bench-node-ipam`: how fast, and at what cost, Nodes get their pod CIDRs from the product, from
//! the stock kube-controller-manager and from a bare loop of PATCHes, in turn on one API server.
//!
//! `scripts/bench-node-ipam` starts it. Standard output carries one JSON line per run and
//! nothing else; progress and the closing table go to standard error. The exit code is 1 when a run
//! failed, ran into its time limit, saw two live Nodes with one CIDR, or a Node with a CIDR of the wrong
//! ClusterCIDR.

mod api;
mod blocks;
mod cases;
mod clock;
mod cluster_cidrs;
mod contender;
mod double;
mod ledger;
mod nodes;
mod options;
mod own_share;
mod raw_list;
mod raw_loop;
mod report;
mod stage;
mod table;
mod turn;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::double::Double;
use crate::options::{Options, Request};
use crate::report::Line;
use crate::stage::Stage;

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match options::parse(std::env::args().skip(1)) {
        Ok(Request::Help) => {
            eprint!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(Request::Measure(options)) => measure_until_signal(&options).await,
        Err(problem) => Err(problem.context("see --help")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench-node-ipam: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures, but leaves on the first SIGINT or SIGTERM in a way that runs the destructors which
/// stop the control plane and the contender.
async fn measure_until_signal(options: &Options) -> anyhow::Result<bool> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    tokio::select! {
        outcome = Box::pin(measure(options)) => outcome,
        _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
        _ = terminate.recv() => anyhow::bail!("terminated"),
    }
}

/// True when every run finished and none saw a duplicate.
async fn measure(options: &Options) -> anyhow::Result<bool> {
    let mut stage = None;
    if options.needs_control_plane() {
        stage = Some(Stage::set(options).await?);
    }
    let mut double = Double::default();
    let mut lines: Vec<Line> = Vec::new();
    let mut sound = true;
    for case in &options.cases {
        for run in 1..=options.runs {
            for contender in options.contenders_of(case) {
                let outcome = match &mut stage {
                    Some(stage) if !case.is_on_double() => stage.run(case, contender, run).await,
                    _ => double.run(case, contender, run).await,
                };
                match outcome {
                    Ok(line) => {
                        eprintln!("{}", report::brief(&line));
                        sound &= line.duplicates == 0 && line.misplaced.unwrap_or(0) == 0;
                        writeln!(std::io::stdout(), "{}", serde_json::to_string(&line)?)
                            .context("cannot write the result")?;
                        lines.push(line);
                    }
                    Err(error) => {
                        sound = false;
                        eprintln!("{case} {contender} run {run} failed: {error:#}");
                    }
                }
            }
        }
    }
    eprint!("{}", table::render(&lines)?);
    Ok(sound)
}
