//! 1,000 Clusters whose status the core and the product write, while the core is killed again and again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt as _;
use kube::api::{DynamicObject, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tests::cluster_api_core::ClusterApiCore;
use tests::dynamic;
use tests::kubectl::Kubectl;
use tests::member::member;
use tests::planted::Planted;
use tests::poll::poll;

use crate::beside_core::{admin, cluster, install, provided, secret};
use crate::cluster_api::{HEALTHY, NAMESPACE, REACHABLE, hub_without_crds, kubeconfig_at, start};
use crate::guard::Forwarder;

const CLUSTERS: usize = 1_000;
/// Clusters behind a connection that is cut in every other round: too few for a partition of the product.
const CUT: usize = 400;
/// In each the core is killed once.
const ROUNDS: usize = 6;
const MIRRORED: &str = "InfrastructureReady";
/// Writes at once.
const AT_ONCE: usize = 16;

/// The conditions of all Clusters, by a watch, and what of them was lost.
#[derive(Default)]
struct Ledger {
    conditions: HashMap<String, HashMap<String, Value>>,
    versions: usize,
    lost: Vec<String>,
}

impl Ledger {
    fn take(&mut self, cluster: &Value) {
        let all = cluster["status"]["conditions"].as_array().into_iter().flatten();
        let by_type = |it: &Value| (it["type"].as_str().unwrap().to_owned(), it.clone());
        let now: HashMap<_, _> = all.map(by_type).collect();
        let name = cluster["metadata"]["name"].as_str().unwrap().to_owned();
        for (kind, before) in self.conditions.get(&name).into_iter().flatten() {
            let is_older = |now: &Value| {
                let field = if kind == MIRRORED { "message" } else { "lastTransitionTime" };
                now[field].as_str() < before[field].as_str()
            };
            if now.get(kind).is_none_or(is_older) {
                self.lost.push(format!("{name}: {:?} after {before}", now.get(kind)));
            }
        }
        self.conditions.insert(name, now);
        self.versions += 1;
    }

    /// Clusters whose condition has this value of a field.
    fn count(&self, kind: &str, field: &str, value: &str) -> usize {
        let all = self.conditions.values();
        all.filter(|it| it.get(kind).is_some_and(|it| it[field] == value)).count()
    }
}

/// Follows all Clusters as long as the test runs.
async fn follow(client: &Client, ledger: Arc<Mutex<Ledger>>) {
    let (api, _) = dynamic::api(client, &cluster("any")).await;
    let mut version = "0".to_owned();
    tokio::spawn(async move {
        loop {
            let Ok(events) = api.watch(&WatchParams::default(), &version).await else { continue };
            let mut events = events.boxed();
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(it) | WatchEvent::Modified(it) = event {
                    version = it.metadata.resource_version.clone().unwrap();
                    ledger.lock().take(&serde_json::to_value(it).unwrap());
                }
            }
        }
    });
}

fn name(number: usize) -> String {
    format!("cluster-{number:04}")
}

/// Creates the Clusters, with a Secret for those behind the connection and one for the others.
fn populate(hub: &Kubectl, kubeconfigs: [&str; 2]) {
    let names = ["behind", "direct"];
    for (name, kubeconfig) in names.into_iter().zip(kubeconfigs) {
        let mut made = secret(name, kubeconfig);
        // The core is not to connect to each of them.
        made["metadata"]["labels"] = json!({});
        hub.create(&made);
    }
    let mut all = Vec::new();
    for number in 0..CLUSTERS {
        all.extend(provided(&name(number), 6443));
        let mut made = cluster(&name(number));
        let secret = format!("{}-kubeconfig", names[usize::from(number >= CUT)]);
        made["metadata"]["annotations"] = json!({"infra-controller-manager/probe-secret": secret});
        all.push(made);
    }
    hub.create_all(&all);
}

/// Gives the infrastructure of each Cluster another message, which the core mirrors.
async fn change_infrastructure(client: &Client, message: &str) {
    let [infrastructure, _] = provided("any", 6443);
    let (api, _): (Api<DynamicObject>, _) = dynamic::api(client, &infrastructure).await;
    let mut condition = infrastructure["status"]["conditions"][0].clone();
    condition["message"] = message.into();
    let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    let (api, patch) = (&api, &patch);
    let writes = futures::stream::iter(0..CLUSTERS).map(|number| async move {
        api.patch(&name(number), &PatchParams::default(), patch).await.unwrap();
    });
    writes.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await;
}

