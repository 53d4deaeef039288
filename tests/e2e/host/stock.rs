//! The real kube-controller-manager next to the program: `check` finds it, a second allocator is reported,
//! and a cluster moves over and back (`deploy/TAKE-OVER.md`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use tests::churn::{Churn, Going};
use tests::observer::Seen;
use tests::programs::control_plane_binaries;
use tests::{Match, PATIENCE, Process, assert_never_shared, mk_node, poll, stalls};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::check::{ALLOCATING, check, errors, has};
use crate::scene::{AT_ONCE, Scene, launch};

const ON: &str = "--controllers=node-ipam-controller";
const OFF: &str = "--controllers=ttl-controller,-node-ipam-controller";
const RELEASING: &str = "--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=true";

/// Stock's default, and ours.
const LEASE: Duration = Duration::from_secs(15);
/// Longest time until another replica tries for a lease that was not released: every two to four
/// and a half seconds.
const NEXT_TRY: Duration = Duration::from_secs(5);
/// The end of one program and the start of another, until it looks at its lease and has its caches.
const START: Duration = Duration::from_secs(8);

pub(crate) fn program() -> PathBuf {
    control_plane_binaries(&["kube-controller-manager"]).unwrap().remove(0)
}

/// Starts it as kubeadm does, as far as it matters here.
fn stock(program: &Path, scene: &Scene, args: &[&str]) -> Process {
    Process::with_kubeconfig(&scene.cluster.manager_kubeconfig())
        .program(program)
        .args(["--allocate-node-cidrs=true", "--cluster-cidr=10.0.0.0/12"])
        .args(["--use-service-account-credentials=true"])
        .args(args.iter().copied())
        .start()
}

const SHORT: [&str; 3] = [
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=1s",
];

