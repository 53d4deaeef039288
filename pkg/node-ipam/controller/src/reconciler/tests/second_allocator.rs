//! Reactions when another allocator gives a Node its pod CIDR (`rule:second-allocator-is-told`).

use std::sync::atomic::{AtomicUsize, Ordering};

use client::{SendCheck, WaitingSince};

use crate::second_allocator::OnSecondAllocator;

use super::*;

const STOCK: &str = "kube-controller-manager";
const HOUR: Duration = Duration::from_secs(3600);

/// A server that says who set the pod CIDRs of a Node, and when the Node was made. It takes a PATCH
/// for what is there already.
fn set_at(manager: &'static str, created: &'static str) -> NodeApi {
    set_on_the_clock(manager, created, None)
}

/// An API server with its own clock, whose Nodes were made then.
fn set_on_the_clock(
    manager: &'static str,
    created: &'static str,
    now: Option<&'static str>,
) -> NodeApi {
    let client = client(move |asked| {
        if let Some(SendCheck(check)) = asked.head.extensions.get() {
            assert!(check());
        }
        let name = asked.path().rsplit('/').next().unwrap_or_default();
        let mut node = node(name, &["10.0.0.192/26"]);
        // Each taint that stock writes moves the time of all that it has set.
        let time = "2999-01-01T00:00:00Z";
        node["metadata"]["creationTimestamp"] = json!(created);
        node["metadata"]["managedFields"] = json!([
            {"manager": "kubelet", "time": time, "fieldsV1": {"f:status": {}}},
            {"manager": STOCK, "time": time, "fieldsV1": {"f:spec": {"f:taints": {}}}},
            {"manager": manager, "time": time, "fieldsV1": {"f:spec": {"f:podCIDRs": {}}}},
        ]);
        match now {
            Some(now) => Reply::Dated(now, node),
            None => Reply::Json(200, node),
        }
    });
    NodeApi::new(client, ms(5000))
}

/// An API server whose Nodes were made while this program runs.
fn set_by(manager: &'static str) -> NodeApi {
    set_at(manager, "2999-01-01T00:00:00Z")
}

fn named(flag: &str) -> OnSecondAllocator {
    OnSecondAllocator::NAMES.into_iter().find(|(name, _)| *name == flag).unwrap().1
}

impl Bench {
    /// The watch shows a Node with CIDRs that were not sent by us.
    fn show(&self, name: &str, cidr: &str) {
        let node: Node = serde_json::from_value(node(name, &[cidr])).unwrap();
        let effects = self.reconciler.allocator.lock().observe(&node, Instant::now());
        self.reconciler.carry_out(effects);
    }

    /// A bench whose watch over the other allocator runs, with the Nodes a and b.
    async fn watching(api: NodeApi) -> Self {
        let bench = Self::new(api, no_server(), 26, two_nodes()).await;
        let watched = bench.reconciler.clone();
        tokio::spawn(async move {
            watched.detector.watch(OnSecondAllocator::Pause, &watched.stop).await;
        });
        bench
    }

    fn held(&self) -> Option<Duration> {
        self.reconciler.detector.hold.left(Instant::now())
    }

    fn second_allocators(&self) -> Option<f64> {
        let families = self.registry.gather();
        let family = families.iter().find(|f| f.name() == "node_ipam_second_allocator_total");
        Some(family?.get_metric().iter().map(|series| series.get_counter().get_value()).sum())
    }

