//! Tasks of single objects on a paused clock.

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};

use api_server_double::{Reply, client};

use super::*;
use crate::testing::context;

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

async fn scene() -> (Context, ObjectTasks<u32>) {
    let context = context(client(|_| Reply::Silence)).await;
    let tasks = context.object_tasks();
    (context, tasks)
}

/// Counts its calls, and while it lives.
#[derive(Clone, Default)]
struct Seen {
    calls: Arc<AtomicU32>,
    alive: Arc<()>,
}

impl Seen {
    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    fn tasks(&self) -> usize {
        Arc::strong_count(&self.alive) - 1
    }

    fn forever(
        &self,
    ) -> impl Fn() -> futures::future::BoxFuture<'static, ()> + Send + Sync + use<> {
        let seen = self.clone();
        let calls = Arc::clone(&seen.calls);
        move || {
            calls.fetch_add(1, Ordering::SeqCst);
            Box::pin(pending())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_has_one_task_at_most_and_another_once_that_has_ended() {
    let (_context, tasks) = scene().await;
    let seen = Seen::default();
    assert!(tasks.start(1, seen.forever()));
    assert!(!tasks.start(1, seen.forever()));
    assert!(tasks.start(2, seen.forever()));
    sleep(secs(1)).await;
    assert_eq!((seen.calls(), tasks.len()), (2, 2));

    assert!(tasks.end(&1) && !tasks.end(&1));
    assert!(tasks.start(1, seen.forever()), "its key is free at once");
    sleep(secs(1)).await;
    assert_eq!((seen.calls(), tasks.len()), (3, 2), "and the end of the old one leaves it alone");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_ended_is_dropped_and_so_are_all_at_the_stop() {
    let (context, tasks) = scene().await;
    let seen = Seen::default();
    for key in 0..3 {
        let held = seen.clone();
        tasks.start(key, move || {
            let held = held.clone();
            async move {
                pending::<()>().await;
                drop(held);
            }
        });
    }
    sleep(secs(1)).await;
    assert_eq!(seen.tasks(), 6, "each task holds it, and what makes it");
    tasks.end(&0);
    sleep(secs(1)).await;
    assert_eq!(seen.tasks(), 4);
    context.stop.cancel();
    sleep(secs(1)).await;
    assert_eq!((seen.tasks(), tasks.is_empty()), (0, true));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ends_by_itself_leaves_its_key_free() {
    let (_context, tasks) = scene().await;
    tasks.start(1, || async {});
    sleep(secs(1)).await;
    assert!(!tasks.contains(&1));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_is_started_again_after_pauses_and_the_others_go_on() {
    let (context, tasks) = scene().await;
    let (seen, calls) = (Seen::default(), Arc::new(AtomicU32::new(0)));
    tasks.start(1, seen.forever());
    let counted = Arc::clone(&calls);
    tasks.start(2, move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { panic!("out of range") }
    });
    // Pauses of 1, 2, 4 and 8 s, each up to a fifth longer.
    sleep(secs(15)).await;
    assert!((4..=5).contains(&calls.load(Ordering::SeqCst)), "{calls:?}");
    assert_eq!((seen.calls(), tasks.len()), (1, 2));
    assert!(!context.stop.is_cancelled());
    assert!(tasks.end(&2), "it can be ended in its pause");
    let so_far = calls.load(Ordering::SeqCst);
    sleep(secs(600)).await;
    assert_eq!(calls.load(Ordering::SeqCst), so_far);
}

#[tokio::test(start_paused = true)]
async fn the_run_is_given_up_when_the_tasks_of_many_objects_panic() {
    let (context, tasks) = scene().await;
    for key in 0..4 {
        tasks.start(key, || async { panic!("torn") });
    }
    sleep(secs(1)).await;
    let given_up = context.work.tasks.clone();
    let early = tokio::time::timeout(Duration::from_millis(1), given_up.panicked()).await;
    assert!(early.is_err(), "four are bad objects");
    tasks.start(4, || async { panic!("torn") });
    assert_eq!(given_up.panicked().await.message, "torn");
}
