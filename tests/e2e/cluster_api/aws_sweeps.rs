//! Many AWSClusters of one region at rest, which share their reads.
//!
//! `cargo test -p tests --test cluster_api -- --ignored --nocapture costs_few_reads` prints the reads of 500 in an hour.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tests::aws_proxy::{Call, Fate};
use tests::{Process, Stopwatch};

use crate::aws_crowd::{WORKERS, until};
use crate::aws_stage::{REGION, Stage, is_ready, ours, spec};
use crate::aws_upstream::texts;
use crate::scene::{AWS_CLUSTERS, CLUSTERS, cluster};

/// Clusters without NAT gateways and bastions at rest. Every second one has IPv6.
struct AtRest {
    stage: Stage,
    manager: Process,
    names: Vec<String>,
}

/// Whether a call reads for several clusters.
fn is_shared(call: &Call) -> bool {
    !call.parameter("Filter.1.Value.2").is_empty()
}

/// The spec of a cluster.
fn body(number: usize) -> Value {
    let mut body = spec("10.1.1.0/24");
    if number % 2 == 1 {
        body["network"]["vpc"]["ipv6"] = json!({});
        for subnet in body["network"]["subnets"].as_array_mut().unwrap() {
            subnet["isIpv6"] = true.into();
        }
    }
    body
}

impl AtRest {
    async fn begin(stage: Stage, number: usize, args: &str) -> Self {
        let manager = stage.start_with_aws(args);
        let names: Vec<_> = (0..number).map(|number| format!("rest-{number}")).collect();
        let both = |(number, name): (usize, &String)| [ours(name, &body(number)), cluster(name)];
        stage.create_all(&names.iter().enumerate().flat_map(both).collect::<Vec<_>>());
        for name in &names {
            let ready =
                async || stage.find(AWS_CLUSTERS, name).await.is_some_and(|it| is_ready(&it));
            until(name, ready).await;
        }
        let crowd = Self { stage, manager, names };
        // The first look at a new cluster is one of its own.
        crowd.stage.proxy.forget();
        crowd.shared_reads(3 * number.div_ceil(VALUES)).await;
        crowd.stage.proxy.forget();
        crowd
    }

    fn reads_of_subnets(&self) -> Vec<Call> {
        let calls = self.stage.proxy.calls().into_iter();
        calls.filter(|call| call.action == "DescribeSubnets").collect()
    }

    /// The VPCs that clusters have read by themselves since the calls were forgotten.
    fn read_alone(&self) -> BTreeSet<String> {
        let reads = self.reads_of_subnets().into_iter().filter(|call| !is_shared(call));
        reads.map(|call| call.parameter("Filter.1.Value.1").to_owned()).collect()
    }

    /// Waits until so many shared reads have begun since the calls were forgotten.
    async fn shared_reads(&self, number: usize) {
        let shared = || self.reads_of_subnets().into_iter().filter(is_shared).count();
        until("shared reads", async || shared() >= number).await;
    }

    /// Changes the spec of a cluster. The times until it is read by itself and until something is written.
    async fn acts_on_a_change(&self, number: usize) -> [Duration; 2] {
        let vpc = self.vpc(number).await;
        let (watch, times) = (Stopwatch::start(), Arc::new(Mutex::new([None; 2])));
        let noted = Arc::clone(&times);
        self.stage.proxy.decide(move |_, call| {
            let is_of_it = !is_shared(call) && call.parameters.values().any(|it| *it == vpc);
            for (time, is_it) in noted.lock().iter_mut().zip([is_of_it, call.is_write()]) {
                *time = time.or(is_it.then(|| watch.elapsed()));
            }
            Fate::Pass
        });
        let tags = json!({"spec": {"additionalTags": {"team": "a"}}});
        self.stage.patch(&format!("{AWS_CLUSTERS} {}", self.names[number]), "merge", &tags);
        until("a write", async || times.lock().iter().all(Option::is_some)).await;
        let times = *times.lock();
        times.map(Option::unwrap)
    }

