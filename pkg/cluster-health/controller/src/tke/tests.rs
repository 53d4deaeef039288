//! One Cluster in the pipeline, with caches and an API server that are scripted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bench::{Bench, S, read, sent};
use health::Status;
use jiff::Timestamp;
use memory_search::Mark;
use objects::Object;
use probe::Address;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use workqueue::{Next, Reconcile as _, Retry};

use super::cluster_details::ClusterDetails;
use super::flavour::Tke;
use crate::api::tke::Cluster;
use crate::engine::follow::subscribe;
use crate::engine::pipeline::Pipeline;
use crate::engine::tests::scene::target;
use crate::engine::{self, Flavour as _, Work, identity};
use crate::tke::testing::connect;

mod bench;
mod credentials;

/// rule:nothing-outlives-its-object
#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_deleted_while_its_credential_is_read_leaves_nothing() {
    let object = sent(&[("10.0.0.1", 6443)], |_| {});
    let there = Bench::start(&[&object]).await;
    let object = read(&object);
    assert!(there.register(&object, 0).await.is_ok());
    assert_eq!(there.knows(&object), (true, true));
    let gone = Bench::start(&[]).await;
    assert!(gone.register(&object, 0).await.is_ok());
    assert_eq!(gone.knows(&object), (false, false));
    gone.credentials.refused.store(true, Ordering::Relaxed);
    assert!(gone.register(&object, 0).await.is_err());
    assert_eq!(gone.knows(&object), (false, false), "it could not be read");
    gone.credentials.refused.store(false, Ordering::Relaxed);
    gone.credentials.absent.store(true, Ordering::Relaxed);
    let new = read(&sent(&[], |it| it["status"]["phase"] = "Initializing".into()));
    assert!(matches!(gone.register(&new, 0).await, Ok(Next::After(_))));
    assert_eq!(gone.knows(&new), (false, false), "it waited for its credential");
}

