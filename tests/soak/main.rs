//! Plays two replicas under all faults at once, seed by seed, the product's and, when asked to,
//! kube-controller-manager's. The program of `scripts/soak`; the scene is `tests::soak`.
#![allow(clippy::print_stdout, reason = "the results are the purpose of this program")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use tests::soak::{Contender, Report, Scene, play};
use tests::{ControlPlane, ControlPlaneOptions, programs};

const HELP: &str = "\
Plays two replicas under all faults at once on a real API server: Nodes come and go, leaders are
killed and stopped, and a proxy draws lost answers, resets, errors, cut and stale watches and frozen
moments from a seed. One JSON line a scene on standard output, a table on standard error. Exit 1
when a block was doubled, leaked or a Node forgotten, or with --peer when the product served a
smaller share of the Nodes during their life than kube-controller-manager did with the same seed.

  --seeds FIRST-LAST  the scenes (1-10)
  --seconds N         how long the faults of one scene last (60)
  --logs FOLDER       keeps the log of every process there
  --peer              plays every scene with kube-controller-manager too
  -h, --help          this text
";

struct Options {
    seeds: std::ops::RangeInclusive<u64>,
    length: Duration,
    peer: bool,
    logs: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let Some(options) = parse(std::env::args().skip(1))? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let mut contenders = vec![Contender::Product];
    if options.peer {
        let paths = programs::control_plane_binaries(&["kube-controller-manager"])?;
        contenders.extend(paths.into_iter().map(Contender::Stock));
    }
    let mut is_good = true;
    for seed in options.seeds {
        let mut shares = Vec::new();
        for contender in &contenders {
            // A control plane of its own: no scene inherits what another one left.
            let plane = ControlPlane::start(ControlPlaneOptions::default()).await?;
            let scene = Scene { seed, length: options.length, logs: options.logs.clone() };
            let report = play(&scene, contender, &plane).await;
            println!("{}", report.json());
            tell(&report);
            // What the peer does wrong is its own affair.
            is_good &= matches!(contender, Contender::Stock(_)) || report.faults().is_empty();
            shares.push(report.share());
        }
        if let [ours, theirs] = shares[..] {
            let verdict = if ours >= theirs { "met" } else { "MISSED" };
            eprintln!("seed {seed}: share {ours:.3} against {theirs:.3}: {verdict}");
            is_good &= ours >= theirs;
        }
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn parse(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Option<Options>> {
    let mut options =
        Options { seeds: 1..=10, length: Duration::from_secs(60), peer: false, logs: None };
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "-h" | "--help" => return Ok(None),
            "--logs" => options.logs = Some(value()?.into()),
            "--peer" => options.peer = true,
            "--seconds" => options.length = Duration::from_secs(value()?.parse()?),
            "--seeds" => {
                let text = value()?;
                let (first, last) = text.split_once('-').unwrap_or((&text, &text));
                options.seeds = first.parse()?..=last.parse()?;
            }
            other => anyhow::bail!("unknown argument {other:?}; see --help"),
        }
    }
    Ok(Some(options))
}

fn tell(report: &Report) {
    let Report { seed, contender, nodes, served, .. } = report;
    eprintln!("seed {seed}, {contender}: {served} of {nodes} Nodes served during their life");
    for fault in report.faults() {
        eprintln!("  {fault}");
    }
    for term in &report.terms {
        let first = term.to_first_patch.map_or("none".to_owned(), |time| format!("{time:.3?}"));
        eprintln!("  term: lease to first PATCH {first}, ended {}", term.end);
    }
}
