//! The pass of IPAMFromCluster and IPAMFromCloud over one Node: what each row of the table does.

use workqueue::Reconcile as _;

use super::super::source;
use super::super::syncer::Syncer;
use super::*;
use crate::options::Direction;
use crate::options::Direction::{FromCloud, FromCluster};

const POOL: Option<&str> = Some("10.0.0.0/16");
const MISMATCH: &str = "CloudCIDRAllocatorMismatch";
const WRONG_MODE: &str = "CloudCIDRAllocatorInvalidMode";

/// A pass of IPAMFromCluster over another Node than a.
async fn pass_of(bench: &Bench, name: &str) -> Result<Next, Retry> {
    let (all, spread) = (Arc::clone(&bench.all), Arc::default());
    Syncer { all, direction: FromCluster, spread }.reconcile(&name.into()).await
}

/// A Node and a VM without anything; PATCHes are answered so in turn.
async fn scene_that_answers(patches: &[u16]) -> Bench {
    Bench::new(source(FromCluster), POOL, vec![node("a", &[], VM, "")], patches).await
}

async fn pass(bench: &Bench, direction: Direction) -> Result<Next, Retry> {
    let (all, spread) = (Arc::clone(&bench.all), Arc::default());
    let syncer = Syncer { all, direction, spread };
    syncer.reconcile(&"a".into()).await
}

/// Nodes that were synced come back within the time of a resync.
fn is_synced(ended: &Result<Next, Retry>) -> bool {
    matches!(ended, Ok(Next::After(wait)) if *wait <= Duration::from_secs(30))
}

/// A Node with this pod CIDR and a VM with this alias, each empty for none.
async fn scene(direction: Direction, has: &str, alias: &str) -> Bench {
    let bench = Bench::new(source(direction), POOL, vec![node("a", &one(has), VM, "")], &[]).await;
    bench.vm(VM, &one(alias));
    bench
}

fn one(text: &str) -> Vec<&str> {
    Some(text).filter(|text| !text.is_empty()).into_iter().collect()
}

fn added(bench: &Bench) -> Vec<String> {
    bench.cloud.0.lock().added.clone()
}

const BLOCK: &str = "10.0.0.0/24";
const OTHER: &str = "10.0.7.0/24";

#[tokio::test(start_paused = true)]
async fn from_cluster_nothing_and_nothing_becomes_a_block_an_alias_a_pod_cidr_and_a_condition() {
    let bench = scene(FromCluster, "", "").await;
    assert!(is_synced(&pass(&bench, FromCluster).await));
    assert_eq!(added(&bench), [format!("{VM} {BLOCK}")]);
    assert_eq!(bench.written(), (vec![BLOCK.to_owned()], 1));
    let message = &bench.patches()[1].1["status"]["conditions"][0]["message"];
    assert_eq!(*message, "NodeController created an implicit route");
}

#[tokio::test(start_paused = true)]
async fn from_cluster_an_alias_alone_is_the_wrong_mode() {
    let bench = scene(FromCluster, "", OTHER).await;
    assert!(is_expected(&pass(&bench, FromCluster).await));
    assert_eq!((bench.patches(), added(&bench)), (vec![], vec![]));
    assert_eq!(bench.told().await, [WRONG_MODE]);
}

#[tokio::test(start_paused = true)]
async fn from_cluster_an_alias_alone_is_given_to_no_other_node() {
    let other = "gce://p/z/b";
    let nodes = vec![node("a", &[], VM, ""), node("b", &[], other, "")];
    let bench = Bench::new(source(FromCluster), POOL, nodes, &[]).await;
    bench.vm(VM, &["10.0.0.128/25", "10.0.2.0/23"]);
    for _ in 0..2 {
        assert!(is_expected(&pass(&bench, FromCluster).await));
    }
    assert!(is_synced(&pass_of(&bench, "b").await));
    assert_eq!(bench.written().0, ["10.0.1.0/24"]);
    assert!(bench.shows("node_ipam_controller_cidrset_usage_cidrs", 4.0 / 256.0));
}