#[tokio::test(start_paused = true)]
async fn those_of_the_first_list_are_spread_and_one_that_is_live_later_is_not() {
    let named = |name: &str, phase: &str| {
        sent(&[("10.0.0.1", 6443)], |it| {
            it["metadata"]["name"] = name.into();
            it["metadata"]["uid"] = name.into();
            it["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z".into();
            it["status"]["phase"] = phase.into();
        })
    };
    let [one, two, idle] =
        [("one", "Running"), ("two", "Failed"), ("idle", "Idling")].map(|it| named(it.0, it.1));
    let bench = Bench::start(&[&one, &two, &idle]).await;
    let together = |object: &Value| bench.pipeline.together(&read(object));
    assert_eq!([&one, &two].map(together), [2, 2]);
    assert_eq!(together(&named("idle", "Running")), 0, "it has waited long enough");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_credential_comes_late_is_probed_at_once_and_not_in_its_turn() {
    let object = sent(&[("10.0.0.1", 6443)], |it| it["status"]["phase"] = "Initializing".into());
    // The first probes of so many are spread over twenty seconds.
    let many = 10_000;
    for comes_late in [false, true] {
        let (bench, object) = (Bench::start(&[&object]).await, read(&object));
        if comes_late {
            bench.credentials.absent.store(true, Ordering::Relaxed);
            assert!(matches!(bench.register(&object, many).await, Ok(Next::After(_))));
            bench.credentials.absent.store(false, Ordering::Relaxed);
            bench.look(&Work::Credential("cc-1".into())).await;
        }
        assert!(bench.register(&object, many).await.is_ok());
        let watched = bench.engine.clusters.find(&*bench.pipeline.flavour, "cls-1").unwrap();
        let due = watched.view(|it| it.member.due());
        let wait = due.map(|due| due.saturating_duration_since(engine::now().monotonic));
        assert_eq!(wait.is_none_or(|wait| wait <= S(1)), comes_late, "{wait:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_that_somebody_else_changed_is_written_over_and_our_own_is_not() {
    let listed = sent(&[], |_| {});
    let bench = Bench::start(&[&listed]).await;
    let Pipeline { objects, registry, flavour, .. } = &bench.pipeline;
    let _heard = subscribe(objects, registry, flavour, |_| {});
    let mut told = target(&bench.engine.members, "cls-1", 1);
    told.cluster = identity(&read(&listed));
    registry.upsert(told);
    sleep(S(15)).await;
    let api = &bench.engine.api;
    let ours = api.cluster("cls-1").unwrap();
    assert_eq!(ours["phase"], "Running");
    let writes = api.writes();
    let change = |version: &str, status: Value| {
        let object = sent(&[], |it| {
            it["metadata"]["resourceVersion"] = version.into();
            it["status"] = status;
        });
        bench.changes.send(json!({"type": "MODIFIED", "object": object})).unwrap();
    };
    change("9", ours.clone());
    sleep(S(1)).await;
    assert_eq!(api.writes(), writes, "our own write came back");
    let mut foreign = ours.clone();
    foreign["phase"] = "Failed".into();
    change("10", foreign);
    sleep(S(1)).await;
    assert_eq!(api.writes(), writes + 1);
    assert_eq!(api.cluster("cls-1").unwrap()["phase"], "Running");
}

/// rule:unwatched-clusters-become-unknown
#[tokio::test(start_paused = true)]
async fn a_cluster_whose_credential_cannot_be_read_after_a_restart_becomes_unknown() {
    let object = sent(&[("10.0.0.1", 6443)], |_| {});
    let (bench, object) = (Bench::start(&[&object]).await, read(&object));
    let (id, cluster) = (identity(&object), Work::Cluster("cls-1".into()));
    bench.credentials.refused.store(true, Ordering::Relaxed);
    assert!(bench.pipeline.reconcile(&cluster).await.is_err(), "it is retried");
    assert_eq!(bench.pipeline.registry.readiness(&id), Some(Status::True), "as it was published");
    sleep(bench.pipeline.flavour.options.policy.stale_after() + S(5)).await;
    assert!(bench.pipeline.reconcile(&cluster).await.is_err());
    assert_eq!(bench.pipeline.registry.readiness(&id), Some(Status::Unknown));
    bench.credentials.refused.store(false, Ordering::Relaxed);
    bench.look(&cluster).await;
    assert!(bench.connection(&object).is_some());
    bench.credentials.refused.store(true, Ordering::Relaxed);
    bench.pipeline.flavour.details.connections.invalidate("cls-1");
    assert!(bench.pipeline.reconcile(&cluster).await.is_err());
    assert!(bench.connection(&object).is_some(), "it is probed as before");
}

/// rule:nothing-outlives-its-object
#[tokio::test(start_paused = true)]
async fn a_cluster_that_waits_for_its_credential_and_is_deleted_leaves_nothing() {
    let object = sent(&[], |it| it["status"]["phase"] = "Initializing".into());
    let (bench, object) = (Bench::start(&[&object]).await, read(&object));
    bench.credentials.absent.store(true, Ordering::Relaxed);
    bench.look(&Work::Cluster("cls-1".into())).await;
    assert_eq!(bench.knows(&object), (false, true), "it waits");
    bench.pipeline.registry.remove(&identity(&object));
    assert_eq!(bench.knows(&object), (false, false));
}

/// rule:a-restart-changes-nothing
#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_published_without_ready_nodes_has_too_few_until_they_are_listed() {
    for (reason, enough) in [("NodesNotReady", Some(false)), ("HealthCheckFail", None)] {
        let object = sent(&[("10.0.0.1", 6443)], |it| {
            it["status"]["phase"] = "Failed".into();
            it["status"]["conditions"] =
                json!([{"type": "HealthCheck", "status": "False", "reason": reason}]);
        });
        let (bench, object) = (Bench::start(&[&object]).await, read(&object));
        bench.look(&Work::Cluster("cls-1".into())).await;
        let details = &bench.pipeline.flavour.details;
        let known = details.known(&identity(&object), |entry| entry.facts.enough_nodes);
        assert_eq!(known, Some(enough), "{reason}");
        details.known(&identity(&object), |entry| entry.facts.enough_nodes = Some(true));
        bench.look(&Work::Cluster("cls-1".into())).await;
        let known = details.known(&identity(&object), |entry| entry.facts.enough_nodes);
        assert_eq!(known, Some(Some(true)), "a list knows better than the object");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_that_was_learnt_of_a_cluster_is_told_of_another_one_at_another_address() {
    let (a, b, c) = (("10.0.0.1", 6443), ("10.0.0.2", 6443), ("10.0.0.3", 6443));
    let listed = sent(&[a], |_| {});
    let (bench, object) = (Bench::start(&[&listed]).await, read(&listed));
    bench.look(&Work::Cluster("cls-1".into())).await;
    let (details, id) = (&bench.pipeline.flavour.details, identity(&object));
    let learn = || {
        details.known(&id, |entry| {
            entry.facts.versioned(Some("1.36.3".into()), Timestamp::now());
            (entry.facts.enough_nodes, entry.version_asked) = (Some(false), Some(Instant::now()));
        })
    };
    let known = || {
        let known = |entry: &mut ClusterDetails| {
            let facts = &entry.facts;
            (facts.version.is_some(), facts.enough_nodes.is_some(), entry.version_asked.is_some())
        };
        details.known(&id, known).unwrap()
    };
    let at = |version: &str, addresses: &[(&str, u16)]| {
        sent(addresses, |it| it["metadata"]["resourceVersion"] = version.into())
    };
    learn();
    bench.change(&at("8", &[b, a])).await;
    assert_eq!(known(), (true, true, true), "one address more is the same cluster");
    let (_, before) = details.target(&id).unwrap();
    bench.change(&at("9", &[("no host", 1)])).await;
    bench.change(&at("10", &[c])).await;
    assert_eq!(known(), (false, false, false));
    assert!(
        details.still(&id, &before, |_| ()).is_none(),
        "what is under connection is of the other one"
    );
    let (_, now) = details.target(&id).unwrap();
    assert!(details.still(&id, &now, |_| ()).is_some());
}

/// rule:nothing-outlives-its-object, rule:secrets-are-never-shown
#[test]
fn the_token_of_a_cluster_that_is_gone_or_has_another_one_is_wiped() {
    let flavour = bench::flavour();
    let object = read(&sent(&[("10.0.0.1", 6443)], |_| {}));
    let (id, first, second) = (identity(&object), Mark::random(), Mark::random());
    let lead = |token: &Mark| {
        let inputs = probe::Inputs {
            addresses: vec![Address::parse("https://10.0.0.1:6443").unwrap()],
            token: Some(token.secret().as_str().into()),
            tls: probe::WaivedChecks { everything: true, ..probe::WaivedChecks::default() },
            ..probe::Inputs::default()
        };
        let client = flavour.prober.client(&inputs).map(Arc::new);
        connect(&flavour.details.connections, &id, client);
    };
    lead(&first);
    assert!(first.is_in_memory());
    lead(&second);
    assert!(!first.is_in_memory(), "after a rotation");
    assert!(second.is_in_memory());
    flavour.removed(&id);
    assert!(!second.is_in_memory(), "after the deletion");
}