async fn start_core(installed: &ClusterApiCore) -> tests::Process {
    installed.start(&["--kube-api-qps=500", "--kube-api-burst=1000"]).await
}

/// rule:a-shared-status-is-shared
#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn no_condition_of_1000_clusters_is_lost_while_the_core_is_killed() {
    let member = member().await;
    let account = admin(&member).await;
    let address = member.url().trim_start_matches("https://").to_owned();
    let forwarder = Forwarder::start(1, address).await;
    let hub = hub_without_crds().await;
    let client = hub.plane.client().await;
    let installed = install(&hub);
    let mut core = start_core(&installed).await;
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    follow(&client, Arc::clone(&ledger)).await;
    let planted = Planted::default();
    planted.plant(&account.token);
    let user = json!({"token": account.token});
    let behind = format!("https://127.0.0.1:{}", forwarder.ports[0]);
    let kubeconfigs = [&*behind, member.url()].map(|url| kubeconfig_at(url, &member, &user));
    let period = [
        "--cluster-health-period=10s",
        "--cluster-health-timeout=3s",
        "--cluster-health-confirm-interval=5s",
    ];
    let manager = start(&hub, &planted, &period);
    populate(&hub, [&kubeconfigs[0], &kubeconfigs[1]]);
    let until = async |what: &str, kind: &str, field: &str, value: &str, wanted: usize| {
        poll(&format!("{wanted} Clusters: {what}"), async || {
            (ledger.lock().count(kind, field, value) >= wanted).then_some(())
        })
        .await;
    };
    until("healthy", HEALTHY, "status", "True", CLUSTERS).await;

    for round in 1..=ROUNDS {
        let begun = Instant::now();
        let is_cut = round % 2 == 1;
        forwarder.cut(is_cut);
        let message = format!("round {round}");
        let ((), ()) = futures::join!(change_infrastructure(&client, &message), async {
            // In the middle of its work.
            until("mirror the round", MIRRORED, "message", &message, CLUSTERS / 4).await;
            core.kill();
        });
        core.exit(tests::PATIENCE).await;
        core = start_core(&installed).await;
        until("mirror the round after a restart", MIRRORED, "message", &message, CLUSTERS).await;
        let reachable = if is_cut { CLUSTERS - CUT } else { CLUSTERS };
        until("are reachable", REACHABLE, "status", "True", reachable).await;
        until("are not reachable", REACHABLE, "status", "False", CLUSTERS - reachable).await;
        println!("{message}: {:?}, {} versions", begun.elapsed(), ledger.lock().versions);
    }
    let ledger = ledger.lock();
    assert!(ledger.lost.is_empty(), "{} lost: {:#?}", ledger.lost.len(), ledger.lost.first());
    assert_eq!(ledger.count(HEALTHY, "status", "True"), CLUSTERS);
    let events = hub.run(&format!("get events -n {NAMESPACE}"));
    assert!(!events.contains("ConditionOwnedByOther"), "{events}");
    drop(manager);
}

#[test]
fn a_condition_that_is_lost_or_older_than_before_is_noticed() {
    let at = |second: u32| format!("2026-01-01T00:00:{second:02}Z");
    let cluster = |conditions: Value| json!({"metadata": {"name": "a"}, "status": {"conditions": conditions}});
    let healthy = |second| json!({"type": HEALTHY, "lastTransitionTime": at(second)});
    let mirrored = |round: u32| json!({"type": MIRRORED, "message": format!("round {round}")});
    let mut ledger = Ledger::default();
    ledger.take(&cluster(json!([healthy(1), mirrored(1)])));
    ledger.take(&cluster(json!([healthy(2), mirrored(2)])));
    assert_eq!(ledger.lost, [""; 0]);
    ledger.take(&cluster(json!([healthy(1), mirrored(2)])));
    ledger.take(&cluster(json!([healthy(1), mirrored(1)])));
    assert_eq!(ledger.lost.len(), 2);
    ledger.take(&cluster(json!([mirrored(1)])));
    ledger.take(&cluster(json!([])));
    assert_eq!(ledger.lost.len(), 4);
}