#[tokio::test(start_paused = true)]
async fn from_cluster_no_block_is_given_out_before_the_vm_of_each_node_was_read() {
    let other = "gce://p/z/b";
    let nodes = vec![node("a", &[], VM, ""), node("b", &[], other, "")];
    let bench = Bench::new(source(FromCluster), POOL, nodes.clone(), &[]).await;
    bench.vm(other, &[BLOCK]);
    assert!(is_expected(&pass(&bench, FromCluster).await));
    assert_eq!(added(&bench), [""; 0], "the VM of b has an alias that no Node shows");
    assert!(is_expected(&pass_of(&bench, "b").await), "its alias is not ours");
    assert!(is_synced(&pass(&bench, FromCluster).await));
    assert_eq!(added(&bench), [format!("{VM} 10.0.1.0/24")]);

    // A VM that cannot be read holds up no other Node.
    for (error, is_held_up) in [
        (CloudError::Absent("no such VM".into()), false),
        (CloudError::Refused("a right is missing".into()), false),
        (CloudError::Throttled { reason: "quota".into(), pause: None }, true),
    ] {
        let bench = Bench::new(source(FromCluster), POOL, nodes.clone(), &[]).await;
        bench.vm_fails(other, error.clone());
        assert!(is_expected(&pass(&bench, FromCluster).await));
        assert!(pass_of(&bench, "b").await.is_err());
        assert_eq!(pass(&bench, FromCluster).await.is_err(), is_held_up, "{error:?}");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(is_synced(&pass(&bench, FromCluster).await), "{error:?}");
    }
}

/// `rule:strange-alias-is-no-claim`
#[tokio::test(start_paused = true)]
async fn from_cluster_a_strangers_alias_becomes_no_pod_cidr_when_it_is_taken_off_the_vm() {
    for (alias, hint) in [
        ("192.168.0.0/28", "no block"),
        ("10.0.0.0/25", "no block"),
        ("10.0.0.0/23", "no block"),
        (OTHER, "or make it"),
    ] {
        let bench = scene(FromCluster, "", alias).await;
        for _ in 0..2 {
            assert!(is_expected(&pass(&bench, FromCluster).await));
        }
        assert_eq!(bench.told().await, [WRONG_MODE]);
        let event = bench.events.asked()[0].json();
        let message = event["message"].as_str().unwrap();
        assert!(message.contains(alias) && message.contains(hint), "{message}");
        bench.vm(VM, &[]);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(is_synced(&pass(&bench, FromCluster).await), "{alias}");
        assert_eq!(added(&bench), [format!("{VM} {BLOCK}")], "{alias}");
    }
}

/// `rule:refused-block-is-changed`
#[tokio::test(start_paused = true)]
async fn a_block_that_the_cloud_refuses_is_changed_for_another_one() {
    let bench = scene(FromCluster, "", "").await;
    let refused = || Err(CloudError::RangeRefused("in use".into()));
    bench.cloud.0.lock().additions = [refused(), refused()].into();
    for _ in 0..2 {
        let retry = pass(&bench, FromCluster).await.unwrap_err();
        assert!(retry.pause() < Duration::from_secs(1), "{retry:?}");
    }
    assert!(is_synced(&pass(&bench, FromCluster).await));
    let asked = ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"];
    assert_eq!(added(&bench), asked.map(|block| format!("{VM} {block}")));
    assert_eq!(bench.written(), (vec!["10.0.2.0/24".to_owned()], 1));
    assert_eq!(bench.told().await, ["CIDRAssignmentFailed"]);
    assert!(bench.shows("node_ipam_controller_cidrset_usage_cidrs", 3.0 / 256.0));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(bench.shows("node_ipam_controller_cidrset_usage_cidrs", 1.0 / 256.0));
}

/// `rule:refused-block-is-changed`
#[tokio::test(start_paused = true)]
async fn a_block_that_was_refused_and_that_the_vm_has_all_the_same_is_kept() {
    let bench = scene(FromCluster, "", "").await;
    bench.cloud.0.lock().additions = [Err(CloudError::RangeRefused("in use".into()))].into();
    assert!(pass(&bench, FromCluster).await.is_err());
    bench.vm(VM, &[BLOCK]);
    assert!(is_synced(&pass(&bench, FromCluster).await));
    assert_eq!(bench.written(), (vec![BLOCK.to_owned()], 1));
}

