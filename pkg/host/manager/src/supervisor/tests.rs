//! A supervised controller on a paused clock: pauses, panics, health, and being told to stop.

use std::sync::Arc;
use std::time::Duration;

use api_server_double::{ApiServer, Reply, client};
use futures::future::pending;
use kube_api::{Node, Resource};
use log_capture::Capture;
use objects::{Draft, Dynamic};
use serde_json::json;
use tokio::time::{Instant, sleep};
use workqueue::{Backoff, Jitter, Next, Reconcile, Retry};

use super::*;
use crate::testing::{Fake, Run, context, lists, server_of, with_write_timeout};

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn supervisor(runner: Arc<dyn Runner>) -> Supervisor {
    Supervisor {
        runner,
        running: IntGauge::new("running", "Running.").unwrap(),
        restarts: IntCounter::new("restarts", "Restarts.").unwrap(),
        state: ControllerHealth::of(WatchedQueues::default()),
    }
}

async fn silent() -> Context {
    context(client(|_| Reply::Silence)).await
}

fn panics(context: &Context) -> String {
    let families = context.registry.gather();
    let family = families.iter().find(|family| family.name() == "panics").unwrap();
    family.get_metric()[0].get_counter().get_value().to_string()
}

fn fails() -> Run {
    Box::pin(async { Err(Failure::new("no luck")) })
}

fn fails_after(time: Duration) -> Run {
    Box::pin(async move {
        sleep(time).await;
        Err(Failure::new("no luck"))
    })
}

fn ends() -> Run {
    Box::pin(async { Ok(Stopped::default()) })
}

#[tokio::test(start_paused = true)]
async fn a_failed_controller_is_started_again_after_pauses_that_double_up_to_5_minutes() {
    let starts = Arc::new(Mutex::new(Vec::new()));
    let seen = starts.clone();
    let runner = Fake::runner(move |n, _| {
        seen.lock().push(Instant::now());
        if n < 12 { fails() } else { ends() }
    });
    let supervisor = supervisor(runner);
    let restarts = supervisor.restarts.clone();
    let captured = Capture::begin();
    supervisor.run(silent().await).await;

    assert_eq!(restarts.get(), 12);
    let starts = starts.lock();
    let pauses = starts.windows(2).map(|pair| pair[1] - pair[0]);
    for (pause, least) in pauses.zip([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]) {
        let most = secs(least).mul_f64(1.2) + Duration::from_millis(1);
        assert!(pause >= secs(least) && pause <= most, "{pause:?} instead of {least} s");
    }
    let told = captured.with("Controller failed and is started again");
    assert_eq!(told.len(), 12);
    assert!(told[0].contains("no luck"), "{}", told[0]);
}

