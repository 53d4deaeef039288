//! Incidents of `tests/INCIDENTS.md` that kube-controller-manager still has: each scene is played on this program, where
//! the rule must hold, and on kube-controller-manager, where it must fail as the table says.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tests::fault_proxy::Canned;
use tests::history::shared;
use tests::nodes::names;
use tests::programs::control_plane_binaries;
use tests::{Fault, FaultProxy, Process, create_nodes, mk_node, poll};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::scene::{SHORT_LEASE, Scene, patch_of};

/// Text that both programs log when they acquire the lease.
const LEADS: &str = "uccessfully acquired lease";
const ONE_REPLICA: &str = "--leader-elect=false";
/// Longer than either program needs for a Node that it can serve.
const SERVED_WITHIN: Duration = Duration::from_secs(10);

/// A cluster with the program that a scene is played on.
struct Stage<'a> {
    scene: Scene,
    /// kube-controller-manager; `None` for this program.
    stock: Option<&'a Path>,
}

impl Stage<'_> {
    fn launch(&self, proxy: &FaultProxy, args: &str) -> Process {
        let launch = Process::with_kubeconfig(proxy.kubeconfig())
            .args(["--allocate-node-cidrs=true", "--use-service-account-credentials=true"])
            .args(["--controllers=node-ipam-controller", "--kube-api-qps=500"])
            .args(args.split_whitespace());
        match self.stock {
            Some(path) => launch.program(path).start(),
            None => launch.start(),
        }
    }

    fn start(&self, args: &str) -> Process {
        self.launch(&self.scene.proxy, &format!("{ONE_REPLICA} {args}"))
    }

    /// Whether the Node has a CIDR, after a wait for it.
    async fn is_served(&self, node: &str) -> bool {
        let has_cidr = |now: &tests::observer::Nodes| !now.cidrs(node).is_empty();
        has_cidr(&self.scene.nodes.within(SERVED_WITHIN, has_cidr).await)
    }

    /// The first overlap of two Nodes.
    fn overlap(&self) -> Option<String> {
        shared(&self.scene.nodes.history(), &[]).into_iter().next()
    }
}

/// Plays a scene on both. It returns how the rule was broken.
async fn on_both(play: impl AsyncFn(&Stage<'_>) -> Option<String>) {
    let stock = control_plane_binaries(&["kube-controller-manager"]).unwrap().remove(0);
    let broken = play(&Stage { scene: Scene::set().await, stock: None }).await;
    assert_eq!(broken, None, "this program");
    let broken = play(&Stage { scene: Scene::set().await, stock: Some(&stock) }).await;
    let broken = broken.expect("kube-controller-manager no longer fails so: correct INCIDENTS.md");
    eprintln!("kube-controller-manager: {broken}");
}

/// Has each write of a Node with the label `slow` take this long in the API server: it asks a webhook that is silent.
async fn slow_writes(
    stage: &Stage<'_>,
    seconds: u64,
) -> (Api<ValidatingWebhookConfiguration>, TcpListener) {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let configuration = json!({
        "metadata": {"name": "slow"},
        "webhooks": [{
            "name": "slow.example.com",
            "clientConfig": {"url": format!("https://{}/", silent.local_addr().unwrap())},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}],
            "objectSelector": {"matchLabels": {"slow": "true"}},
            "timeoutSeconds": seconds, "failurePolicy": "Ignore", "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    });
    let webhooks = Api::all(stage.scene.client.clone());
    let configuration = serde_json::from_value(configuration).unwrap();
    webhooks.create(&PostParams::default(), &configuration).await.unwrap();
    mk_node("probe").label("slow", "true").create(&stage.scene.client).await;
    let nodes = Api::<Node>::all(stage.scene.client.clone());
    poll("writes are slow", async || {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"probe": "true"}}}));
        let params = PatchParams::default();
        let write = nodes.patch_metadata("probe", &params, &patch);
        timeout(Duration::from_secs(1), write).await.err()
    })
    .await;
    stage.scene.remove("probe").await;
    (webhooks, silent)
}

