//! Users of one informer: each has handlers, a session and a pace of its own.

use std::sync::Arc;
use std::time::Duration;

use kube_api::{Metadata, Node, StaticKind};
use prometheus::Registry;
use tokio::time::{Instant, sleep, timeout};

use crate::informer::tests::{Deltas, PRODUCT, metrics_of, start};
use crate::request::Format;
use crate::testing::{Server, node};
use crate::{Delta, FirstList, Informer, InformerMetrics, Session, Source};

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_ends_its_own_session_and_is_not_called_again() {
    let mut run = start();
    let (clumsy, neighbour) = (Session::new(), Session::new());
    let calls = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let _clumsy = run.informer.in_session(clumsy.clone()).subscribe(move |delta| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert!(!matches!(delta, Delta::Added(node) if &*node.name == "b"), "a defect");
    });
    let _neighbour = run.informer.in_session(neighbour.clone()).subscribe(|_| {});
    let wire = run.server.serve_list(5, &[node("a", 1), node("b", 2), node("c", 3)]).await;
    assert_eq!(run.deltas.next(3).await, ["added a@1", "added b@2", "added c@3"]);
    wire.event("MODIFIED", &node("a", 6));
    run.deltas.next(1).await;
    let cause = clumsy.ended().await;
    assert!(cause.contains("a defect"), "{cause}");
    assert!(!neighbour.has_ended());
    assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 3, "start of list, a, b");
    // The restarted user shares the informer.
    let mut again = Deltas::of(&run.informer);
    assert_eq!(again.next(3).await, ["added a@6", "added b@2", "added c@3"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_left_is_freed_and_not_called_again() {
    let mut run = start();
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    let subscription = run.informer.subscribe(move |_| assert_eq!(*inside, ()));
    assert_eq!(Arc::strong_count(&held), 2);
    drop(subscription);
    assert_eq!(Arc::strong_count(&held), 1);
    let _wire = run.server.serve_list(5, &[node("a", 1)]).await;
    run.deltas.next(1).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_informer_ends_the_sessions_of_its_users() {
    let run = start();
    let session = Session::new();
    let _told = run.informer.in_session(session.clone()).subscribe(|_| {});
    run.informer.panicked("for a test");
    assert_eq!(session.ended().await, "for a test");
    assert!(session.has_panicked());
}

#[tokio::test(start_paused = true)]
async fn a_user_who_must_not_see_the_past_gets_a_new_list_without_effect_on_others() {
    let mut run = start();
    let wire = run.server.serve_list(5, &[node("a", 1)]).await;
    run.deltas.next(1).await;
    sleep(Duration::from_secs(5)).await;
    let asked = Instant::now();
    let user = run.informer.not_older_than(asked);
    assert!(!user.is_synced());
    let call = run.server.streamed_list().await;
    assert_eq!(call.at, asked);
    assert!(wire.is_abandoned());
    let wire = call.stream();
    wire.event("ADDED", &node("a", 1));
    wire.end_of_list(6);
    user.synced().await;
    assert!(run.deltas.is_empty());
    // A second handle of that user costs no further list.
    assert!(run.informer.not_older_than(asked).is_synced());
    wire.event("MODIFIED", &node("a", 7));
    assert_eq!(run.deltas.next(1).await, ["updated a@1-7"]);
}

#[tokio::test(start_paused = true)]
async fn a_source_says_what_is_asked_for() {
    let (client, mut server) = Server::new();
    let mut source = Source::new(crate::Server::own(client), Node::KIND);
    source.labels = Some("role in (a,b)".into());
    source.fields = Some("metadata.name=x".into());
    source.namespace = Some("ns".into());
    source.first_list = FirstList::Cached;
    let metrics = InformerMetrics::new(&Registry::new(), PRODUCT).unwrap();
    let informer = Informer::<Node>::new(source, &metrics, Format::Json);
    tokio::spawn(async move { informer.run(tokio_util::sync::CancellationToken::new()).await });
    let call = server.streamed_list().await;
    assert_eq!(call.path(), "/api/v1/namespaces/ns/nodes");
    for (parameter, value) in [
        ("labelSelector", "role in (a,b)"),
        ("fieldSelector", "metadata.name=x"),
        ("resourceVersion", "0"),
    ] {
        assert_eq!(call.get(parameter), Some(value));
    }
    call.refuse(400, "BadRequest");
    let page = server.page().await;
    assert_eq!((page.get("resourceVersion"), page.accept()), (Some("0"), "application/json"));
    page.page(5, "", &[]);
    server.watch_from("5").await.refuse(410, "Expired");
    let again = server.page().await;
    assert_eq!(again.get("resourceVersion"), None, "lists that may delete are consistent");
    assert_eq!(again.get("labelSelector"), Some("role in (a,b)"));
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_selection_are_not_counted() {
    let (client, mut server) = Server::new();
    let mut source = Source::new(crate::Server::own(client), Node::KIND);
    source.labels = Some("role in (a,b)".into());
    let metrics = InformerMetrics::new(&Registry::new(), PRODUCT).unwrap();
    run(&Informer::<Node>::new(source, &metrics, Format::Json));
    let wire = server.serve_list(5, &[node("a", 1)]).await;
    assert!(!server.compares_between_watches("5", wire).await);
}

/// An informer that may make its first list from the server's cache, and its server.
fn cached() -> (Informer<Node>, Server) {
    let (client, server) = Server::new();
    let mut source = Source::new(crate::Server::own(client), Node::KIND);
    source.first_list = FirstList::Cached;
    let metrics = InformerMetrics::new(&Registry::new(), PRODUCT).unwrap();
    let informer = Informer::<Node>::new(source, &metrics, Format::Json);
    (informer, server)
}

fn run(informer: &Informer<Node>) {
    let informer = informer.clone();
    tokio::spawn(async move { informer.run(tokio_util::sync::CancellationToken::new()).await });
}

#[tokio::test(start_paused = true)]
async fn a_list_from_the_servers_cache_is_not_enough_for_a_user_who_must_not_see_the_past() {
    let (informer, mut server) = cached();
    run(&informer);
    let call = server.streamed_list().await;
    assert_eq!(call.get("resourceVersion"), Some("0"));
    let user = informer.not_older_than(Instant::now());
    let wire = call.stream();
    wire.end_of_list(5);
    informer.synced().await;
    assert!(!user.is_synced(), "the server's cache may lag behind");
    let call = server.streamed_list().await;
    assert_eq!(call.get("resourceVersion"), None);
    let wire = call.stream();
    wire.end_of_list(6);
    timeout(Duration::from_secs(60), user.synced()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_first_list_is_consistent_when_a_user_must_not_see_the_past() {
    let (informer, mut server) = cached();
    let _user = informer.not_older_than(Instant::now());
    run(&informer);
    assert_eq!(server.streamed_list().await.get("resourceVersion"), None);
}

#[tokio::test(start_paused = true)]
async fn the_gauges_of_two_sources_of_one_resource_stand_side_by_side() {
    let (client, _server) = Server::new();
    let registry = Registry::new();
    let metrics = InformerMetrics::new(&registry, PRODUCT).unwrap();
    let all = Source::new(crate::Server::own(client), Node::KIND);
    let some = Source { labels: Some("a=b".into()), ..all.clone() };
    let _both = [all, some].map(|source| Informer::<Node>::new(source, &metrics, Format::Protobuf));
    let text = metrics_of(&registry);
    for line in [
        "icm_informer_objects{resource=\"nodes\",source=\"\"} 0",
        "icm_informer_objects{resource=\"nodes\",source=\"labels=a=b\"} 0",
        "informer_store_resource_version{group=\"\",name=\"infra-controller-manager labels=a=b\",\
         resource=\"nodes\",version=\"v1\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn informers_of_one_source_that_read_it_differently_have_gauges_of_their_own() {
    let (client, _server) = Server::new();
    let registry = Registry::new();
    let metrics = InformerMetrics::new(&registry, PRODUCT).unwrap();
    let source = Source::new(crate::Server::own(client), Node::KIND);
    let cached = Source { first_list: FirstList::Cached, ..source.clone() };
    let _metadata = Informer::<Metadata>::new(source.clone(), &metrics, Format::Json);
    let _cached = Informer::<Node>::new(cached, &metrics, Format::Json);
    let _two = [(); 2].map(|()| Informer::<Node>::new(source.clone(), &metrics, Format::Protobuf));
    let text = metrics_of(&registry);
    for source in ["", "#2", "view=metadata", "first-list=cached"] {
        let line = format!("icm_informer_objects{{resource=\"nodes\",source=\"{source}\"}} 0");
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_series_of_a_kind_end_with_its_last_informer() {
    let (client, _server) = Server::new();
    let registry = Registry::new();
    let metrics = InformerMetrics::new(&registry, PRODUCT).unwrap();
    let source = Source::new(crate::Server::own(client), Node::KIND);
    let [one, other] =
        [(); 2].map(|()| Informer::<Node>::new(source.clone(), &metrics, Format::Protobuf));
    one.cache.shared.metrics.error("timeout");
    drop(one);
    assert!(metrics_of(&registry).contains("reason=\"timeout\""));
    drop(other);
    assert!(!metrics_of(&registry).contains("resource=\"nodes\""), "{}", metrics_of(&registry));
}
