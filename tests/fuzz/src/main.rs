//! libFuzzer's main program. `$FUZZ_TARGET` names the body; the arguments are libFuzzer's.
//!
//! `$FUZZ_SEEDS` is a folder that gets the target's seeds, `$FUZZ_SLOWEST` a file that gets the time of the
//! slowest input in microseconds, with the input beside it under the same name and `.input`.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fuzz_targets::Target;

/// No input may take longer.
const LIMIT: Duration = Duration::from_millis(100);

struct State {
    target: &'static Target,
    report: Option<PathBuf>,
    slowest: AtomicU64,
}

static STATE: LazyLock<State> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names the target");
    let target = Target::named(&name).unwrap_or_else(|| panic!("no target is named {name:?}"));
    if let Some(folder) = std::env::var_os("FUZZ_SEEDS").map(PathBuf::from) {
        for (number, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), seed).expect("a seed is written");
        }
    }
    let report = std::env::var_os("FUZZ_SLOWEST").map(PathBuf::from);
    // What starts with the first input is not the cost of an input.
    (target.run)(&(target.seeds)()[0]);
    State { target, report, slowest: AtomicU64::new(0) }
});

fn run(data: &[u8]) {
    let State { target, report, slowest } = &*STATE;
    let before = Duration::from_micros(slowest.load(Ordering::Relaxed));
    let took = target.timed(data, before);
    assert!(took <= LIMIT, "{}: an input of {} bytes took {took:?}", target.name, data.len());
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
