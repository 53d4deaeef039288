use std::future::pending;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::*;

fn thread_name() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn work_and_what_it_begins_runs_on_threads_of_its_own_that_are_kept() {
    let threads = OwnThreads::new("of-its-own", 2);
    for _ in 0..2 {
        let both =
            threads.run(async { (thread_name(), tokio::spawn(async { thread_name() }).await) });
        let (work, task) = both.await.unwrap();
        assert_eq!((work.as_str(), task.unwrap().as_str()), ("of-its-own", "of-its-own"));
    }
    assert!(thread_name() != "of-its-own");
}

#[tokio::test]
async fn work_that_is_dropped_ends_and_one_that_panics_is_a_failure() {
    let threads = OwnThreads::new("of-its-own", 1);
    let (alive, ended) = oneshot::channel::<()>();
    let work = threads.run(async move {
        let _alive = alive;
        pending::<()>().await;
    });
    timeout(Duration::from_millis(1), work).await.unwrap_err();
    ended.await.unwrap_err();
    let failure = threads.run(async { panic!("on purpose") }).await.map(|()| "no failure");
    assert!(failure.unwrap_err().to_string().contains("panic"));
}