#[tokio::test(start_paused = true)]
async fn the_pause_outlasts_what_the_failed_run_may_have_sent() {
    let runner = Fake::runner(|n, _| if n == 0 { fails() } else { ends() });
    let began = Instant::now();
    supervisor(runner).run(with_write_timeout(silent().await, secs(5))).await;
    assert!(began.elapsed() >= secs(5 + 1), "{:?}: it may travel for a second", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_stops_ends_when_its_last_write_of_unknown_outcome_is_settled() {
    // Something between us and the server gives up, so the outcome of the write is unknown.
    let gateway = client(|_| Reply::Json(504, json!("no answer from upstream")));
    let runner = Fake::runner(|_, context| {
        Box::pin(async move {
            let nodes = context.objects::<Dynamic>(Resource::cluster("", "v1", "Node", "nodes"));
            let draft = Draft::new(serde_json::Map::new());
            nodes.create("a", &draft).await.unwrap_err();
            Ok(Stopped::default())
        })
    });
    let began = Instant::now();
    let stopped = supervisor(runner).run(context(gateway).await).await;
    assert_eq!(stopped.unknown_writes, 0);
    assert!(began.elapsed() >= secs(30), "{:?}: the server's own limit", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_run_gets_the_metrics_that_the_run_before_it_registered() {
    let counters = Arc::new(Mutex::new(Vec::<IntCounter>::new()));
    let kept = counters.clone();
    let runner = Fake::runner(move |n, context| {
        let counter = context.metrics(|registry| {
            let counter = IntCounter::new("own", "A metric of the controller's own.")?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        });
        let counter = counter.unwrap();
        counter.inc();
        kept.lock().push(counter);
        if n == 0 { fails() } else { ends() }
    });
    supervisor(runner).run(silent().await).await;
    let counters = counters.lock();
    assert_eq!((counters.len(), counters[0].get()), (2, 2), "one counter, and two runs");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_counted_and_followed_by_a_fresh_run() {
    let runner = Fake::runner(|n, _| {
        if n == 0 { Box::pin(async move { panic!("index {n} out of range") }) } else { ends() }
    });
    let supervisor = supervisor(runner);
    let (restarts, context) = (supervisor.restarts.clone(), silent().await);
    let captured = Capture::begin();
    supervisor.run(context.clone()).await;
    assert_eq!((panics(&context).as_str(), restarts.get()), ("1", 1));
    let told = captured.with("it panicked: index 0 out of range at ");
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("supervisor/tests.rs:"), "{}", told[0]);
}

#[tokio::test(start_paused = true)]
async fn the_check_is_red_after_three_failures_in_a_row() {
    let supervisor = supervisor(Fake::runner(|_, _| fails()));
    let state = supervisor.state.clone();
    let context = silent().await;
    let stop = context.stop.clone();
    let running = tokio::spawn(supervisor.run(context));
    let mut verdicts = Vec::new();
    // Within the pauses of 1, 2 and 4 s, whatever their jitter.
    for wait in [500, 1000, 2500] {
        sleep(Duration::from_millis(wait)).await;
        verdicts.push(state.check());
    }
    assert_eq!(verdicts, [Ok(()), Ok(()), Err("failed 3 times in a row".into())]);
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_check_is_green_again_while_a_run_lasts() {
    let runner = Fake::runner(|n, _| if n < 3 { fails() } else { Box::pin(pending()) });
    let supervisor = supervisor(runner);
    let state = supervisor.state.clone();
    let running = tokio::spawn(supervisor.run(silent().await));
    sleep(secs(60)).await;
    assert!(state.check().is_err(), "the fourth run has yet to prove itself");
    sleep(HEALTHY_RUN).await;
    assert_eq!(state.check(), Ok(()));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_failure_after_a_long_run_is_the_first_one() {
    let starts = Arc::new(Mutex::new(Vec::new()));
    let seen = starts.clone();
    let runner = Fake::runner(move |n, _| {
        seen.lock().push(Instant::now());
        match n {
            0..5 => fails(),
            5 => fails_after(HEALTHY_RUN + secs(1)),
            _ => ends(),
        }
    });
    supervisor(runner).run(silent().await).await;
    let starts = starts.lock();
    let pause = starts[6] - (starts[5] + HEALTHY_RUN + secs(1));
    assert!(pause < secs(2), "{pause:?} as if it were the sixth in a row");
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_a_pause_ends_it_at_once_and_counts_the_failed_runs_writes_as_unknown() {
    let supervisor = supervisor(Fake::runner(|_, _| fails()));
    let context = with_write_timeout(silent().await, secs(30));
    let stop = context.stop.clone();
    let running = tokio::spawn(supervisor.run(context));
    sleep(secs(10)).await;
    let asked = Instant::now();
    stop.cancel();
    assert_eq!(running.await.unwrap(), Stopped { unknown_writes: 1 });
    assert_eq!(asked.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_stops_when_asked_is_not_started_again() {
    let runner = Fake::runner(|n, context| {
        assert_eq!(n, 0, "started again");
        Box::pin(async move {
            context.stop.cancelled().await;
            Ok(Stopped { unknown_writes: 7 })
        })
    });
    let supervisor = supervisor(runner);
    let gauge = supervisor.running.clone();
    let context = silent().await;
    let stop = context.stop.clone();
    let running = tokio::spawn(supervisor.run(context));
    sleep(secs(1)).await;
    assert_eq!(gauge.get(), 1);
    stop.cancel();
    assert_eq!(running.await.unwrap(), Stopped { unknown_writes: 7 });
    assert_eq!(gauge.get(), 0);
}

/// An API server whose only Node is "a".
fn one_node() -> ApiServer {
    server_of(json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}}))
}

/// Fails its first run by a panic in a handler and ends its second one with the first list.
fn panics_in_a_handler_once() -> Arc<dyn Runner> {
    Fake::runner(|n, context: Context| {
        Box::pin(async move {
            let nodes = context.informers.get::<kube_api::Node>();
            let _told =
                nodes.subscribe(move |_| assert!(n > 0, "a defect of the first run's handler"));
            nodes.synced().await;
            if n > 0 { Ok(Stopped::default()) } else { pending().await }
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_handler_restarts_the_controller() {
    let supervisor = supervisor(panics_in_a_handler_once());
    let (restarts, context) = (supervisor.restarts.clone(), context(one_node().client()).await);
    let captured = Capture::begin();
    supervisor.run(context.clone()).await;
    assert_eq!((panics(&context).as_str(), restarts.get()), ("1", 1));
    assert_eq!(captured.with("a handler of changes of nodes panicked").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_handler_ends_no_other_controller_and_the_restarted_one_shares_the_cache() {
    let server = one_node();
    let context = context(server.client()).await;
    let neighbour = context.informers.of_run();
    let nodes = neighbour.get::<kube_api::Node>();
    let _told = nodes.subscribe(|_| {});
    nodes.synced().await;
    let clumsy = Context { informers: context.informers.of_run(), ..context.clone() };
    supervisor(panics_in_a_handler_once()).run(clumsy).await;
    assert_eq!(lists(&server), 2, "one for each of the runs, and none besides");
    let ended = tokio::time::timeout(secs(60), neighbour.void()).await;
    assert!(ended.is_err(), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_restarted_controller_waits_for_a_list_that_is_younger_than_its_failure() {
    let server = one_node();
    let context = context(server.client()).await;
    let nodes = context.informers.get::<kube_api::Node>();
    nodes.synced().await;
    tokio::time::sleep(secs(1)).await;
    let restarted = context.informers.of_next_run().get::<kube_api::Node>();
    assert!(nodes.is_synced() && !restarted.is_synced());
    restarted.synced().await;
    assert_eq!(lists(&server), 2);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_task_other_than_a_worker_restarts_the_controller() {
    let runner = Fake::runner(|n, context: Context| {
        context.spawn(async move { assert!(n > 0, "a defect of the first run's task") });
        if n == 0 { Box::pin(pending()) } else { ends() }
    });
    let supervisor = supervisor(runner);
    let (restarts, context) = (supervisor.restarts.clone(), silent().await);
    supervisor.run(context.clone()).await;
    assert_eq!((panics(&context).as_str(), restarts.get()), ("1", 1));
}

#[tokio::test(start_paused = true)]
async fn the_tasks_of_a_run_are_stopped_at_its_end_and_awaited() {
    let ended = Arc::new(AtomicU32::new(0));
    let counted = ended.clone();
    let runner = Fake::runner(move |_, context: Context| {
        let (stop, ended) = (context.stop.clone(), counted.clone());
        context.spawn(async move {
            stop.cancelled().await;
            sleep(secs(4)).await;
            ended.fetch_add(1, Ordering::SeqCst);
        });
        ends()
    });
    let began = Instant::now();
    supervisor(runner).run(with_write_timeout(silent().await, secs(5))).await;
    assert_eq!((ended.load(Ordering::SeqCst), began.elapsed()), (1, secs(4)));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_hangs_holds_up_no_stop_and_is_named() {
    let runner = Fake::runner(|_, context: Context| {
        context.spawn(pending());
        ends()
    });
    let captured = Capture::begin();
    let began = Instant::now();
    let stopped = supervisor(runner).run(with_write_timeout(silent().await, secs(5))).await;
    assert_eq!(stopped.unknown_writes, 0);
    assert_eq!(began.elapsed(), secs(5) + applicable_for(secs(5)), "what it sent is over");
    let told = captured.with("did not stop with their controller");
    assert!(told.len() == 1 && told[0].contains("supervisor/tests.rs:"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_failed_run_that_does_not_end_is_dropped_before_the_next_run() {
    let alive = Arc::new(());
    let held = Arc::downgrade(&alive);
    let held_by_task = Mutex::new(Some(alive));
    let runner = Fake::runner(move |n, context: Context| {
        if n > 0 {
            return ends();
        }
        let alive = held_by_task.lock().take();
        context.spawn(async move {
            pending::<()>().await;
            drop(alive);
        });
        fails()
    });
    supervisor(runner).run(with_write_timeout(silent().await, secs(5))).await;
    assert_eq!(held.strong_count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_a_failed_run_that_blocks_its_thread_makes_the_check_red_and_holds_up_no_run() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Mutex::new(Some(released));
    let runner = Fake::runner(move |_, context: Context| {
        let released = released.lock().take().unwrap();
        let (begin, begun) = tokio::sync::oneshot::channel();
        context.spawn(async move {
            begin.send(()).unwrap();
            let _released = released.recv();
        });
        Box::pin(async move {
            begun.await.unwrap();
            Err(Failure::new("no luck"))
        })
    });
    let supervisor = supervisor(runner);
    let context = with_write_timeout(silent().await, Duration::from_millis(20));
    let run = tokio::time::timeout(secs(60), supervisor.one_run(&context)).await;
    assert!(run.expect("it must go on").is_err());
    let red = supervisor.state.check().unwrap_err();
    assert!(red.contains("blocks its thread"), "{red}");
    drop(release);
    let began = Instant::now();
    while supervisor.state.check().is_err() {
        assert!(began.elapsed() < secs(60), "the check stays red");
        sleep(Duration::from_millis(1)).await; // a check can only be asked
    }
}

/// Fails to handle every key.
struct Failing;

impl Reconcile for Failing {
    type Key = String;

    async fn reconcile(&self, _: &String) -> Result<Next, Retry> {
        Err(Retry::new("no\nroom"))
    }
}

#[tokio::test(start_paused = true)]
async fn the_page_has_a_line_for_each_queue_and_each_cache() {
    let context = context(client(|_| Reply::Silence)).await;
    let backoff = Backoff::doubling(Duration::MAX, Duration::MAX, Jitter::None);
    let queue = context.queue("things", backoff);
    queue.add("a".to_owned());
    queue.add("b".to_owned());
    let running = tokio::spawn(context.run(&queue, Arc::new(Failing)).until_stopped());
    let nodes = context.informers.get::<Node>();
    sleep(Duration::from_secs(7)).await;
    let health = ControllerHealth::of(context.work.watched.clone());
    let shown = text("a-controller", &health, context.informers.page_lines()());
    let expected = "a-controller\nhealth: ok\nnever restarted\n\
        queue things: 0 keys due, longest handling so far 0.0 s, \
        the last failure was \"b\" 7 s ago: \"no\\nroom\"\n\
        cache nodes: 0 objects, the first list of nodes is not complete\n";
    assert_eq!(shown, expected);
    drop(nodes);
    assert!(context.informers.page_lines()().is_empty(), "it keeps none alive");
    context.stop.cancel();
    running.await.unwrap().unwrap();
    let shown = text("a-controller", &health, Vec::new());
    assert!(!shown.contains("queue"), "it is not worked on any more: {shown}");
}