    /// The value of the label `manager` of what was counted.
    fn managers(&self) -> Vec<String> {
        let families = self.registry.gather();
        let family = families.iter().find(|f| f.name() == "node_ipam_second_allocator_total");
        let counted = family.into_iter().flat_map(prometheus::proto::MetricFamily::get_metric);
        let counted = counted.filter(|series| series.get_counter().get_value() > 0.0);
        counted.map(|series| series.get_label()[0].value().to_owned()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn stock_beside_us_is_told_and_nothing_is_given_out_for_as_long_as_the_flag_says() {
    for (flag, after_a_second, after_an_hour) in
        [("warn", false, false), ("pause", true, false), ("stop", true, true)]
    {
        let (events, heard) = audience();
        let bench = Bench::new(set_by(STOCK), events, 26, two_nodes()).await;
        let (watched, mode) = (bench.reconciler.clone(), named(flag));
        tokio::spawn(async move { watched.detector.watch(mode, &watched.stop).await });
        bench.show("b", "10.0.0.192/26");
        sleep(ms(1000)).await;
        assert_eq!(bench.second_allocators(), Some(1.0), "{flag}");
        assert_eq!(bench.held().is_some(), after_a_second, "{flag}");
        let heard: Vec<_> = heard.lock().iter().map(|told| told.node.clone()).collect();
        assert_eq!(heard, ["b"], "{flag}");
        sleep(HOUR).await;
        assert_eq!(bench.held().is_some(), after_an_hour, "{flag}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_waits_out_the_pause_and_a_second_discovery_prolongs_it_in_silence() {
    let (events, heard) = audience();
    let nodes = ["a", "b", "c"].map(|name| node(name, &[])).to_vec();
    let bench = Bench::new(set_by(STOCK), events, 26, nodes).await;
    let watched = bench.reconciler.clone();
    tokio::spawn(
        async move { watched.detector.watch(OnSecondAllocator::Pause, &watched.stop).await },
    );
    bench.show("b", "10.0.0.192/26");
    sleep(ms(10_000)).await;
    let next = bench.start_reconciling("a").await.unwrap().unwrap();
    assert!(matches!(next, Next::After(wait) if wait == bench.held().unwrap()), "{next:?}");
    bench.show("c", "10.0.0.128/26");
    sleep(ms(1000)).await;
    assert_eq!(bench.second_allocators(), Some(2.0));
    assert!(bench.held().unwrap() > ms(28_000), "{:?}", bench.held());
    assert_eq!(heard.lock().len(), 1, "one is enough to look into it");
    sleep(ms(30_000)).await;
    assert_eq!(bench.held(), None);
}

#[tokio::test(start_paused = true)]
async fn each_known_allocator_is_told_with_its_remedy_and_stops_us_at_its_first_node() {
    for (manager, label, remedy) in [
        ("kube-controller-manager", "kube-controller-manager", "-node-ipam-controller"),
        ("aws-cloud-controller-manager", "cloud-controller-manager", "--allocate-node-cidrs=false"),
        ("manager", "node-ipam-controller", "sigs.k8s.io/node-ipam-controller"),
        ("aws-ipam-controller", "aws-ipam-controller", "Gardener"),
        ("kops-controller", "kops-controller", "IPAM of kops-controller"),
        ("antrea-controller", "antrea-controller", "antrea-config"),
    ] {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&messages);
        let events = client(move |asked| {
            heard.lock().push(asked.json()["message"].as_str().unwrap_or_default().to_owned());
            Reply::stored(asked)
        });
        let bench = Bench::new(set_by(manager), events, 26, two_nodes()).await;
        let watched = bench.reconciler.clone();
        tokio::spawn(async move {
            watched.detector.watch(OnSecondAllocator::Pause, &watched.stop).await;
        });
        bench.show("b", "10.0.0.192/26");
        sleep(ms(10_000)).await;
        assert_eq!(bench.managers(), [label], "{manager}");
        assert!(bench.held().is_some(), "{manager}");
        let message = messages.lock()[0].clone();
        assert!(message.starts_with(&format!("{manager} assigned 10.0.0.192/26")), "{message}");
        assert!(message.contains(remedy), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_writer_is_told_and_stops_us_at_its_second_node_within_ten_minutes() {
    let bench = Bench::new(set_by("kubectl-patch"), no_server(), 26, two_nodes()).await;
    let watched = bench.reconciler.clone();
    tokio::spawn(async move {
        watched.detector.watch(OnSecondAllocator::Stop, &watched.stop).await;
    });
    for (node, wait, is_held) in [("n0", 601, false), ("n1", 11, false), ("n2", 1, true)] {
        bench.show(node, "10.1.0.0/26");
        sleep(ms(wait * 1000)).await;
        assert_eq!(bench.held().is_some(), is_held, "{node}");
    }
    assert_eq!((bench.managers(), bench.second_allocators()), (vec!["other".into()], Some(3.0)));
}

#[tokio::test(start_paused = true)]
async fn what_a_leader_of_this_program_wrote_before_is_no_second_allocator() {
    let bench = Bench::watching(set_by("infra-controller-manager")).await;
    bench.show("b", "10.0.0.192/26");
    sleep(ms(1000)).await;
    assert_eq!((bench.second_allocators(), bench.held()), (Some(0.0), None));
}

#[tokio::test(start_paused = true)]
async fn the_block_that_ours_chose_is_told_too_when_stock_wrote_it() {
    let bench = Bench::watching(set_by(STOCK)).await;
    let uid = Arc::from("uid-b");
    let (assignment, _) = bench.reconciler.allocator.lock().assign(&uid);
    let Assignment::Send { cidrs, .. } = assignment else { panic!("{assignment:?}") };
    bench.show("b", &cidrs[0].to_string());
    sleep(ms(1000)).await;
    assert_eq!(bench.second_allocators(), Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_our_own_patch_tells_that_stock_had_written_the_same() {
    for (manager, met) in [(STOCK, 1.0), ("infra-controller-manager", 0.0)] {
        let bench = Bench::watching(set_by(manager)).await;
        bench.start_reconciling("a").await.unwrap().unwrap();
        assert!((bench.patched("done") - 1.0).abs() < 0.1);
        sleep(ms(1000)).await;
        assert_eq!(bench.second_allocators(), Some(met), "{manager}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_served_before_we_saw_it_is_looked_at_unless_it_was_there_at_the_start() {
    let bench = Bench::watching(set_by(STOCK)).await;
    bench.show("new", "10.0.0.64/26");
    sleep(ms(1000)).await;
    assert_eq!(bench.second_allocators(), Some(1.0));

    let there = vec![node("old", &["10.0.0.64/26"])];
    let bench = Bench::new(set_by(STOCK), no_server(), 26, there).await;
    let watched = bench.reconciler.clone();
    tokio::spawn(
        async move { watched.detector.watch(OnSecondAllocator::Pause, &watched.stop).await },
    );
    sleep(ms(1000)).await;
    assert_eq!(bench.second_allocators(), Some(0.0));
}

/// A Node that turns up late may have been served before we began, whatever stock writes now.
#[tokio::test(start_paused = true)]
async fn what_stock_gave_a_node_that_was_there_before_we_began_is_no_second_allocator() {
    let bench = Bench::watching(set_at(STOCK, "2026-01-01T00:00:00Z")).await;
    bench.show("late", "10.0.0.192/26");
    sleep(ms(1000)).await;
    assert_eq!((bench.second_allocators(), bench.held()), (Some(0.0), None));
    sleep(ms(10_000)).await;
    bench.show("b", "10.0.0.128/26");
    sleep(ms(1000)).await;
    assert_eq!(bench.second_allocators(), Some(1.0), "it was seen empty");
}

#[tokio::test(start_paused = true)]
async fn what_counts_is_the_clock_of_the_server() {
    for (now, created, met) in [
        ("Fri, 01 Jan 2100 00:01:00 GMT", "2099-12-31T23:59:00Z", 0.0),
        ("Wed, 01 Jan 2020 00:01:00 GMT", "2020-01-01T00:00:02Z", 1.0),
        // In the second in which we began.
        ("Wed, 01 Jan 2020 00:01:00 GMT", "2019-12-31T23:59:59Z", 1.0),
    ] {
        let bench = Bench::watching(set_on_the_clock(STOCK, created, Some(now))).await;
        sleep(ms(60_500)).await;
        bench.show("late", "10.0.0.192/26");
        sleep(ms(1000)).await;
        assert_eq!(bench.second_allocators(), Some(met), "{now}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_that_fails_is_repeated_until_it_is_answered_or_the_node_is_gone() {
    for (failure, looks) in [(500, 3), (403, 3), (404, 1)] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let client = client(move |_| match count.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Reply::failure(failure, "Refused"),
            _ => Reply::Json(200, node("b", &["10.0.0.192/26"])),
        });
        let bench = Bench::watching(NodeApi::new(client, ms(5000))).await;
        bench.show("b", "10.0.0.192/26");
        sleep(ms(60_000)).await;
        assert_eq!(asked.load(Ordering::Relaxed), looks, "{failure}");
    }
}

/// Thousands of Nodes wait for the throttle when somebody else has served one of them.
#[tokio::test(start_paused = true)]
async fn the_look_goes_ahead_of_all_nodes_that_wait() {
    let (since, seen) = (Arc::new(Mutex::new(None)), Instant::now());
    let found = Arc::clone(&since);
    let client = client(move |asked| {
        *found.lock() = asked.head.extensions.get::<WaitingSince>().map(|since| since.0);
        Reply::Json(200, node("b", &["10.0.0.192/26"]))
    });
    let bench = Bench::watching(NodeApi::new(client, ms(5000))).await;
    sleep(ms(1000)).await;
    bench.show("b", "10.0.0.192/26");
    sleep(ms(1000)).await;
    let since = since.lock().expect("it was looked at");
    assert!(since < seen + ms(1000), "before the Node was seen: {:?}", since - seen);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_started_again_holds_what_the_one_before_it_held() {
    let hold = Hold::default();
    for (flag, is_held) in [("pause", false), ("stop", true)] {
        let bench = Bench::held_by(&hold, set_by(STOCK), no_server(), 26, two_nodes()).await;
        let (watched, mode) = (bench.reconciler.clone(), named(flag));
        tokio::spawn(async move { watched.detector.watch(mode, &watched.stop).await });
        bench.show("b", "10.0.0.192/26");
        sleep(HOUR).await;
        drop(bench);
        let next = Bench::held_by(&hold, set_by(STOCK), no_server(), 26, two_nodes()).await;
        let pass = next.start_reconciling("a").await.unwrap().unwrap();
        assert_eq!(matches!(pass, Next::After(_)), is_held, "{flag}: {pass:?}");
        assert_eq!(next.patched("done") < 0.5, is_held, "{flag}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_node_is_looked_into_per_ten_seconds() {
    let bench = Bench::watching(set_by(STOCK)).await;
    for number in 0..50 {
        bench.show(&format!("n{number}"), "10.1.0.0/26");
        sleep(ms(500)).await;
    }
    assert_eq!(bench.second_allocators(), Some(3.0), "in 25 seconds");
}

/// 10,000 taints that stock writes are no alarm, and cost no look at Nodes whose pod CIDRs are known.
#[tokio::test(start_paused = true)]
async fn taints_that_stock_writes_are_no_alarm_and_cost_no_read() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let client = client(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        let mut node = node("late", &["10.0.0.128/26"]);
        node["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        let fields = json!({"f:spec": {"f:podCIDR": {}, "f:taints": {}}});
        node["metadata"]["managedFields"] =
            json!([{"manager": STOCK, "time": "2999-01-01T00:00:00Z", "fieldsV1": fields}]);
        Reply::Json(200, node)
    });
    let there = vec![node("old", &["10.0.0.64/26"])];
    let bench = Bench::new(NodeApi::new(client, ms(5000)), no_server(), 26, there).await;
    let watched = bench.reconciler.clone();
    tokio::spawn(
        async move { watched.detector.watch(OnSecondAllocator::Stop, &watched.stop).await },
    );
    for _ in 0..5_000 {
        bench.show("old", "10.0.0.64/26");
        bench.show("late", "10.0.0.128/26");
        sleep(ms(20)).await;
    }
    sleep(ms(11_000)).await;
    assert_eq!((bench.second_allocators(), bench.held()), (Some(0.0), None));
    assert_eq!(asked.load(Ordering::Relaxed), 1, "the Node that was first seen late is read once");
}
