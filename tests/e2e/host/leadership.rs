//! Two replicas and one lease.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use tests::{FaultProxy, Match, PATIENCE, Process, Stopwatch, eventually, mk_node};
use tokio::task::JoinHandle;

use crate::scene::{
    AT_ONCE, LEASE, SHORT_LEASE, Scene, holder, launch, lease_writes, methods, until_readyz, writes,
};

const ARGS: &str = "--use-service-account-credentials=true";
const LEADS: &str = "Successfully acquired lease";

/// A second replica that has seen who leads.
async fn standby(proxy: &FaultProxy, args: &str) -> Process {
    let manager = launch(proxy, args);
    until_readyz(&manager, 200).await;
    // Its second look at the lease: the first one was worked off.
    let looks = || proxy.requests_like(&Match::leases()).len();
    eventually("the standby has looked twice", || looks() >= 2).await;
    manager
}

/// All holders of the lease in order, from now on until `last` returns true for one.
async fn holders_until(scene: &Scene, last: impl Fn(&str) -> bool + Send + 'static) -> Holders {
    let now = scene.lease().await;
    let version = now.metadata.resource_version.clone().unwrap();
    let leases = Api::<Lease>::namespaced(scene.client.clone(), "kube-system");
    let only = WatchParams::default().fields("metadata.name=infra-controller-manager");
    let changes = leases.watch(&only, &version).await.unwrap().boxed();
    Holders(tokio::spawn(async move {
        let mut changes = changes;
        let mut holders = vec![holder(&now)];
        while let Some(change) = changes.try_next().await.unwrap() {
            let WatchEvent::Modified(lease) = change else { continue };
            let holder = holder(&lease);
            if holders.last() != Some(&holder) {
                holders.push(holder);
            }
            if holders.last().is_some_and(|holder| last(holder)) {
                break;
            }
        }
        holders
    }))
}

struct Holders(JoinHandle<Vec<String>>);

