//! `bench-cluster-health`: how the product watches over thousands of member clusters, a part of
//! them silent. `scripts/bench-cluster-health` starts it. Standard output carries one JSON line and
//! nothing else; progress goes to standard error. The exit code is 1 when a member waited too long
//! for a probe, or an outage was published too late; with --shards, when two replicas probed a
//! member at once, a move published something, or a secret was shown.

mod fleet;
mod ledger;
mod management;
mod measure;
mod options;
mod probers;
mod report;
mod rolling;
mod secrets;
mod sharing;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::options::Options;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench-cluster-health: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> anyhow::Result<bool> {
    let Some(options) = Options::parse(std::env::args().skip(1)).context("see --help")? else {
        eprint!("{}", options::HELP);
        return Ok(true);
    };
    let (line, faults) = if options.shards > 1 {
        let report = match options.rolls {
            0 => sharing::measure(&options).await?,
            _ => rolling::measure(&options).await?,
        };
        (report.json(), report.faults())
    } else {
        let report = measure::measure(&options).await?;
        (report.json(), report.faults())
    };
    writeln!(std::io::stdout(), "{line}").context("cannot write the result")?;
    for fault in &faults {
        eprintln!("MISSED: {fault}");
    }
    Ok(faults.is_empty())
}