    /// The VPC of a cluster.
    async fn vpc(&self, number: usize) -> String {
        let object = self.stage.find(AWS_CLUSTERS, &self.names[number]).await.unwrap();
        object["status"]["resources"]["vpc"]["id"].as_str().unwrap().to_owned()
    }

    /// Each kind of damage to one cluster: a lost tag, a lost route table, and a lost egress-only gateway.
    async fn damage(&self, [untagged, unrouted, ungated]: [usize; 3]) {
        let upstream = self.stage.proxy.upstream();
        let object = self.stage.find(AWS_CLUSTERS, &self.names[untagged]).await.unwrap();
        let group = object["status"]["network"]["securityGroups"]["node"]["id"].as_str().unwrap();
        let untag = [("Action", "DeleteTags"), ("ResourceId.1", group), ("Tag.1.Key", "Name")];
        upstream.ec2(REGION, &untag).await;

        let shown = async |action: &str, filter: &str, id: &str| {
            let call = [("Action", action), ("Filter.1.Name", filter), ("Filter.1.Value.1", id)];
            upstream.ec2(REGION, &call).await
        };
        let subnets = shown("DescribeSubnets", "vpc-id", &self.vpc(unrouted).await).await;
        let subnet = &texts(&subnets, "subnetId")[0];
        let tables = shown("DescribeRouteTables", "association.subnet-id", subnet).await;
        let association = &texts(&tables, "routeTableAssociationId")[0];
        let leave = [("Action", "DisassociateRouteTable"), ("AssociationId", &**association)];
        upstream.ec2(REGION, &leave).await;
        let table = &texts(&tables, "routeTableId")[0];
        upstream.ec2(REGION, &[("Action", "DeleteRouteTable"), ("RouteTableId", &**table)]).await;

        let routes = shown("DescribeRouteTables", "vpc-id", &self.vpc(ungated).await).await;
        let gateway = &texts(&routes, "egressOnlyInternetGatewayId")[0];
        let delete = ("Action", "DeleteEgressOnlyInternetGateway");
        upstream.ec2(REGION, &[delete, ("EgressOnlyInternetGatewayId", &**gateway)]).await;
    }
}

/// Values in the filter of a shared read, at most.
const VALUES: usize = 100;
/// Number of kinds of resources. One call reads a kind for all clusters of the test.
const KINDS: usize = 9;
/// Reads of a deep check without a network load balancer.
const DEEP: usize = 4;

/// cluster-api-provider-aws#1275, #4192
#[tokio::test(flavor = "multi_thread")]
async fn clusters_at_rest_share_their_reads_and_what_differs_is_repaired_after_a_shared_read() {
    const NUMBER: usize = 6;
    let Some(stage) = Stage::set().await else { return };
    let crowd = AtRest::begin(stage, NUMBER, "--sync-period=10s").await;
    let stage = &crowd.stage;
    crowd.shared_reads(3).await;
    assert_eq!(crowd.read_alone(), BTreeSet::new());
    // Another one may be under way, and the deep check of each cluster may be due.
    let calls = stage.proxy.calls();
    assert!(calls.len() <= 4 * KINDS + DEEP * NUMBER, "{} reads: {calls:#?}", calls.len());
    assert_eq!(stage.writes(), [""; 0]);

    stage.proxy.forget();
    crowd.damage([2, 4, 1]).await;
    for repair in ["CreateTags", "CreateRouteTable", "CreateEgressOnlyInternetGateway"] {
        until(repair, async || stage.writes().iter().any(|it| it == repair)).await;
    }
    // One read may have been under way, and the next one may be by now.
    let shared = crowd.reads_of_subnets().into_iter().filter(is_shared).count();
    assert!((1..=3).contains(&shared), "repaired after {shared} shared reads");
    crowd.shared_reads(shared + 2).await;
    let damaged = [crowd.vpc(1).await, crowd.vpc(2).await, crowd.vpc(4).await];
    assert_eq!(crowd.read_alone(), BTreeSet::from(damaged));
    stage.proxy.forget();
    crowd.shared_reads(2).await;
    assert_eq!((crowd.read_alone(), stage.writes()), (BTreeSet::new(), Vec::new()));

    changes_and_deletions_read_alone(&crowd).await;

    // Where shared reads fail each cluster reads for itself.
    let mut all = BTreeSet::new();
    for number in 1..NUMBER {
        all.insert(crowd.vpc(number).await);
    }
    stage.proxy.forget();
    stage.proxy.decide(|_, call| {
        if is_shared(call) { Fate::Refuse("UnauthorizedOperation") } else { Fate::Pass }
    });
    until("reads of all clusters", async || crowd.read_alone() == all).await;
    assert_eq!(stage.writes(), [""; 0]);
    for name in &crowd.names[1..] {
        assert!(is_ready(&stage.find(AWS_CLUSTERS, name).await.unwrap()), "{name}");
    }
    crowd.stage.end(crowd.manager).await;
}

