//! The CloudAllocator's pass over one Node.

use workqueue::Reconcile as _;

use super::super::copying::Copier;
use super::*;
use crate::options::Families;

async fn pass(bench: &Bench, name: &str) -> Result<Next, Retry> {
    let families = Families::of_services(&[]);
    let copier = Copier { all: Arc::clone(&bench.all), families };
    copier.reconcile(&name.into()).await
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[tokio::test(start_paused = true)]
async fn a_node_gets_the_first_alias_of_its_vm_and_is_said_to_be_ready() {
    let bench = Bench::new(CloudSource::Exact, None, vec![node("a", &[], VM, "")], &[]).await;
    bench.vm(VM, &["10.0.1.0/24", "10.9.0.0/24"]);
    assert_eq!(pass(&bench, "a").await.unwrap(), Next::Done);
    let patches = bench.patches();
    let [(spec, cidrs), (status, condition)] = &patches[..] else { panic!("{patches:?}") };
    assert_eq!((spec.as_str(), status.as_str()), ("/api/v1/nodes/a", "/api/v1/nodes/a/status"));
    assert_eq!(cidrs["metadata"]["uid"], "uid-a");
    assert_eq!(cidrs["spec"], json!({"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.1.0/24"]}));
    let condition = &condition["status"]["conditions"][0];
    assert_eq!(condition["message"], "NodeController create implicit route");
    assert_eq!(bench.told().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_condition_is_written_when_it_says_something_else_and_only_then() {
    for (network, ready) in [("", 1), ("True", 1), ("Unknown", 1), ("False", 0)] {
        let bench = Bench::new(
            CloudSource::Exact,
            None,
            vec![node("a", &["10.0.1.0/24"], VM, network)],
            &[],
        )
        .await;
        bench.vm(VM, &["10.0.1.0/24"]);
        assert_eq!(pass(&bench, "a").await.unwrap(), Next::Done);
        assert_eq!(bench.written(), (vec![], ready), "{network:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_differs_is_told_once_and_neither_patched_nor_said_to_be_ready() {
    let bench =
        Bench::new(CloudSource::Exact, None, vec![node("a", &["10.0.2.0/24"], VM, "True")], &[])
            .await;
    bench.vm(VM, &["10.0.1.0/24"]);
    for _ in 0..3 {
        assert_eq!(pass(&bench, "a").await.unwrap(), Next::After(seconds(60)));
    }
    assert_eq!(bench.patches(), []);
    assert_eq!(bench.told().await, ["CloudCIDRAllocatorMismatch"]);
}

#[tokio::test(start_paused = true)]
async fn a_vm_without_a_range_and_one_that_is_not_there_are_told_and_tried_again() {
    let bench = Bench::new(CloudSource::Exact, None, vec![node("a", &[], VM, "")], &[]).await;
    assert!(is_expected(&pass(&bench, "a").await));
    assert_eq!(bench.told().await, ["CIDRNotAvailable"]);
    let bench = Bench::new(CloudSource::Exact, None, vec![node("a", &[], VM, "")], &[]).await;
    bench.vm_fails(VM, CloudError::Absent("no VM".into()));
    assert!(is_expected(&pass(&bench, "a").await));
    assert_eq!(bench.told().await, ["CIDRNotAvailable"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_cloud_refuses_leads_to_what_its_class_says() {
    let (pause, why) = (Some(seconds(7)), "why".to_owned());
    for (error, throttled, at_least, told) in [
        (CloudError::Throttled { reason: why.clone(), pause }, true, 7, 0),
        (CloudError::Refused(why.clone()), false, 60, 1),
        (CloudError::Failed(why), false, 0, 0),
    ] {
        let bench = Bench::new(CloudSource::Exact, None, vec![node("a", &[], VM, "")], &[]).await;
        bench.vm_fails(VM, error.clone());
        let retry = pass(&bench, "a").await.unwrap_err();
        assert_eq!(
            (retry.is_throttled(), retry.pause()),
            (throttled, seconds(at_least)),
            "{error}"
        );
        assert_eq!(bench.told().await.len(), told, "{error}");
        assert_eq!(bench.patches(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_vm_is_not_known_yet_is_no_failure() {
    let bench = Bench::new(CloudSource::Exact, None, vec![node("a", &[], "", "")], &[]).await;
    assert_eq!(pass(&bench, "a").await.unwrap(), Next::Done);
    assert_eq!(pass(&bench, "gone").await.unwrap(), Next::Done);
    assert_eq!((bench.patches(), bench.told().await), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_fails_for_long_is_tried_once_in_a_minute() {
    let bench = Bench::new(CloudSource::Exact, None, vec![node("a", &[], VM, "")], &[]).await;
    let name = Arc::from("a");
    for failures in 0..25 {
        let retry = pass(&bench, "a").await.unwrap_err();
        let pause = if failures < 20 { Duration::ZERO } else { seconds(60) };
        assert_eq!(retry.pause(), pause, "after {failures}");
        bench.all.core.queue.retry(&name, Duration::ZERO);
    }
}

/// `rule:block-has-one-holder`
#[tokio::test(start_paused = true)]
async fn a_range_that_another_node_still_has_is_not_written_again() {
    let nodes =
        vec![node("old", &["10.0.1.0/24"], "gce://p/z/old", "False"), node("a", &[], VM, "")];
    let bench = Bench::new(CloudSource::Exact, None, nodes, &[]).await;
    bench.vm(VM, &["10.0.1.0/24"]);
    let retry = pass(&bench, "a").await.unwrap_err();
    assert!(retry.error().to_string().contains("Node old still has it"), "{retry:?}");
    assert_eq!(
        (bench.patches(), bench.told().await),
        (vec![], vec!["CIDRAssignmentFailed".into()])
    );
    drop(bench.all.claims().gone("uid-old", Instant::now()));
    assert_eq!(pass(&bench, "a").await.unwrap(), Next::Done);
    assert_eq!(bench.written().0, ["10.0.1.0/24"]);
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_is_refused_is_told_and_one_that_is_not_due_is_not() {
    for (code, told) in [(403, 1), (422, 1), (429, 0), (404, 0), (409, 0)] {
        let bench =
            Bench::new(CloudSource::Exact, None, vec![node("a", &[], VM, "")], &[code]).await;
        bench.vm(VM, &["10.0.1.0/24"]);
        let retry = pass(&bench, "a").await.unwrap_err();
        assert_eq!(retry.is_throttled(), code == 429, "{code}");
        let reasons = bench.told().await;
        assert_eq!(reasons, vec!["CIDRAssignmentFailed"; told], "{code}");
    }
}

/// `rule:unknown-outcome-ends`
#[tokio::test(start_paused = true)]
async fn after_a_lost_answer_nothing_else_is_sent_before_three_reads_show_that_it_ended() {
    let bench = Bench::new(CloudSource::Exact, None, vec![node("a", &[], VM, "")], &[504]).await;
    bench.vm(VM, &["10.0.1.0/24"]);
    assert!(pass(&bench, "a").await.is_err());
    bench.vm(VM, &["10.0.2.0/24"]);
    let mut pauses = Vec::new();
    while let Err(retry) = pass(&bench, "a").await {
        pauses.push(retry.pause());
        tokio::time::sleep(retry.pause()).await;
    }
    let [deadline, aftermath, at_once] = pauses[..] else { panic!("{pauses:?}") };
    let longest = bench.all.core.api.applicable_for();
    assert!(deadline > seconds(5) && deadline <= longest, "{deadline:?}");
    assert_eq!((aftermath, at_once), (seconds(1), Duration::ZERO));
    assert_eq!(bench.written().0, ["10.0.1.0/24", "10.0.2.0/24"]);
}

/// `rule:stop-settles-outcomes`
#[tokio::test(start_paused = true)]
async fn at_the_stop_what_is_open_is_settled_by_reads() {
    for (limit, unknown) in [(seconds(3), 1), (seconds(60), 0)] {
        let bench =
            Bench::new(CloudSource::Exact, None, vec![node("a", &[], VM, "")], &[504]).await;
        bench.vm(VM, &["10.0.1.0/24"]);
        assert!(pass(&bench, "a").await.is_err());
        bench.all.core.stop.cancel();
        let settled = bench.all.core.settle_outcomes(Instant::now() + limit).await;
        assert_eq!(settled, unknown, "{limit:?}");
        assert_eq!(bench.written().0.len(), 1, "no second PATCH");
    }
}

/// `rule:block-has-one-holder`
#[tokio::test(start_paused = true)]
async fn two_nodes_with_one_pod_cidr_are_counted_and_warned_of_on_both() {
    let nodes = ["a", "b"].map(|name| node(name, &["10.0.1.0/24"], VM, "False"));
    let bench = Bench::new(CloudSource::Exact, None, nodes.to_vec(), &[]).await;
    assert_eq!(bench.told().await, ["PodCIDRConflict"; 2]);
    assert!(bench.shows("node_ipam_conflicts", 1.0));
}

#[tokio::test(start_paused = true)]
async fn after_the_stop_nothing_is_sent() {
    let bench = Bench::new(CloudSource::Exact, None, vec![node("a", &[], VM, "")], &[]).await;
    bench.vm(VM, &["10.0.1.0/24"]);
    bench.all.core.stop.cancel();
    assert_eq!(pass(&bench, "a").await.unwrap(), Next::Done);
    assert_eq!(bench.server.asked().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_a_node_that_goes_before_its_answer_is_lost() {
    let bench = Bench::new(CloudSource::Exact, None, vec![node("a", &[], VM, "")], &[LATE]).await;
    bench.vm(VM, &["10.0.1.0/24"]);
    let passing = pass(&bench, "a");
    let gone = async {
        while bench.patches().is_empty() {
            tokio::task::yield_now().await;
        }
        drop(bench.all.claims().gone("uid-a", Instant::now()));
    };
    let ((), ended) = tokio::join!(gone, passing);
    assert!(ended.is_err());
    assert!(bench.all.claims().open_outcomes().is_empty());
}
