//! Sharing of informers, their lifetime, and the check `informer-sync`.

use std::sync::atomic::{AtomicUsize, Ordering};

use api_server_double::{ApiServer, Reply};
use informer::Delta;
use kube_api::Node;
use prometheus::Registry;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::*;
use crate::testing::{informers, informers_with, lists, script_of, server_of};

/// Informers of a server that answers every list with one object.
fn of_one_object(object: serde_json::Value) -> (Informers, ApiServer) {
    let server = server_of(object);
    let metrics = InformerMetrics::new(&Registry::new(), "test").unwrap();
    (informers(server.client(), metrics), server)
}

fn node() -> serde_json::Value {
    json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}})
}

#[tokio::test(start_paused = true)]
async fn users_of_equal_sources_share_one_informer_and_others_do_not() {
    let (informers, server) = of_one_object(node());
    let (one, other) = (informers.of_run().get::<Node>(), informers.of_run().get::<Node>());
    one.synced().await;
    assert!(other.is_synced());
    assert_eq!(lists(&server), 1);
    let mut selected = informers.source(Node::KIND);
    selected.labels = Some("a=b".into());
    let selected = informers.get_from::<Node>(selected);
    selected.synced().await;
    let metadata = informers.get_from::<Metadata>(informers.source(Node::KIND));
    metadata.synced().await;
    assert_eq!(lists(&server), 3, "one by a selector, one in another form");
}

#[tokio::test(start_paused = true)]
async fn the_schema_of_a_kind_is_ours_when_its_crd_has_our_label() {
    let of_crd = |name: &str, labels: serde_json::Value| {
        of_one_object(json!({"metadata": {
            "name": name, "uid": "u", "resourceVersion": "1", "labels": labels,
        }}))
    };
    let kind = Resource::cluster("example.io", "v1", "Widget", "widgets");
    let ours = json!({"app.kubernetes.io/managed-by": "test"});
    let rows = [
        ("widgets.example.io", ours.clone(), true),
        ("widgets.example.io", json!({"app.kubernetes.io/managed-by": "Helm"}), false),
        ("widgets.example.io", json!(null), false),
        // An aggregated API server serves it.
        ("others.example.io", ours, false),
    ];
    for (name, labels, expected) in rows {
        let (informers, _server) = of_crd(name, labels.clone());
        let is_ours = informers.schema_is_ours(&kind);
        let crds = Source::crds(informers.shared.options.server.clone());
        informers.get_from::<Metadata>(crds).synced().await;
        assert_eq!(is_ours(), expected, "{name} {labels}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crd_has_a_label_when_its_value_is_the_one_that_is_asked_for() {
    let kind = Resource::cluster("example.io", "v1", "Widget", "widgets");
    for (labels, expected) in [
        (json!({"example.io/keeps": "true"}), true),
        (json!({"example.io/keeps": "false"}), false),
        (json!({"example.io/other": "true"}), false),
    ] {
        let (informers, _server) = of_one_object(json!({"metadata": {
            "name": "widgets.example.io", "uid": "u", "resourceVersion": "1", "labels": labels,
        }}));
        let has = informers.crd_has(&kind, "example.io/keeps", "true");
        let crds = Source::crds(informers.shared.options.server.clone());
        informers.get_from::<Metadata>(crds).synced().await;
        assert_eq!(has(), expected, "{labels}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_ends_with_its_last_user() {
    let (informers, server) = of_one_object(node());
    let nodes = informers.get::<Node>();
    let told = nodes.subscribe(|_| {});
    nodes.synced().await;
    drop(nodes);
    informers.get::<Node>().synced().await;
    assert_eq!(lists(&server), 1, "a subscription keeps it");
    drop(told);
    informers.get::<Node>().synced().await;
    assert_eq!(lists(&server), 2);
}

#[tokio::test(start_paused = true)]
async fn the_check_is_green_when_all_caches_are_filled_or_dormant() {
    let (script, began) = (script_of(node()), Instant::now());
    let server =
        ApiServer::new(
            move |asked| {
                if began.elapsed() > SILENCE / 3 { Reply::Silence } else { script(asked) }
            },
        );
    let metrics = InformerMetrics::new(&Registry::new(), "test").unwrap();
    let informers = informers(server.client(), metrics);
    let check = informers.check();
    assert_eq!(check(), Ok(()), "no informer is in use");
    let nodes = informers.get::<Node>();
    assert_eq!(check(), Err("the first list of nodes is not complete".into()));
    nodes.synced().await;
    assert_eq!(check(), Ok(()));
    // No CRD of the group is there.
    let source = informers.source(Kind::named("example.io", "Widget"));
    assert_eq!(source.managed_by.as_deref(), Some("test"));
    let widgets = informers.get_from::<Metadata>(source);
    while !widgets.is_dormant() {
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(check(), Ok(()));
    // Its lists are answered for a while yet.
    sleep(SILENCE * 2).await;
    assert!(check().is_err_and(|silent| silent.contains("no event of")));
}

#[tokio::test(start_paused = true)]
async fn the_check_names_the_object_that_a_strict_cache_waits_for() {
    let mut bad = node();
    bad["spec"] = json!({"podCIDRs": [7]});
    let (informers, _server) = of_one_object(bad);
    let _nodes = informers.get::<Node>();
    sleep(Duration::from_secs(5)).await;
    let told = informers.check()().unwrap_err();
    assert!(told.contains("nodes: cannot read object \"a\""), "{told}");
}

#[tokio::test]
async fn a_user_may_lift_the_condition_that_a_crd_is_ours() {
    let (informers, _server) = of_one_object(node());
    let source = informers.of_any_owner().source(Kind::named("example.io", "Widget"));
    assert_eq!(source.managed_by, None);
    assert_eq!(informers.source(Node::KIND).managed_by, None);
}

#[tokio::test(start_paused = true)]
async fn a_cache_shows_of_its_objects_again_after_each_period_and_asks_the_server_nothing() {
    const PERIOD: Duration = Duration::from_secs(10);
    for resync in [Some(PERIOD), None] {
        let server = server_of(node());
        let metrics = InformerMetrics::new(&Registry::new(), "test").unwrap();
        let informers = informers_with(server.client(), metrics, resync);
        let nodes = informers.get::<Node>();
        let again = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&again);
        let _told = nodes.subscribe(move |delta| {
            if let Delta::Updated { old, new } = delta {
                assert!(Arc::ptr_eq(old, new));
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        nodes.synced().await;
        let listed = lists(&server);
        sleep(PERIOD * 2 + PERIOD / 2).await;
        assert_eq!(again.load(Ordering::Relaxed), if resync.is_some() { 2 } else { 0 });
        assert_eq!(lists(&server), listed);
    }
}
