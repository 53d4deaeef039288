//! libFuzzer's main program for the target that a feature of this crate names; the arguments are libFuzzer's.
//!
//! `$FUZZ_SEEDS` is a folder that gets the target's seeds, `$FUZZ_SLOWEST` a file that gets the time of the
//! slowest input in microseconds, with the input beside it under the same name and `.input`.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(feature = "cidr")]
use fuzz_targets::CIDR as TARGET;
#[cfg(feature = "ledger")]
use fuzz_targets::LEDGER as TARGET;
#[cfg(feature = "flags")]
use fuzz_targets::FLAGS as TARGET;
#[cfg(feature = "kubeconfig")]
use fuzz_targets::KUBECONFIG as TARGET;
#[cfg(feature = "certificates")]
use fuzz_targets::CERTIFICATES as TARGET;
#[cfg(feature = "nodes")]
use fuzz_targets::NODES as TARGET;
#[cfg(feature = "objects")]
use fuzz_targets::OBJECTS as TARGET;
#[cfg(feature = "aws-answers")]
use fuzz_targets::AWS_ANSWERS as TARGET;
#[cfg(feature = "gce-answers")]
use fuzz_targets::GCE_ANSWERS as TARGET;
#[cfg(feature = "http-requests")]
use fuzz_targets::HTTP_REQUESTS as TARGET;
#[cfg(feature = "records")]
use fuzz_targets::RECORDS as TARGET;

/// No input may take longer.
const LIMIT: Duration = Duration::from_millis(100);

struct State {
    report: Option<PathBuf>,
    slowest: AtomicU64,
}

static STATE: LazyLock<State> = LazyLock::new(|| {
    if let Some(folder) = std::env::var_os("FUZZ_SEEDS").map(PathBuf::from) {
        for (number, seed) in (TARGET.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), seed).expect("a seed is written");
        }
    }
    let report = std::env::var_os("FUZZ_SLOWEST").map(PathBuf::from);
    // What starts with the first input is not the cost of an input.
    (TARGET.run)(&(TARGET.seeds)()[0]);
    State { report, slowest: AtomicU64::new(0) }
});

fn run(data: &[u8]) {
    let State { report, slowest } = &*STATE;
    let before = Duration::from_micros(slowest.load(Ordering::Relaxed));
    let took = TARGET.timed(data, before);
    assert!(took <= LIMIT, "{}: an input of {} bytes took {took:?}", TARGET.name, data.len());
    if took > before {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        slowest.store(micros, Ordering::Relaxed);
        if let Some(file) = report {
            std::fs::write(file, micros.to_string()).expect("the report is written");
            std::fs::write(file.with_extension("input"), data).expect("the input is written");
        }
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));
