//! Many AWSClusters of one region, on an AWS that refuses what is too much.
//!
//! `cargo test -p tests --test cluster_api -- --ignored --nocapture crowd` prints the calls of 200.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tests::aws_proxy::{AwsProxy, Fate};

use crate::aws_stage::{Stage, ours, spec};
use crate::scene::{AWS_CLUSTERS, cluster};

/// Calls of a look at a cluster without a bastion.
const LOOK: usize = 8;
/// Looks at each cluster in a minute are so many times fewer, by default.
const MINUTES: usize = 10;
/// Worked on at once: those that wait are not. moto is one process, and slow.
pub(crate) const WORKERS: usize = 10;
/// A read of NAT gateways serves all clusters for so many seconds.
const SERVES_FOR: u64 = 8;

/// The calls that AWS received.
#[derive(Default)]
struct Seen {
    /// Times of the calls.
    at: Vec<Instant>,
    refused: usize,
}

impl Seen {
    fn busiest_minute(&self) -> usize {
        let within = |(number, start): (usize, &Instant)| {
            let end = *start + Duration::from_secs(60);
            self.at.partition_point(|at| *at < end) - number
        };
        self.at.iter().enumerate().map(within).max().unwrap_or_default()
    }
}

/// Clusters, and how often AWS may be called for them.
#[derive(Clone, Copy)]
struct Crowd {
    number: usize,
    /// Factor by which the rates of the product, of AWS and of the API server exceed their
    /// defaults. The API server gets an event for each write.
    times: u32,
    /// How long NAT gateways are pending.
    pending: Duration,
}

impl Crowd {
    fn args(self) -> String {
        let [read, reads, write, writes] = [20, 40, 5, 50].map(|rate| rate * self.times);
        format!(
            "--aws-read-qps={read} --aws-read-burst={reads} --aws-write-qps={write} --aws-write-burst={writes} \
             --kube-api-qps={read} --kube-api-burst={reads} --awscluster-concurrency={WORKERS}"
        )
    }

    /// Refuses each call of an action that is called more often than EC2's documentation allows:
    /// for reads with filters 100 and 20 more in each second, for writes 50 and 5.
    fn guard(self, proxy: &AwsProxy) -> Arc<Mutex<Seen>> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let seeing = Arc::clone(&seen);
        let times = f64::from(self.times);
        let mut left: BTreeMap<String, (f64, Instant)> = BTreeMap::new();
        proxy.decide(move |_, call| {
            let (burst, rate) = if call.is_write() { (50.0, 5.0) } else { (100.0, 20.0) };
            let (burst, rate, now) = (burst * times, rate * times, Instant::now());
            let mut seen = seeing.lock();
            seen.at.push(now);
            let (tokens, at) = left.entry(call.action.clone()).or_insert((burst, now));
            *tokens = (*tokens + now.duration_since(*at).as_secs_f64() * rate).min(burst);
            *at = now;
            if *tokens < 1.0 {
                seen.refused += 1;
                return Fate::Refuse("RequestLimitExceeded");
            }
            *tokens -= 1.0;
            Fate::Pass
        });
        seen
    }

    /// Makes all of them, looks at them once more, and prints the calls.
    async fn needs_few_calls_to_reconcile(self, stage: &Stage) {
        let seen = self.guard(&stage.proxy);
        stage.proxy.nats_pending_until(self.pending);
        let manager = stage.start_with_aws(&self.args());
        let start = Instant::now();
        let names: Vec<_> = (0..self.number).map(|number| format!("crowd-{number}")).collect();
        let mut body = spec("10.1.1.0/24");
        body["network"]["natGateways"]["mode"] = "Single".into();
        let both = |name: &String| [ours(name, &body), cluster(name)];
        stage.create_all(&names.iter().flat_map(both).collect::<Vec<_>>());
        for name in &names {
            let ready = async || {
                let object = stage.find(AWS_CLUSTERS, name).await;
                object.is_some_and(|it| it["status"]["ready"] == true)
            };
            until(name, ready).await;
        }
        let (made, took) = (stage.proxy.calls(), start.elapsed());
        stage.end(manager).await;
        let nat_reads = made.iter().filter(|call| call.action == "DescribeNatGateways").count();

        // Another process finds all as it should be.
        stage.proxy.forget();
        let seen_later = self.guard(&stage.proxy);
        let manager = stage.start_with_aws(&self.args());
        let looked = async || stage.proxy.calls().len() >= self.number * LOOK;
        until("a look at each", looked).await;
        stage.end(manager).await;
        let looks = stage.proxy.calls().len();
        println!(
            "{} clusters: ready after {:.0} s and {} calls, {} of them in the busiest minute, and {nat_reads} of \
             them reads of NAT gateways; kept with {} calls in a minute",
            self.number,
            took.as_secs_f64(),
            made.len(),
            seen.lock().busiest_minute(),
            looks / MINUTES,
        );
        assert_eq!(stage.writes(), [""; 0]);
        let refused = seen.lock().refused + seen_later.lock().refused;
        assert_eq!(refused, 0, "calls too many");
        // One when it is made and one when it is ready, and what serves all while they wait.
        let served = usize::try_from(took.as_secs() / SERVES_FOR).unwrap() + 2;
        assert!(nat_reads <= 2 * self.number + served, "{nat_reads} reads in {took:?}");
    }
}

/// Waits for half an hour, if need be.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < Duration::from_secs(1800), "{what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_that_are_made_together_wait_together_and_are_never_throttled() {
    let Some(stage) = Stage::set().await else { return };
    let crowd = Crowd { number: 5, times: 4, pending: Duration::from_secs(15) };
    crowd.needs_few_calls_to_reconcile(&stage).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes minutes: run it by name"]
async fn a_crowd_of_200_clusters_is_never_throttled() {
    let Some(stage) = Stage::set().await else { return };
    let crowd = Crowd { number: 200, times: 10, pending: Duration::from_secs(60) };
    crowd.needs_few_calls_to_reconcile(&stage).await;
}
