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
mod records;

use std::time::Duration;

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

/// Texts of CIDRs.
pub const CIDR: Target =
    Target { name: "cidr", run: cidr::parse::reads_or_refuses, seeds: cidr::texts };
/// Operations on a ledger of blocks.
pub const LEDGER: Target =
    Target { name: "ledger", run: cidr::ledger::matches_the_model, seeds: cidr::scripts };
/// Command lines.
pub const FLAGS: Target =
    Target { name: "flags", run: flags::are_read_or_refused, seeds: flags::seeds };
/// Kubeconfigs of objects.
pub const KUBECONFIG: Target =
    Target { name: "kubeconfig", run: kubeconfig::is_read_or_refused, seeds: kubeconfig::seeds };
/// PEM files and chains of certificates.
pub const CERTIFICATES: Target =
    Target { name: "certificates", run: certificates::are_judged, seeds: certificates::seeds };
/// Nodes in JSON and protobuf.
pub const NODES: Target = Target { name: "nodes", run: nodes::are_decoded, seeds: nodes::seeds };
/// Objects of all kinds with a CRD, and reviews of the webhook.
pub const OBJECTS: Target =
    Target { name: "objects", run: objects::are_judged, seeds: objects::seeds };
/// Answers of AWS.
pub const AWS_ANSWERS: Target =
    Target { name: "aws-answers", run: aws_answers::are_read, seeds: aws_answers::seeds };
/// Answers of Google, and the file of `--cloud-config`.
pub const GCE_ANSWERS: Target =
    Target { name: "gce-answers", run: gce_answers::are_read, seeds: gce_answers::seeds };
/// Requests to the listeners.
pub const HTTP_REQUESTS: Target =
    Target { name: "http-requests", run: http_requests::are_answered, seeds: http_requests::seeds };
/// Records of availability.
pub const RECORDS: Target =
    Target { name: "records", run: records::are_read_or_refused, seeds: records::seeds };

/// All targets.
pub const TARGETS: &[Target] = &[
    CIDR,
    LEDGER,
    FLAGS,
    KUBECONFIG,
    CERTIFICATES,
    NODES,
    OBJECTS,
    AWS_ANSWERS,
    GCE_ANSWERS,
    HTTP_REQUESTS,
    RECORDS,
];

impl Target {
    /// Runs the body and returns the processor time that it took. What took longer than `suspect` runs twice more and
    /// counts by its cheapest run.
    pub fn timed(&self, input: &[u8], suspect: Duration) -> Duration {
        let run = || {
            let begun = processor_time();
            (self.run)(input);
            processor_time().saturating_sub(begun)
        };
        let took = run();
        if took <= suspect { took } else { took.min(run()).min(run()) }
    }
}

/// Processor time of this process so far, which a busy machine does not change.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.try_into().expect("it counts up from zero")
}

/// Splits off the first byte, which selects what is done with the others.
fn selected(data: &[u8]) -> Option<(usize, &[u8])> {
    data.split_first().map(|(first, rest)| (usize::from(*first), rest))
}

/// A runtime whose clock moves only when all tasks wait for it: waits for a rate limit or a repetition cost no time.
fn paused_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// A runtime for one thread, so that a body does the same each time.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
