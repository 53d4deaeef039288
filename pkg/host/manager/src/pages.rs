//! The pages about controllers: one for each that runs here, and one in its place while it does not, so
//! that a person who asks a standby does not think that there is no such page.

use std::fmt::Write as _;
use std::future::ready;

use http::StatusCode;
use serving::{Access, Page, Pages, reply};

use crate::informers::Informers;
use crate::options::Hosted;
use crate::supervisor::ControllerHealth;

/// Where it is.
pub(crate) fn debug_path(controller: &str) -> String {
    format!("/debug/controllers/{controller}/")
}

/// The page of a controller that is at work here. Keeps no cache alive.
pub(crate) fn debug_page(
    controller: &'static str,
    health: ControllerHealth,
    informers: &Informers,
) -> Page {
    let caches = informers.page_lines();
    Page::new(debug_path(controller), Access::Authorized, move |_| {
        ready(reply::text(StatusCode::OK, text(controller, &health, caches())))
    })
}

fn text(controller: &str, health: &ControllerHealth, caches: Vec<String>) -> String {
    let state = health.check().err().unwrap_or_else(|| "ok".to_owned());
    let mut text = format!("{controller}\nhealth: {state}\n");
    for line in health.page_lines().into_iter().chain(caches) {
        writeln!(text, "{line}").ok();
    }
    text
}

/// Adds a page for each path that these controllers will serve; theirs take its place.
pub fn reserve_pages(pages: &Pages, controllers: &[Hosted]) {
    for Hosted { name, runner, .. } in controllers {
        let own = runner.pages().iter().map(|&path| path.to_owned());
        for path in own.chain([debug_path(name)]) {
            let text = format!(
                "{name} does not run in this process: another replica leads, the controller is \
                 starting, or its kind is not served yet. See the log.\n"
            );
            pages.add(Page::new(path, Access::Authorized, move |_| {
                std::future::ready(reply::text(StatusCode::SERVICE_UNAVAILABLE, text.clone()))
            }));
        }
    }
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
}
