//! Nodes that `--node-selector` does not select, with the allocators that ask a cloud
//! (`rule:unselected-nodes-get-nothing`).

use kube_api::Node;
use workqueue::Reconcile as _;

use super::super::copying::Copier;
use super::super::source;
use super::super::syncer::Syncer;
use super::*;
use crate::options::{Direction, Families};

const POOL: Option<&str> = Some("10.0.0.0/16");
const OTHER_VM: &str = "gce://p/z/b";

/// This object with a label that the selector excludes.
fn others(mut node: Value) -> Value {
    node["metadata"]["labels"] = json!({"none": ""});
    node
}

async fn pass(bench: &Bench, direction: Option<Direction>, name: &str) -> Result<Next, Retry> {
    let all = Arc::clone(&bench.all);
    match direction {
        Some(direction) => {
            Syncer { all, direction, spread: Arc::default() }.reconcile(&name.into()).await
        }
        None => {
            let families = Families::of_services(&[]);
            Copier { all, families }.reconcile(&name.into()).await
        }
    }
}

/// The Node as the watch shows it once its labels have changed.
fn as_unselected(name: &str) -> Node {
    let mut node: Node = serde_json::from_value(node(name, &[], VM, "")).unwrap();
    node.is_selected = false;
    node
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_selected_is_neither_read_nor_queued_nor_written_to() {
    for direction in [None, Some(Direction::FromCloud), Some(Direction::FromCluster)] {
        let nodes = vec![
            others(node("a", &[], VM, "True")),
            others(node("b", &["10.0.7.0/24"], OTHER_VM, "True")),
        ];
        let from = direction.map_or(CloudSource::Exact, source);
        let bench = Bench::new(from, POOL.filter(|_| direction.is_some()), nodes, &[]).await;
        bench.vm_fails(VM, CloudError::Refused("it must not be read".into()));
        bench.vm_fails(OTHER_VM, CloudError::Refused("it must not be read".into()));
        assert_eq!(bench.core.queue.len(), 0, "{direction:?}");
        for name in ["a", "b"] {
            assert_eq!(pass(&bench, direction, name).await.unwrap(), Next::Done, "{direction:?}");
        }
        assert_eq!((bench.patches(), bench.told().await), (vec![], vec![]), "{direction:?}");
        assert!(bench.shows("node_ipam_pending_nodes", 0.0), "{direction:?}");
        let claim = bench.core.allocator.lock().claim(&"uid-b".into()).to_vec();
        assert_eq!(claim, ["10.0.7.0/24".parse().unwrap()], "{direction:?}");
    }
}

/// `rule:strange-alias-is-no-claim`
#[tokio::test(start_paused = true)]
async fn the_first_block_does_not_wait_for_the_vm_of_a_node_that_is_not_selected() {
    let nodes = vec![node("a", &[], VM, ""), others(node("b", &[], OTHER_VM, ""))];
    let bench = Bench::new(source(Direction::FromCluster), POOL, nodes, &[]).await;
    let begun = Instant::now();
    assert!(pass(&bench, Some(Direction::FromCluster), "a").await.is_ok());
    assert_eq!(bench.written().0, ["10.0.0.0/24"]);
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// `rule:unknown-outcome-ends`
#[tokio::test(start_paused = true)]
async fn a_pass_settles_what_was_sent_before_the_selection_ended() {
    let nodes = vec![others(node("a", &[], VM, ""))];
    let bench = Bench::new(CloudSource::Exact, None, nodes, &[LOST]).await;
    let uid = "uid-a".into();
    {
        let mut claims = bench.core.allocator.lock();
        let selected = Node { is_selected: true, ..as_unselected("a") };
        drop(claims.observe(&selected, Instant::now()));
        let block = ["10.0.1.0/24".parse().unwrap()];
        drop(claims.assign_exact(&uid, &block));
        let until = Instant::now() + Duration::from_secs(6);
        assert!(claims.begin_send(&uid, &block, Instant::now(), until).is_some());
        claims.lost(&uid, None);
        drop(claims.observe(&as_unselected("a"), Instant::now()));
    }
    let mut passes = 0;
    while let Next::After(wait) = pass(&bench, None, "a").await.unwrap() {
        assert!(bench.core.allocator.lock().open_until(&uid).is_some());
        tokio::time::sleep(wait).await;
        passes += 1;
        assert!(passes < 9);
    }
    let claims = bench.core.allocator.lock();
    assert_eq!((claims.claim(&uid), claims.open_until(&uid)), (&[][..], None));
    assert_eq!(bench.patches(), []);
}

/// `rule:begun-alias-is-finished`
#[tokio::test(start_paused = true)]
async fn an_alias_that_was_begun_is_finished_for_a_node_that_is_no_longer_selected() {
    let nodes = vec![others(node("a", &[], VM, ""))];
    let bench = Bench::new(source(Direction::FromCluster), POOL, nodes, &[]).await;
    let block = "10.0.0.0/24";
    {
        let (mut claims, uid, now) = (bench.core.allocator.lock(), "uid-a".into(), Instant::now());
        drop(claims.observe(&Node { is_selected: true, ..as_unselected("a") }, now));
        drop(claims.assign(&uid));
        assert!(claims.begin_route(&uid, &block.parse().unwrap(), now));
        drop(claims.observe(&as_unselected("a"), now));
    }
    bench.vm(VM, &[block]);
    assert!(pass(&bench, Some(Direction::FromCluster), "a").await.is_ok());
    assert_eq!(bench.written(), (vec![block.to_owned()], 1));
}
