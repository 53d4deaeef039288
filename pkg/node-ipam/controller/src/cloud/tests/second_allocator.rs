//! Reactions when kube-controller-manager gives a Node of a cloud its pod CIDR
//! (`rule:second-allocator-is-told`).

use workqueue::Reconcile as _;

use super::super::copying::Copier;
use super::super::syncer::Syncer;
use super::*;
use crate::options::Direction;
use crate::options::Direction::{FromCloud, FromCluster};
use crate::options::Families;

const BLOCK: &str = "10.0.0.0/24";
const POOL: Option<&str> = Some("10.0.0.0/16");

/// A Node that stock has given this pod CIDR.
fn served_by_stock(name: &str, cidr: &str) -> Value {
    let mut node = node(name, &[cidr], "", "");
    node["metadata"]["managedFields"] = json!([{
        "manager": "kube-controller-manager", "time": "2026-01-01T00:00:00Z",
        "fieldsV1": {"f:spec": {"f:podCIDR": {}, "f:podCIDRs": {}}},
    }]);
    node
}

/// The Nodes a, which waits and whose VM has these aliases, and b, which stock has served after we
/// saw it empty; the detector is at work.
async fn scene(source: CloudSource, aliases: &[&str], on: OnSecondAllocator) -> Bench {
    let nodes = vec![node("a", &[], VM, ""), served_by_stock("b", "10.0.9.0/24")];
    let bench = Bench::new(source, POOL, nodes, &[]).await;
    bench.vm(VM, aliases);
    let all = Arc::clone(&bench.all);
    tokio::spawn(async move { all.core.detector.watch(on, &all.core.stop).await });
    bench
}

impl Bench {
    /// The watch shows that a Node that was empty has a pod CIDR.
    fn show_served(&self, name: &str, cidr: &str) {
        let see = |cidrs: &[&str]| {
            let node: kube_api::Node =
                serde_json::from_value(super::node(name, cidrs, "", "")).unwrap();
            self.all.claims().observe(&node, Instant::now())
        };
        drop(self.all.claims().gone(&format!("uid-{name}"), Instant::now()));
        drop(see(&[]));
        let effects = see(&[cidr]);
        assert!(effects.foreign.is_some(), "nothing of ours was sent");
        self.all.core.carry_out(effects);
    }

    async fn copy(&self) -> Result<Next, Retry> {
        let families = Families::of_services(&[]);
        Copier { all: Arc::clone(&self.all), families }.reconcile(&"a".into()).await
    }

    async fn sync(&self, direction: Direction) -> Result<Next, Retry> {
        let (all, spread) = (Arc::clone(&self.all), Arc::default());
        Syncer { all, direction, spread }.reconcile(&"a".into()).await
    }

    fn second_allocators(&self) -> u64 {
        self.all
            .core
            .metrics
            .second_allocators
            .with_label_values(&["kube-controller-manager"])
            .get()
    }
}

#[tokio::test(start_paused = true)]
async fn stock_beside_the_allocators_of_a_cloud_is_told_and_they_give_out_nothing() {
    for kind in ["CloudAllocator", "IPAMFromCloud", "IPAMFromCluster"] {
        let (source, aliases): (_, &[&str]) = match kind {
            "IPAMFromCluster" => (CloudSource::Routed, &[]),
            _ => (CloudSource::Exact, &[BLOCK]),
        };
        let bench = scene(source, aliases, OnSecondAllocator::Pause).await;
        let pass = async || match kind {
            "CloudAllocator" => bench.copy().await,
            "IPAMFromCloud" => bench.sync(FromCloud).await,
            _ => bench.sync(FromCluster).await,
        };
        bench.show_served("b", "10.0.9.0/24");
        assert_eq!(bench.told().await, ["SecondAllocator"], "{kind}");
        assert_eq!(bench.second_allocators(), 1, "{kind}");
        let held = pass().await;
        assert!(matches!(held, Ok(Next::After(wait)) if wait <= Duration::from_secs(30)), "{kind}");
        assert_eq!(bench.patches(), [], "{kind}");
        assert_eq!(bench.cloud.0.lock().added, [""; 0], "{kind}");
        tokio::time::sleep(Duration::from_secs(30)).await;
        pass().await.unwrap();
        assert_eq!(bench.written().0, [BLOCK], "{kind}");
    }
}

/// `rule:begun-alias-is-finished`
#[tokio::test(start_paused = true)]
async fn a_node_whose_alias_is_made_gets_its_pod_cidr_all_the_same() {
    let bench = scene(CloudSource::Routed, &[], OnSecondAllocator::Stop).await;
    bench.cloud.0.lock().addition_takes = Duration::from_secs(5);
    let stock = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bench.show_served("b", "10.0.9.0/24");
    };
    let (ended, ()) = tokio::join!(bench.sync(FromCluster), stock);
    ended.unwrap();
    assert_eq!(bench.second_allocators(), 1);
    assert_eq!(bench.written().0, [BLOCK]);
}