impl Holders {
    async fn seen(self) -> Vec<String> {
        let seen = tokio::time::timeout(PATIENCE, self.0).await;
        seen.expect("the last holder comes in time").expect("the watch goes on")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_is_asked_for_with_get_post_and_put_only_under_its_own_name() {
    let scene = Scene::set().await;
    let _leader = scene.start(&format!("{SHORT_LEASE} {ARGS}")).await;
    scene.serves("a").await;
    let other = scene.another_proxy().await;
    let _standby = standby(&other, &format!("{SHORT_LEASE} {ARGS}")).await;

    let renewals = Match::leases().and(|request| request.method == http::Method::PUT);
    eventually("the leader renews", || !scene.proxy.requests_like(&renewals).is_empty()).await;
    let mut seen = scene.proxy.requests_like(&Match::leases());
    seen.extend(other.requests_like(&Match::leases()));
    assert_eq!(Vec::from_iter(methods(&seen)), ["GET", "POST", "PUT"]);
    let collection = LEASE.rsplit_once('/').unwrap().0;
    for request in seen.iter().map(|seen| &seen.request) {
        let path = if request.method == http::Method::POST { collection } else { LEASE };
        assert_eq!(request.path, path);
        assert!(request.user_agent().ends_with("/leader-election"), "{}", request.user_agent());
        assert!(!request.has_token(), "the lease is the root identity's");
        assert!(!request.is_watch());
    }
    let lease = scene.lease().await;
    assert!(lease.metadata.labels.is_none(), "{lease:?}");
    let spec = lease.spec.unwrap();
    assert_eq!(spec.lease_duration_seconds, Some(6));
    assert_eq!(spec.lease_transitions, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_live_and_ready_and_writes_nothing_and_ends_with_0() {
    let scene = Scene::set().await;
    let leader = scene.start(&format!("{SHORT_LEASE} {ARGS}")).await;
    let before = scene.holder().await;
    let other = scene.another_proxy().await;
    let standby = standby(&other, &format!("{SHORT_LEASE} {ARGS}")).await;
    scene.serves("a").await;
    for path in ["/livez", "/readyz", "/healthz"] {
        assert_eq!(standby.get(path).await.unwrap(), (200, "ok".into()), "{path}");
    }
    let status = "leader_election_master_status";
    assert_eq!(standby.metric(status, &[]).await, Some(0.0));
    assert_eq!(leader.metric(status, &[]).await, Some(1.0));

    standby.terminate();
    assert_eq!(standby.exit(AT_ONCE).await.code(), Some(0));
    let written = other.requests_like(&writes());
    assert!(written.is_empty(), "{written:?}");
    assert_eq!(scene.holder().await, before);
    assert!(leader.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_sigterm_the_lease_is_free_and_the_standby_leads_within_5_s() {
    let scene = Scene::set().await;
    // The default timings, for which the time is specified.
    let leader = scene.start(ARGS).await;
    scene.serves("a").await;
    let other = scene.another_proxy().await;
    let standby = standby(&other, ARGS).await;
    let first = scene.holder().await;
    let old = first.clone();
    let holders = holders_until(&scene, move |holder| !holder.is_empty() && holder != old).await;

    let asked = Stopwatch::start();
    leader.terminate();
    standby.line(LEADS).await;
    let took = asked.elapsed();
    assert!(took <= Duration::from_secs(5), "{took:?} from the signal to the next leader");
    assert_eq!(leader.exit(AT_ONCE).await.code(), Some(0));

    let holders = holders.seen().await;
    assert_eq!(holders.len(), 3, "{holders:?}");
    assert_eq!((&*holders[0], &*holders[1]), (&*first, ""), "released before it is taken");
    let taken = other.requests_like(&lease_writes())[0].request.json();
    assert_eq!(taken["spec"]["leaseTransitions"], 1);
    scene.serves("b").await;
    let patches = (scene.proxy.node_patches().len(), other.node_patches().len());
    assert_eq!(patches, (1, 1), "each leader wrote in its term");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_sigkill_the_standby_leads_when_the_lease_has_expired_and_not_before() {
    let scene = Scene::set().await;
    let leader = scene.start(&format!("{SHORT_LEASE} {ARGS}")).await;
    scene.serves("a").await;
    let other = scene.another_proxy().await;
    let standby = standby(&other, &format!("{SHORT_LEASE} {ARGS}")).await;

    leader.kill();
    let died = Stopwatch::start();
    mk_node("b").create(&scene.client).await;
    standby.line(LEADS).await;
    let took = died.elapsed();
    // The lease, the standby's pause of 500 ms × 2.2 at most, and as much again for the machine.
    assert!(took <= Duration::from_secs(6 + 3), "{took:?} from the death to the next leader");
    let renewed = scene.proxy.requests_like(&lease_writes()).pop().unwrap().arrived;
    let written = other.requests_like(&writes());
    let early = written.iter().find(|seen| seen.arrived < renewed + Duration::from_millis(5_500));
    assert!(early.is_none(), "{early:?}");
    scene.nodes.until("b is served by the next leader", |now| now.assigned() == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_signal_ends_it_at_once_with_1_and_leaves_the_lease() {
    let scene = Scene::set().await;
    let manager = scene.start(ARGS).await;
    let hold = scene.proxy.on(Match::node_patches()).hold();
    mk_node("a").create(&scene.client).await;
    hold.arrived(1).await;
    manager.terminate();
    manager.line("Shutting down").await;
    assert!(manager.is_running(), "a PATCH is open");
    let asked = Stopwatch::start();
    manager.interrupt();
    assert_eq!(manager.exit(AT_ONCE).await.code(), Some(1));
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(1), "the end took {took:?}");
    assert_ne!(scene.holder().await, "", "what was sent may yet be carried out");
    hold.release();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_leader_election_it_warns_once_and_leaves_the_lease_alone() {
    let scene = Scene::set().await;
    let manager = scene.start(&format!("--leader-elect=false {ARGS}")).await;
    scene.serves("a").await;
    let lines = manager.lines();
    let of_access = |line: &&String| line.contains("-kubeconfig outside a pod");
    let warnings = lines.iter().filter(|line| line.starts_with('W') && !of_access(line));
    let warnings: Vec<_> = warnings.collect();
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(warnings[0].contains("Leader election is off"), "{}", warnings[0]);
    let (_, checks) = manager.get("/healthz?verbose").await.unwrap();
    assert!(!checks.contains("leaderElection"), "{checks}");
    assert!(scene.proxy.requests_like(&Match::leases()).is_empty());
}
