//! Fuzz targets: everything that this program reads and others write. One body for each, which
//! `scripts/fuzz` runs under libFuzzer (`tests/fuzz`) and `tests/bounded.rs` runs in CI.
//!
//! A body panics where the product panics, or where a property of the answer does not hold. It keeps
//! nothing from one input to the next that changes what the next one does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "a body fails by panicking"
)]

mod aws_answers;
mod canned_answer;
mod certificates;
pub mod cidr;
mod flags;
mod gce_answers;
mod http_requests;
mod kubeconfig;
mod mutation;
mod nodes;
mod objects;

use std::time::{Duration, Instant};

pub use mutation::{Mutator, Random};

/// One body.
pub struct Target {
    /// The name on the command line of `scripts/fuzz`.
    pub name: &'static str,
    /// Takes any bytes.
    pub run: fn(&[u8]),
    /// Valid inputs, from which all others are made.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "cidr", run: cidr::parse::reads_or_refuses, seeds: cidr::texts },
    Target { name: "ledger", run: cidr::ledger::matches_the_model, seeds: cidr::scripts },
    Target { name: "flags", run: flags::are_read_or_refused, seeds: flags::seeds },
    Target { name: "kubeconfig", run: kubeconfig::is_read_or_refused, seeds: kubeconfig::seeds },
    Target { name: "certificates", run: certificates::are_judged, seeds: certificates::seeds },
    Target { name: "nodes", run: nodes::are_decoded, seeds: nodes::seeds },
    Target { name: "objects", run: objects::are_judged, seeds: objects::seeds },
    Target { name: "aws-answers", run: aws_answers::are_read, seeds: aws_answers::seeds },
    Target { name: "gce-answers", run: gce_answers::are_read, seeds: gce_answers::seeds },
    Target { name: "http-requests", run: http_requests::are_answered, seeds: http_requests::seeds },
];

impl Target {
    /// The target of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Runs the body and returns how long it took. What took longer than `suspect` runs twice more and
    /// counts by its fastest run: a busy machine stops a process at any moment.
    pub fn timed(&self, input: &[u8], suspect: Duration) -> Duration {
        let run = || {
            let begun = Instant::now();
            (self.run)(input);
            begun.elapsed()
        };
        let took = run();
        if took <= suspect { took } else { took.min(run()).min(run()) }
    }
}

/// Splits off the first byte, which selects what is done with the others.
fn selected(data: &[u8]) -> Option<(usize, &[u8])> {
    data.split_first().map(|(first, rest)| (usize::from(*first), rest))
}

/// A runtime for one thread, so that a body does the same each time.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
