//! Plays two replicas under all faults at once, seed by seed, the product's and, when asked to,
//! kube-controller-manager's. The program of `scripts/soak`; the scene is `tests::soak`.
#![allow(clippy::print_stdout, reason = "the results are the purpose of this program")]

mod options;
mod table;

use std::process::ExitCode;

use anyhow::Context as _;
use futures::future::try_join_all;
use tests::soak::{Contender, Report, Scene, play};
use tests::{ControlPlane, ControlPlaneOptions, programs};

use crate::options::Options;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let Some(options) = options::parse(std::env::args().skip(1))? else {
        print!("{}", options::HELP);
        return Ok(ExitCode::SUCCESS);
    };
    // Now, where it shows its progress, and not in the midst of a scene.
    programs::product();
    let contenders = contenders(&options)?;
    if let Some(folder) = &options.logs {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let mut reports = Vec::new();
    let mut is_good = true;
    for seed in options.seeds.clone() {
        let Options { allocator, length, logs, .. } = &options;
        let scene = Scene { seed, allocator: *allocator, length: *length, logs: logs.clone() };
        // Side by side, so that a busy machine is as busy for both.
        let played = contenders.iter().cloned().map(|who| tokio::spawn(act(scene.clone(), who)));
        for played in try_join_all(played).await.context("a scene broke off")? {
            let report = played?;
            println!("{}", report.json());
            tell(&report);
            // What the peer does wrong is its own affair.
            is_good &= report.contender == "stock" || report.faults().is_empty();
            reports.push(report);
        }
        if let [.., ours, theirs] = &reports[..]
            && options.peer
        {
            let (ours, theirs) = (ours.share(), theirs.share());
            let verdict = if ours >= theirs { "met" } else { "MISSED" };
            eprintln!("seed {seed}: share {ours:.3} against {theirs:.3}: {verdict}");
            is_good &= ours >= theirs;
        }
    }
    eprint!("{}", table::table(&reports));
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The product first.
fn contenders(options: &Options) -> anyhow::Result<Vec<Contender>> {
    let mut contenders = vec![Contender::Product];
    if options.peer {
        let paths = programs::control_plane_binaries(&["kube-controller-manager"])?;
        contenders.extend(paths.into_iter().map(Contender::Stock));
    }
    Ok(contenders)
}

/// A control plane of its own: no scene inherits what another one left.
async fn act(scene: Scene, contender: Contender) -> anyhow::Result<Report> {
    let plane = ControlPlane::start(ControlPlaneOptions::default()).await?;
    Ok(play(&scene, &contender, &plane).await)
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
