//! How long the sample takes, with the rates that are the default and calls that take 100 ms.
//!
//! `cargo test -p tests --test cluster_api -- --ignored --nocapture --test-threads=1 pace` prints how
//! long it takes, on an otherwise idle machine, with and without NAT gateways that are pending for a
//! minute.

use std::time::Duration;

use tests::Stopwatch;
use tests::aws_proxy::Fate;

use crate::aws_stage::{DEFAULT_RATES, NAME, Stage, is_ready};
use crate::scene::AWS_CLUSTERS;

const CALL: Duration = Duration::from_millis(100);

/// Time from the manifest to ready, with NAT gateways that are pending for this long.
async fn time_to_ready(stage: &Stage, pending: Duration) -> Duration {
    stage.proxy.decide(|_, _| Fate::Delay(CALL));
    stage.proxy.nats_pending_until(pending);
    let manager = stage.start_with_aws(DEFAULT_RATES);
    manager.line("Controller starting...").await;
    let watch = Stopwatch::start();
    stage.run("apply -f config/samples/cluster-api.yaml");
    if !pending.is_zero() {
        // Each wait has a limit, which is not made for this one.
        tokio::time::sleep(pending).await;
    }
    stage.until(AWS_CLUSTERS, NAME, "is ready", is_ready).await;
    let time = watch.elapsed();
    println!(
        "ready after {:.1} s and {} calls of {CALL:?}, NAT gateways pending for {pending:?}",
        time.as_secs_f64(),
        stage.proxy.calls().len()
    );
    stage.end(manager).await;
    time
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is about time, of an otherwise idle machine: run it by name"]
async fn the_pace_without_waits_is_5_s_at_100_ms_a_call() {
    let Some(stage) = Stage::set().await else { return };
    let time = time_to_ready(&stage, Duration::ZERO).await;
    assert!(time <= Duration::from_secs(5), "{time:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes more than a minute: run it by name"]
async fn the_pace_with_nat_gateways_that_are_pending_for_a_minute_is_72_s() {
    let Some(stage) = Stage::set().await else { return };
    let time = time_to_ready(&stage, Duration::from_secs(60)).await;
    assert!(time <= Duration::from_secs(72), "{time:?}");
}