/// `rule:refused-block-is-changed`
#[tokio::test(start_paused = true)]
async fn a_refused_block_whose_patch_may_yet_be_applied_is_not_changed_before_that_is_known() {
    let bench = scene_that_answers(&[504]).await;
    assert!(is_expected(&pass(&bench, FromCluster).await), "the PATCH may be applied later");
    bench.vm(VM, &[]);
    bench.cloud.0.lock().additions = [Err(CloudError::RangeRefused("in use".into()))].into();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(pass(&bench, FromCluster).await.is_err());
    assert!(is_expected(&pass(&bench, FromCluster).await));
    assert_eq!(added(&bench), vec![format!("{VM} {BLOCK}"); 2], "no other block yet");
    while pass(&bench, FromCluster).await.is_err() {
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(bench.written().0, [BLOCK, "10.0.1.0/24"]);
}

/// The range of a Node cannot be changed, so the cloud is not asked again and again.
#[tokio::test(start_paused = true)]
async fn a_pod_cidr_that_the_cloud_refuses_is_asked_for_again_after_a_minute() {
    let bench = scene(FromCluster, BLOCK, "").await;
    bench.cloud.0.lock().additions = [Err(CloudError::RangeRefused("in use".into()))].into();
    let retry = pass(&bench, FromCluster).await.unwrap_err();
    assert_eq!(retry.pause(), Duration::from_secs(60));
    assert!(is_synced(&pass(&bench, FromCluster).await));
    assert_eq!(added(&bench), vec![format!("{VM} {BLOCK}"); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_is_refused_is_not_told_as_a_failed_assignment() {
    let bench = scene_that_answers(&[200, 403]).await;
    assert!(is_expected(&pass(&bench, FromCluster).await));
    assert_eq!(bench.written(), (vec![BLOCK.to_owned()], 1));
    assert_eq!(bench.told().await, ["NetworkConditionNotWritten"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_goes_during_its_pass_leaves_nothing_behind() {
    let bench = scene(FromCloud, BLOCK, BLOCK).await;
    let spread = Arc::<Mutex<_>>::default();
    let syncer =
        Syncer { all: Arc::clone(&bench.all), direction: FromCloud, spread: Arc::clone(&spread) };
    drop(bench.all.claims().gone("uid-a", Instant::now()));
    assert!(is_synced(&syncer.reconcile(&"a".into()).await));
    assert_eq!(spread.lock().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn from_cluster_a_pod_cidr_alone_is_routed_and_the_condition_set() {
    let bench = scene(FromCluster, OTHER, "").await;
    assert!(is_synced(&pass(&bench, FromCluster).await));
    assert_eq!(added(&bench), [format!("{VM} {OTHER}")]);
    assert_eq!(bench.written(), (vec![], 1));
}

#[tokio::test(start_paused = true)]
async fn from_cloud_an_alias_becomes_the_pod_cidr_also_outside_of_the_pool() {
    for alias in [BLOCK, "192.168.0.0/24"] {
        let bench = scene(FromCloud, "", alias).await;
        assert!(is_synced(&pass(&bench, FromCloud).await));
        assert_eq!((added(&bench), bench.written()), (vec![], (vec![alias.to_owned()], 1)));
    }
}

#[tokio::test(start_paused = true)]
async fn from_cloud_no_alias_is_the_wrong_mode_whatever_the_node_has() {
    for has in ["", BLOCK] {
        let bench = scene(FromCloud, has, "").await;
        assert!(is_expected(&pass(&bench, FromCloud).await), "{has:?}");
        assert_eq!((bench.patches(), added(&bench)), (vec![], vec![]));
        assert_eq!(bench.told().await, [WRONG_MODE], "{has:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn in_both_modes_what_is_equal_costs_no_write_but_that_of_a_wrong_condition() {
    for direction in [FromCluster, FromCloud] {
        for (network, ready) in [("False", 0), ("True", 1)] {
            let bench =
                Bench::new(source(direction), POOL, vec![node("a", &[BLOCK], VM, network)], &[])
                    .await;
            bench.vm(VM, &[BLOCK]);
            assert!(is_synced(&pass(&bench, direction).await));
            assert_eq!((added(&bench), bench.written()), (vec![], (vec![], ready)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn in_both_modes_what_differs_is_told_and_no_error() {
    for direction in [FromCluster, FromCloud] {
        let bench = scene(direction, BLOCK, OTHER).await;
        assert!(is_synced(&pass(&bench, direction).await));
        assert_eq!((added(&bench), bench.patches()), (vec![], vec![]));
        assert_eq!(bench.told().await, [MISMATCH]);
    }
}

/// `rule:reserved-block-is-kept`
#[tokio::test(start_paused = true)]
async fn a_block_whose_alias_could_not_be_set_is_asked_for_again_and_no_other() {
    let bench = scene(FromCluster, "", "").await;
    let refused = || Err(CloudError::Refused("in use".into()));
    let failed = Err(CloudError::Failed("no answer".into()));
    bench.cloud.0.lock().additions = [refused(), failed].into();
    let retry = pass(&bench, FromCluster).await.unwrap_err();
    assert_eq!(retry.pause(), Duration::from_secs(60));
    assert!(is_expected(&pass(&bench, FromCluster).await));
    assert_eq!(bench.patches(), []);
    assert!(is_synced(&pass(&bench, FromCluster).await));
    assert_eq!(added(&bench), vec![format!("{VM} {BLOCK}"); 3]);
    assert_eq!(bench.written(), (vec![BLOCK.to_owned()], 1));
    assert_eq!(bench.told().await, ["CIDRAssignmentFailed"]);
}

/// `rule:reserved-block-is-kept`
#[tokio::test(start_paused = true)]
async fn a_pod_cidr_that_could_not_be_written_is_written_again_and_the_alias_stays() {
    let bench = Bench::new(source(FromCluster), POOL, vec![node("a", &[], VM, "")], &[403]).await;
    assert!(is_expected(&pass(&bench, FromCluster).await));
    assert!(is_synced(&pass(&bench, FromCluster).await));
    assert_eq!(added(&bench), [format!("{VM} {BLOCK}")]);
    assert_eq!(bench.written(), (vec![BLOCK.to_owned(); 2], 1));
}

/// `rule:reserved-block-is-kept`
#[tokio::test(start_paused = true)]
async fn an_alias_that_somebody_else_set_after_ours_was_asked_for_is_no_alias_of_ours() {
    let bench = scene(FromCluster, "", "").await;
    bench.cloud.0.lock().additions = [Err(CloudError::Failed("no answer".into()))].into();
    assert!(is_expected(&pass(&bench, FromCluster).await));
    bench.vm(VM, &[OTHER]);
    for _ in 0..3 {
        assert!(is_expected(&pass(&bench, FromCluster).await));
    }
    assert_eq!(bench.written(), (vec![], 0));
    assert_eq!(bench.told().await, [WRONG_MODE]);
}

/// `rule:begun-alias-is-finished`
#[tokio::test(start_paused = true)]
async fn an_alias_that_was_asked_for_before_the_stop_becomes_the_pod_cidr_of_the_node_after_it() {
    for (takes, written, cut_off) in [(3, vec![BLOCK.to_owned()], 0), (30, vec![], 1)] {
        let bench = scene(FromCluster, "", "").await;
        bench.cloud.0.lock().addition_takes = Duration::from_secs(takes);
        let stop = bench.all.core.stop.clone();
        let stopping = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            stop.cancel();
        };
        let (ended, ()) = tokio::join!(pass(&bench, FromCluster), stopping);
        assert_eq!(ended.unwrap(), Next::Done, "{takes} s");
        assert_eq!(added(&bench), [format!("{VM} {BLOCK}")]);
        assert_eq!(bench.written(), (written, 0), "{takes} s");
        assert_eq!(bench.all.cut_off.load(Ordering::Relaxed), cut_off, "{takes} s");
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_stop_no_alias_is_asked_for() {
    let bench = scene(FromCluster, "", "").await;
    bench.all.core.stop.cancel();
    assert_eq!(pass(&bench, FromCluster).await.unwrap(), Next::Done);
    assert_eq!((added(&bench), bench.patches()), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_full_pool_is_told_and_nothing_is_routed() {
    let nodes = vec![node("b", &["10.0.0.0/16"], "", "False"), node("a", &[], VM, "")];
    let bench = Bench::new(source(FromCluster), POOL, nodes, &[]).await;
    assert!(is_expected(&pass(&bench, FromCluster).await));
    assert_eq!((added(&bench), bench.patches()), (vec![], vec![]));
    assert_eq!(bench.told().await, ["CIDRNotAvailable"]);
    assert!(bench.shows("node_ipam_controller_cidrset_usage_cidrs", 1.0));
    assert!(bench.shows("node_ipam_pool_pressure_percent", 95.0));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_is_no_error_and_one_without_a_vm_is() {
    let bench = Bench::new(source(FromCluster), POOL, vec![node("a", &[], "", "")], &[]).await;
    assert!(is_expected(&pass(&bench, FromCluster).await));
    let bench = Bench::new(source(FromCluster), POOL, vec![], &[]).await;
    assert_eq!(pass(&bench, FromCluster).await.unwrap(), Next::Done);
}

#[tokio::test(start_paused = true)]
async fn the_first_resyncs_are_spread_and_the_others_are_not() {
    let bench = scene(FromCloud, BLOCK, BLOCK).await;
    let (all, spread) = (Arc::clone(&bench.all), Arc::default());
    let syncer = Syncer { all, direction: FromCloud, spread };
    let mut waits = Vec::new();
    for _ in 0..3 {
        let Next::After(wait) = syncer.reconcile(&"a".into()).await.unwrap() else { panic!() };
        waits.push(wait);
    }
    let resync = Duration::from_secs(30);
    assert!(waits[0] < resync && waits[1..] == [resync; 2], "{waits:?}");
}
