//! Memory of the process as the kernel counts it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

/// Anonymous bytes now: what only this process can give back.
fn taken() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[cfg(target_env = "gnu")]
#[tokio::test]
async fn what_is_freed_between_what_is_kept_goes_back_after_a_while() {
    const SIZE: usize = 64 << 20;
    let before = taken();
    let pieces: Vec<Box<[u8; 1024]>> = (0..SIZE / 1024).map(|_| Box::new([1; 1024])).collect();
    assert!(taken() > before + SIZE);
    let few: Vec<_> = pieces.into_iter().step_by(1000).collect();
    assert!(taken() > before + SIZE / 2, "the allocator keeps it: else this test shows nothing");
    tokio::time::pause();
    let enough = async {
        for _ in 0..3 {
            sleep(EVERY).await;
        }
    };
    tokio::select! {
        never = trim_periodically() => match never {},
        () = enough => {}
    }
    assert!(taken() < before + SIZE / 8);
    drop(few);
}