/// kubernetes#29062
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kube-controller-manager"]
async fn late_patch_of_a_former_leader() {
    const HELD: u64 = 14;
    on_both(async |stage| {
        let (webhooks, _silent) = slow_writes(stage, HELD).await;
        let args = format!("{SHORT_LEASE} --cluster-cidr=10.0.0.0/16");
        let first = stage.launch(&stage.scene.proxy, &args);
        first.line(LEADS).await;
        let sent = stage.scene.proxy.on(patch_of("z")).times(1).then(Fault::None);
        mk_node("z").label("slow", "true").create(&stage.scene.client).await;
        sent.hit(1).await;
        first.pause();
        create_nodes(&stage.scene.client, names("b", 8).map(mk_node)).await;
        let other = stage.scene.another_proxy().await;
        let second = stage.launch(&other, &args);
        second.line(LEADS).await;
        let all = |now: &tests::observer::Nodes| now.assigned() == 9;
        stage.scene.nodes.within(Duration::from_secs(HELD + 2), all).await;
        webhooks.delete("slow", &DeleteParams::default()).await.unwrap();
        stage.scene.nodes.until("all have CIDRs", all).await;
        stage.overlap()
    })
    .await;
}

/// kubernetes#70957
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kube-controller-manager"]
async fn blocks_of_two_masks() {
    on_both(async |stage| {
        for (node, block) in [("old-1", "10.0.0.0/24"), ("old-2", "10.0.1.0/24")] {
            mk_node(node).cidr(block).create(&stage.scene.client).await;
        }
        let _manager = stage.start("--cluster-cidr=10.0.0.0/22 --node-cidr-mask-size=23");
        assert_eq!(stage.scene.add("second").await, ["10.0.2.0/23"]);
        stage.scene.remove("old-2").await;
        mk_node("third").create(&stage.scene.client).await;
        stage.is_served("third").await;
        stage.overlap()
    })
    .await;
}

/// kubernetes#82773
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kube-controller-manager"]
async fn garbage_stops_nobody() {
    on_both(async |stage| {
        mk_node("outside").cidr("192.168.7.0/24").create(&stage.scene.client).await;
        let manager = stage.start("--cluster-cidr=10.0.0.0/22");
        mk_node("a").create(&stage.scene.client).await;
        let is_served = stage.is_served("a").await;
        (!is_served)
            .then(|| format!("a has no CIDR, and the process runs: {}", manager.is_running()))
    })
    .await;
}

/// cloud-provider-azure#4556
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kube-controller-manager"]
async fn failed_patch_keeps_its_block() {
    const THREE_TRIES: Duration = Duration::from_secs(30);
    on_both(async |stage| {
        let (webhooks, _silent) = slow_writes(stage, THREE_TRIES.as_secs() / 3).await;
        let _manager = stage.start("--cluster-cidr=10.0.0.0/24 --node-cidr-mask-size=24");
        let applied = Fault::ReplaceAnswer(Canned::status(500));
        let sent = stage.scene.proxy.on(patch_of("a")).times(3).then(applied);
        mk_node("a").label("slow", "true").create(&stage.scene.client).await;
        sent.hit(1).await;
        // So many wait for the block that stock's limit of retries, 10 a second, lets one of them come before `a`; and the
        // process does not see that `a` has it.
        create_nodes(&stage.scene.client, names("b", 40).map(mk_node)).await;
        stage.scene.event("b-39", "CIDRNotAvailable").await;
        let watches = stage.scene.proxy.watches("/api/v1/nodes");
        watches.stall();
        assert_eq!(stage.scene.nodes.now().assigned(), 0, "the first write is still slow");
        stage.scene.nodes.within(THREE_TRIES + SERVED_WITHIN, |now| now.assigned() > 1).await;
        watches.resume();
        webhooks.delete("slow", &DeleteParams::default()).await.unwrap();
        stage.overlap()
    })
    .await;
}

/// gardener-extension-provider-gcp#937
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kube-controller-manager"]
async fn second_allocator_is_reported() {
    on_both(async |stage| {
        let _manager = stage.start("--cluster-cidr=10.0.0.0/16");
        let block = stage.scene.add("a").await;
        mk_node("other").cidr(&block[0]).create(&stage.scene.client).await;
        let events = Api::<Event>::namespaced(stage.scene.client.clone(), "default");
        let names_block = |it: &Event| it.message.as_ref().is_some_and(|it| it.contains(&block[0]));
        let reported = poll("a warning names the block", async || {
            let warnings =
                events.list(&ListParams::default().fields("type=Warning")).await.unwrap();
            warnings.items.iter().any(names_block).then_some(())
        });
        let is_reported = timeout(SERVED_WITHIN, reported).await.is_ok();
        (!is_reported).then(|| format!("a and other both have {}, and no event says so", block[0]))
    })
    .await;
}
