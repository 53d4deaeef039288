//! The answers to a PATCH, which mean the same wherever the CIDRs of a Node come from.

use cidr::Pool;
use kube_api::{LabelledNode, Node};
use workqueue::Reconcile as _;

use super::super::copying::Copier;
use super::super::source;
use super::super::syncer::Syncer;
use super::*;
use crate::allocator::{SeenClusterCidr, ServingState};
use crate::cluster_cidr::plan::Rules;
use crate::cluster_cidr::selector::Terms;
use crate::cluster_cidr::{ClusterCidrSpec, Plan};
use crate::options::{Direction, Families};

const POOL: &str = "10.0.0.0/22";
const BLOCK: &str = "10.0.0.0/24";

/// What a pass does after an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// The Node is done.
    Done,
    /// The Node is read at once: it may have changed.
    ReadNow,
    /// The owner of the Node is told, and the next attempt comes no sooner than after so many seconds.
    Told(u64),
    /// The next attempt comes when the server says.
    Throttled,
    /// The PATCH may be applied: the Node is read before the next one.
    ReadFirst,
    /// The PATCH was not sent.
    Again,
}

/// Answer, the class that is counted, and what follows.
const TABLE: [(u16, &str, Then); 14] = [
    (200, "done", Then::Done),
    (404, "missing", Then::ReadNow),
    (409, "replaced", Then::ReadNow),
    (TAKEN, "taken", Then::ReadNow),
    (400, "rejected", Then::Told(0)),
    (401, "rejected", Then::Told(5)),
    (403, "rejected", Then::Told(5)),
    (422, "rejected", Then::Told(0)),
    (429, "throttled", Then::Throttled),
    (500, "ambiguous", Then::ReadFirst),
    (503, "ambiguous", Then::ReadFirst),
    (504, "ambiguous", Then::ReadFirst),
    (LOST, "ambiguous", Then::ReadFirst),
    (UNSENT, "not_sent", Then::Again),
];

impl<N: CachedNode + StaticKind> World<N> {
    /// PATCHes of this class.
    fn counted(&self, class: &str) -> bool {
        let families = self.registry.gather();
        let family = families.iter().find(|it| it.name() == "node_ipam_patch_results_total");
        family.is_some_and(|family| {
            let mut metrics = family.get_metric().iter();
            metrics.any(|metric| metric.get_label().iter().any(|label| label.value() == class))
        })
    }

    /// Two passes over the Node, the first of which gets the answer of this row.
    async fn check(
        &self,
        kind: &str,
        (code, class, then): (u16, &str, Then),
        pass: impl AsyncFn() -> Result<Next, Retry>,
    ) {
        let case = format!("{kind} after {code}");
        let ended = pass().await;
        assert!(self.counted(class), "{case}");
        let is_open = then == Then::ReadFirst;
        assert_eq!(
            self.core.allocator.lock().open_outcomes().len(),
            usize::from(is_open),
            "{case}"
        );
        let told: &[&str] =
            if matches!(then, Then::Told(_)) { &["CIDRAssignmentFailed"] } else { &[] };
        assert_eq!(self.told().await, told, "{case}");
        let methods = || self.methods().join(" ");
        match (then, &ended) {
            (Then::Done, Ok(_)) => return,
            (Then::ReadNow, Err(_)) => assert_eq!(methods(), "PATCH GET", "{case}"),
            (_, Err(retry)) => {
                assert_eq!(retry.is_throttled(), then == Then::Throttled, "{case}");
                if let Then::Told(seconds) = then {
                    assert_eq!(retry.pause(), Duration::from_secs(seconds), "{case}");
                }
                assert_eq!(methods(), "PATCH", "{case}");
            }
            (_, Ok(next)) => panic!("{case}: {next:?}"),
        }
        assert_eq!(
            self.core.allocator.lock().claim(&"uid-a".into()).len(),
            1,
            "{case}: it is kept"
        );
        assert!(pass().await.is_ok(), "{case}");
        assert_eq!(self.written().0, [BLOCK; 2], "{case}: the same again");
        let reads = self.methods().iter().filter(|method| *method == "GET").count();
        assert_eq!(reads, usize::from(is_open || then == Then::ReadNow), "{case}");
        let allocator = self.core.allocator.lock();
        let (state, open) = (allocator.snapshot(), allocator.open_outcomes().len());
        let waiting = state.pending + state.starved + state.reserved + open;
        assert_eq!(waiting, 0, "{case}: the Node is done");
    }
}

fn a() -> Vec<Value> {
    vec![node("a", &[], VM, "")]
}

fn pool() -> Pool {
    Pool::new(POOL.parse().unwrap(), 24, 16).unwrap()
}

/// One ClusterCIDR for all Nodes.
fn of_cluster_cidrs() -> Allocator {
    let spec = json!({"ipv4": POOL, "perNodeHostBits": 8});
    let spec: ClusterCidrSpec = serde_json::from_value(spec).unwrap();
    let plan = Plan::of(&spec, Rules { terms: Terms::Or, ipv6_bits: 16 }).unwrap();
    let (name, uid, state) = ("one".into(), "one".into(), ServingState::Serving);
    let mut allocator = Allocator::of_cluster_cidrs(&[], Duration::ZERO);
    drop(allocator.see_cluster_cidr(SeenClusterCidr { name, uid, state, spec, plan }));
    allocator
}

/// `rule:unknown-outcome-ends`, `rule:retry-repeats-the-claim`
#[tokio::test(start_paused = true)]
async fn an_answer_means_the_same_for_pools_of_flags_and_of_cluster_cidrs() {
    for row in TABLE {
        let world = World::<Node>::new(Allocator::new(vec![pool()], &[]), a(), &[row.0]);
        let _watching = node_work::watch(&world.core.nodes, &world.core);
        world.fill().await;
        let pass = async || world.core.reconcile(&"a".into()).await;
        world.check("RangeAllocator", row, pass).await;

        let world = World::<LabelledNode>::new(of_cluster_cidrs(), a(), &[row.0]);
        let _watching = node_work::watch(&world.core.nodes, &world.core);
        world.fill().await;
        let pass = async || world.core.reconcile(&"a".into()).await;
        world.check("MultiCIDRRangeAllocator", row, pass).await;
    }
}

/// `rule:unknown-outcome-ends`, `rule:retry-repeats-the-claim`
#[tokio::test(start_paused = true)]
async fn an_answer_means_the_same_for_what_a_cloud_names_and_routes() {
    for row in TABLE {
        let bench = Bench::new(CloudSource::Exact, None, a(), &[row.0]).await;
        bench.vm(VM, &[BLOCK]);
        let families = Families::of_services(&[]);
        let copier = Copier { all: Arc::clone(&bench.all), families };
        bench.check("CloudAllocator", row, async || copier.reconcile(&"a".into()).await).await;

        for direction in [Direction::FromCloud, Direction::FromCluster] {
            let bench = Bench::new(source(direction), Some(POOL), a(), &[row.0]).await;
            let aliases: &[&str] = if direction == Direction::FromCloud { &[BLOCK] } else { &[] };
            bench.vm(VM, aliases);
            let all = Arc::clone(&bench.all);
            let syncer = Syncer { all, direction, spread: Arc::default() };
            let pass = async || syncer.reconcile(&"a".into()).await;
            bench.check(direction.name(), row, pass).await;
            let routed = usize::from(direction == Direction::FromCluster);
            assert_eq!(bench.cloud.0.lock().added.len(), routed, "{direction:?}: once");
        }
    }
}