/// A change of the spec of one, and the deletion of the first, are not left to a shared read.
async fn changes_and_deletions_read_alone(crowd: &AtRest) {
    let stage = &crowd.stage;
    let changed = crowd.vpc(5).await;
    stage.proxy.forget();
    let tags = json!({"spec": {"additionalTags": {"team": "a"}}});
    stage.patch(&format!("{AWS_CLUSTERS} {}", crowd.names[5]), "merge", &tags);
    stage.run(&format!("delete {CLUSTERS} {} --wait=false", crowd.names[0]));
    until("tags", async || stage.writes().contains(&"AddTags".to_owned())).await;
    stage.until_gone(CLUSTERS, &crowd.names[0]).await;
    assert!(stage.writes().contains(&"DeleteVpc".to_owned()), "{:?}", stage.writes());
    // A deletion looks for the tag of its cluster.
    assert_eq!(crowd.read_alone(), BTreeSet::from([changed, "owned".to_owned()]));
}

/// The hour passes in six minutes.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes minutes: run it by name"]
async fn a_crowd_at_rest_costs_few_reads_in_an_hour() {
    const NUMBER: usize = 500;
    const FASTER: u64 = 10;
    let args = format!(
        "--sync-period={}s --deep-check-period={}s --aws-idle-read-qps={} --awscluster-concurrency={WORKERS}",
        600 / FASTER,
        3600 / FASTER,
        2 * FASTER,
    );
    let Some(stage) = Stage::set().await else { return };
    let began = Instant::now();
    // That they are made as AWS wants it is not asked here.
    stage.proxy.set_strict(false);
    let crowd = AtRest::begin(stage, NUMBER, &args).await;
    let proxy = &crowd.stage.proxy;
    proxy.set_strict(true);
    println!("{NUMBER} clusters are at rest after {:.0} s", began.elapsed().as_secs_f64());
    proxy.forget();
    tokio::time::sleep(Duration::from_secs(3600 / FASTER)).await;
    let calls = proxy.calls();
    let mut by_action: BTreeMap<&str, usize> = BTreeMap::new();
    for call in &calls {
        *by_action.entry(&call.action).or_default() += 1;
    }
    println!("{} reads of {NUMBER} clusters at rest in an hour: {by_action:#?}", calls.len());
    assert_eq!(crowd.stage.writes(), [""; 0]);
    // 7200 is the limit of --aws-idle-read-qps, which holds without any sharing.
    assert!(calls.len() <= 3000, "{} reads", calls.len());
    // Two of 500 were once read alone, for a reason that is not known.
    let alone = crowd.read_alone();
    assert!(alone.len() <= NUMBER / 100, "{alone:?} are read alone");
    for number in [7, 250, 499] {
        let [read, written] = crowd.acts_on_a_change(number).await;
        println!("a change is acted on after {read:.1?}, and written after {written:.1?}");
        assert!(read < Duration::from_secs(5), "{read:?}");
    }
    crowd.stage.end(crowd.manager).await;
}