/// Result of `check` with this kube-controller-manager on the host.
async fn checked(scene: &Scene, stock: &Process) -> (Option<i32>, Vec<[String; 3]>) {
    let health = format!("--stock-healthz=https://127.0.0.1:{}/healthz", stock.port());
    let args = [&ALLOCATING[..], &[&*health]].concat();
    check(&scene.cluster.manager_kubeconfig(), &args).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_stock_manager_is_found_by_its_health_until_its_allocator_is_off() {
    let program = program();
    let scene = Scene::set().await;
    let allocating = stock(&program, &scene, &[&SHORT[..], &[ON]].concat());
    scene.serves("a").await;
    let (code, findings) = checked(&scene, &allocating).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    let runs = "leads and runs node-ipam-controller";
    assert!(has(&findings, "error", "stock", runs), "{findings:#?}");
    assert!(has(&findings, "ok", "leases", "kube-controller-manager leads as"), "{findings:#?}");
    allocating.kill();
    allocating.exit(AT_ONCE).await;

    let stock_idle = stock(&program, &scene, &[&SHORT[..], &[OFF]].concat());
    stock_idle.line("Caches are synced").await;
    let (code, findings) = checked(&scene, &stock_idle).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    assert!(
        has(&findings, "ok", "stock", "leads and does not run node-ipam-controller"),
        "{findings:#?}"
    );
    assert!(!has(&findings, "warning", "stock", ""), "its flags are known: {findings:#?}");

    let ours = scene.start("--use-service-account-credentials").await;
    scene.serves("b").await;
    let (code, findings) = checked(&scene, &stock_idle).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    let held = "kube-system/infra-controller-manager is held by";
    assert!(has(&findings, "ok", "leases", held), "{findings:#?}");
    drop((ours, stock_idle));
}

/// The hard case: both choose the same block, so that only the writer of the CIDR tells (rule:second-allocator-is-told).
#[tokio::test(flavor = "multi_thread")]
async fn a_second_allocator_is_reported_by_event_metric_and_check_and_ours_pauses() {
    let program = program();
    let scene = Scene::set().await;
    let args = "--use-service-account-credentials --on-second-allocator=stop";
    let ours = scene.start(args).await;
    scene.serves("ours").await;
    let theirs = stock(&program, &scene, &[&SHORT[..], &[ON]].concat());
    let health = async || theirs.get("/healthz?verbose").await.ok();
    let runs = async || health().await?.1.contains("node-ipam-controller").then_some(());
    poll("stock's allocator runs", runs).await;
    let writes = Match::node_patches().and(|request| request.path.ends_with("/theirs"));
    let held = scene.proxy.on(writes.clone()).hold();
    // As a kubelet's: of an object without any field the API server notes no writers.
    mk_node("theirs").label("kubernetes.io/hostname", "theirs").create(&scene.client).await;
    scene.nodes.until("stock serves it", |now| !now.cidrs("theirs").is_empty()).await;
    held.arrived(1).await;
    held.release();
    ours.until_metric(
        "node_ipam_second_allocator_total",
        &[("manager", "kube-controller-manager")],
        |met| met > 0.0,
    )
    .await;
    let reported = ours.line("kube-controller-manager assigned 10.0.1.0/24").await;
    assert!(reported.contains("until it is restarted"), "{reported}");
    // The watch may report stock's write before the answer to ours is there.
    let answer = async || scene.proxy.requests_like(&writes).first()?.upstream_status;
    assert_eq!(poll("the API server answers", answer).await, 200, "both chose the same block");
    assert_eq!(scene.proxy.requests_like(&writes).len(), 1);
    scene.event("theirs", "SecondAllocator", |_| true).await;
    let (code, findings) = checked(&scene, &theirs).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    assert!(!errors(&findings).is_empty(), "{findings:#?}");

    theirs.kill();
    theirs.exit(AT_ONCE).await;
    mk_node("late").create(&scene.client).await;
    ours.until_metric("node_ipam_pending_nodes", &[], |nodes| nodes > 0.0).await;
    sleep(Duration::from_secs(2)).await;
    assert!(scene.nodes.now().cidrs("late").is_empty(), "--on-second-allocator=stop is set");
    ours.terminate();
    assert!(ours.exit(AT_ONCE).await.success());
    let again = launch(&scene.proxy, "--use-service-account-credentials");
    scene.nodes.until("late is served", |now| !now.cidrs("late").is_empty()).await;
    drop(again);
}

/// The result for all Nodes.
struct Story {
    /// The longest time that one which lived on had no CIDR.
    longest: Duration,
    nodes: usize,
}

/// Fails for a CIDR that changed.
fn story(history: &[Seen]) -> Story {
    let mut born: HashMap<Arc<str>, Instant> = HashMap::new();
    let mut given: HashMap<Arc<str>, &[String]> = HashMap::new();
    let mut longest = Duration::ZERO;
    for seen in history.iter().filter(|seen| !seen.deleted) {
        let since = *born.entry(seen.uid.clone()).or_insert(seen.at);
        if seen.pod_cidrs.is_empty() {
            continue;
        }
        let before = given.entry(seen.uid.clone()).or_insert_with(|| {
            longest = longest.max(stalls::without(since, seen.at));
            &seen.pod_cidrs
        });
        assert_eq!(*before, seen.pod_cidrs, "the CIDR of {} changed", seen.name);
    }
    Story { longest, nodes: born.len() }
}

/// Migrates a cluster of `size` Nodes to the product and back, while Nodes come and go.
async fn migrate(size: usize, gates: &[&str], limit: Duration) {
    const PHASE: Duration = Duration::from_secs(10);
    let program = program();
    let scene = Scene::set().await;
    // By itself it serves 20 Nodes in a second, and hardly ever those that came while it started.
    let faster = ["--kube-api-qps=200", "--kube-api-burst=400"];
    let on = [gates, &faster, &[ON]].concat();
    let off = [gates, &faster, &[OFF]].concat();
    let stopped = async |process: Process| {
        process.terminate();
        process.exit(PATIENCE).await;
    };
    let before = stock(&program, &scene, &on);
    let churn = Churn::begin(&scene.client, size, Going { old: 2, young: 2 }, None).await;
    let all = format!("all {size} Nodes have a CIDR of stock");
    scene.nodes.until(&all, |now| now.assigned() == size).await;
    let calm = CancellationToken::new();
    let churning = tokio::spawn(churn.run(calm.clone()));
    sleep(PHASE).await;
    assert_eq!(checked(&scene, &before).await.0, Some(1), "stock gives out CIDRs");

    // Over.
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some("infra-controller-manager".into()),
            ..ObjectMeta::default()
        },
        spec: None,
    };
    let leases = Api::<Lease>::namespaced(scene.client.clone(), "kube-system");
    leases.create(&PostParams::default(), &lease).await.unwrap();
    stopped(before).await;
    let stock_idle = stock(&program, &scene, &off);
    poll("stock answers", async || stock_idle.get("/healthz").await.ok()).await;
    let (code, findings) = checked(&scene, &stock_idle).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    let ours = scene.start("--use-service-account-credentials").await;
    sleep(PHASE + LEASE).await;
    assert!(checked(&scene, &stock_idle).await.0 == Some(0) && ours.is_running());

    // And back.
    stopped(ours).await;
    stopped(stock_idle).await;
    let after = stock(&program, &scene, &on);
    sleep(PHASE + LEASE).await;
    calm.cancel();
    let left = churning.await.unwrap();
    let served = |now: &tests::observer::Nodes| left.iter().all(|name| !now.cidrs(name).is_empty());
    scene.nodes.until("every remaining Node has a CIDR", served).await;

    let history = scene.nodes.history();
    assert_never_shared(&history, &[]);
    let Story { longest, nodes } = story(&history);
    eprintln!(
        "{nodes} Nodes, {} states; the longest wait for a CIDR was {longest:?}",
        history.len()
    );
    assert!(longest < limit, "a Node had no CIDR for {longest:?}");
    drop(after);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "scripts/accept-host migration"]
async fn migration_of_500_nodes_over_and_back_with_leases_given_back() {
    migrate(500, &[RELEASING], LEASE).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "scripts/accept-host migration"]
async fn migration_of_500_nodes_over_and_back_with_stock_as_it_is() {
    migrate(500, &[], LEASE + NEXT_TRY + START).await;
}
