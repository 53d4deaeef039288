//! The page `/debug/controllers/<name>/` that every controller has: how it is, what its queues hold, why
//! something failed last, and what is in the caches of the process. For people; the log has the same at
//! length.

use std::fmt::Write as _;
use std::future::ready;

use http::StatusCode;
use serving::{Access, Page, reply};

use crate::Informers;
use crate::supervisor::ControllerHealth;

/// Where it is.
pub(crate) fn path(controller: &str) -> String {
    format!("/debug/controllers/{controller}/")
}

/// The page of a controller that is at work here. Keeps no cache alive.
pub(crate) fn page(
    controller: &'static str,
    health: ControllerHealth,
    informers: &Informers,
) -> Page {
    let caches = informers.told();
    Page::new(path(controller), Access::Authorized, move |_| {
        ready(reply::text(StatusCode::OK, text(controller, &health, caches())))
    })
}

fn text(controller: &str, health: &ControllerHealth, caches: Vec<String>) -> String {
    let state = health.check().err().unwrap_or_else(|| "ok".to_owned());
    let mut text = format!("{controller}\nhealth: {state}\n");
    for line in health.told().into_iter().chain(caches) {
        writeln!(text, "{line}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use api_server_double::{Reply, client};
    use kube_api::Node;
    use tokio::time::sleep;
    use workqueue::{Backoff, Jitter, Next, Reconcile, Retry};

    use super::*;
    use crate::testing::context;

    /// Fails to handle every key.
    struct Failing;

    impl Reconcile for Failing {
        type Key = String;

        async fn reconcile(&self, _: &String) -> Result<Next, Retry> {
            Err(Retry::new("no\nroom"))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_tells_of_queues_of_the_last_failure_and_of_caches_in_a_line_each() {
        let context = context(client(|_| Reply::Silence)).await;
        let backoff = Backoff::doubling(Duration::MAX, Duration::MAX, Jitter::None);
        let queue = context.queue("things", backoff);
        queue.add("a".to_owned());
        queue.add("b".to_owned());
        let running = tokio::spawn(context.run(&queue, Arc::new(Failing)).until_stopped());
        let nodes = context.informers.get::<Node>();
        sleep(Duration::from_secs(7)).await;
        let health = ControllerHealth::of(context.work.watched.clone());
        let told = text("a-controller", &health, context.informers.told()());
        let expected = "a-controller\nhealth: ok\nit was never started again\n\
            queue things: 0 keys are due, the longest in hand is for 0.0 s, \
            the last failure was \"b\" 7 s ago: \"no\\nroom\"\n\
            cache nodes: 0 objects, the first list of nodes is not complete\n";
        assert_eq!(told, expected);
        drop(nodes);
        assert!(context.informers.told()().is_empty(), "it keeps none alive");
        context.stop.cancel();
        running.await.unwrap().unwrap();
        let told = text("a-controller", &health, Vec::new());
        assert!(!told.contains("queue"), "nobody works on it any more: {told}");
    }
}
