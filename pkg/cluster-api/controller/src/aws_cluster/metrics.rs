//! [`AwsClusterMetrics`]: how long AWSClusters take, and what is mended of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_network::{
    Action, AwsResource, Identity, InstanceState, NatMode, NatState, Observed, Outcome, Seen,
};
use jiff::Timestamp;
use metrics::{Family, Held, SeriesByLabel, at_scrape, counter, gauge, register};
use objects::Object;
use parking_lot::Mutex;
use prometheus::{
    Histogram, HistogramOpts, IntCounterVec, IntGaugeVec, Registry, exponential_buckets,
};

use tokio::time::Instant;

use crate::api::aws_cluster::AwsCluster;

/// Clones count together.
#[derive(Clone)]
pub(super) struct AwsClusterMetrics {
    provision: Histogram,
    repairs: IntCounterVec,
    resources: IntGaugeVec,
    nat_gateways: IntGaugeVec,
    leaked: IntGaugeVec,
    by_cluster: SeriesByLabel,
    seen: Arc<Mutex<HashMap<Arc<str>, Counted>>>,
}

struct Counted {
    /// The last read of AWS; `None` while it is not to be read.
    looked: Option<Instant>,
    /// Series that end with the AWSCluster.
    series: Held,
    mode: &'static str,
    nat_gateways: usize,
}

impl AwsClusterMetrics {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let help = "Time from the creation of an AWSCluster until it was ready.";
        let opts = HistogramOpts::new("awscluster_provision_seconds", help)
            .buckets(exponential_buckets(5.0, 2.0, 10)?);
        let provision = register(registry, Histogram::with_opts(opts)?)?;
        let help = "Writes to AWS that repaired a ready AWSCluster whose spec had not changed.";
        let repairs = counter(registry, "awscluster_drift_repairs_total", help, &["operation"])?;
        let (help, labels) = (
            "Resources of AWSClusters on AWS at the last read.",
            ["namespace", "name", "kind", "state"],
        );
        let resources = gauge(registry, "awscluster_resources", help, &labels)?;
        let help = "Usable NAT gateways, by natGateways.mode of their AWSCluster.";
        let nat_gateways = gauge(registry, "awscluster_nat_gateways", help, &["mode"])?;
        let help = "Resources on AWS whose AWSCluster does not exist, found by the last scan; \
            see --leak-scan-period.";
        let leaked = gauge(registry, "awscluster_leaked_resources", help, &["kind"])?;
        let (by_cluster, seen) = (SeriesByLabel::default(), Arc::<Mutex<HashMap<_, _>>>::default());
        at_scrape(registry, [oldest_look()?], {
            let seen = Arc::clone(&seen);
            move |[family]| {
                let seen = seen.lock();
                let looks = seen.values().filter_map(|it: &Counted| it.looked);
                let ages = looks.map(|at| at.elapsed().as_secs_f64());
                let oldest = ages.reduce(f64::max);
                [oldest.iter().map(|age| family.series(&[], *age)).collect()]
            }
        })?;
        Ok(Self { provision, repairs, resources, nat_gateways, leaked, by_cluster, seen })
    }

    /// Sets the numbers of resources of an AWSCluster. `age` is that of a look; `None` without one.
    pub(super) fn saw(
        &self,
        object: &Object<AwsCluster>,
        mode: &'static str,
        counts: &Counts,
        age: Option<Duration>,
    ) {
        let metadata = &object.metadata;
        let (namespace, name) = (metadata.namespace().unwrap_or_default(), metadata.name());
        let mut all = self.seen.lock();
        let seen = all.entry(Arc::clone(&metadata.key)).or_insert_with(|| Counted {
            series: self.by_cluster.hold(&metadata.key),
            looked: Some(Instant::now()),
            mode,
            nat_gateways: 0,
        });
        if let Some(age) = age {
            seen.looked = Instant::now().checked_sub(age);
        }
        seen.mode = mode;
        seen.nat_gateways = 0;
        for (kind, state, number) in counts {
            let series = seen.series.series(&self.resources, &[namespace, name, kind, state]);
            series.set(i64::try_from(*number).unwrap_or(i64::MAX));
            if (*kind, *state) == ("nat_gateway", "available") {
                seen.nat_gateways = *number;
            }
        }
        self.sum_up(&all);
    }

    /// Sets the numbers of leaked resources by kind.
    pub(super) fn leaked(&self, counts: &[(&'static str, usize)]) {
        for (kind, number) in counts {
            let gauge = self.leaked.with_label_values(&[*kind]);
            gauge.set(i64::try_from(*number).unwrap_or(i64::MAX));
        }
    }

    /// An AWSCluster is not looked at until the next time that it is seen.
    pub(super) fn rests(&self, key: &str) {
        if let Some(seen) = self.seen.lock().get_mut(key) {
            seen.looked = None;
        }
    }

    pub(super) fn forget(&self, key: &str) {
        let mut all = self.seen.lock();
        if all.remove(key).is_some() {
            self.sum_up(&all);
        }
    }

    fn sum_up(&self, all: &HashMap<Arc<str>, Counted>) {
        for mode in NatMode::WORDS {
            let of_mode = all.values().filter(|seen| seen.mode == mode);
            let sum: usize = of_mode.map(|seen| seen.nat_gateways).sum();
            let gauge = self.nat_gateways.with_label_values(&[mode]);
            gauge.set(i64::try_from(sum).unwrap_or(i64::MAX));
        }
    }

    /// Counts the first time that an AWSCluster is ready.
    pub(super) fn provisioned(&self, object: &Object<AwsCluster>, now: Timestamp) {
        let made: Option<Timestamp> =
            object.metadata.creation_timestamp.as_deref().and_then(|text| text.parse().ok());
        if let Some(made) = made {
            self.provision.observe(now.duration_since(made).as_secs_f64().max(0.0));
        }
    }

    pub(super) fn repaired(&self, action: &Action, outcome: &Outcome) {
        if matches!(outcome, Outcome::Done(_)) {
            self.repairs.with_label_values(&[action.operation()]).inc();
        }
    }
}

fn oldest_look() -> Result<Family, prometheus::Error> {
    let help = "Time since the last look at AWS for the AWSCluster whose look is the oldest; see \
        --aws-idle-read-qps.";
    Family::gauge("icm_aws_oldest_look_seconds", help, &[])
}

/// Kind and state of resources, and how many there are. The same kinds and states each time.
pub(super) type Counts = Vec<(&'static str, &'static str, usize)>;

/// States of what has no state that counts.
const PRESENT: &str = "present";

/// Counts what carries the marks of the cluster.
pub(super) fn of(identity: &Identity, observed: &Observed) -> Counts {
    fn count<T: AwsResource>(
        seen: &Seen<T>,
        identity: &Identity,
        is_meant: impl Fn(&T) -> bool,
    ) -> usize {
        let owns = |found: &&T| found.known_tags().is_some_and(|tags| identity.owns(tags));
        seen.all().iter().filter(owns).filter(|found| is_meant(found)).count()
    }
    let nats = |state: NatState| count(&observed.nat_gateways, identity, |it| it.state == state);
    let bastions =
        |state: InstanceState| count(&observed.bastions, identity, |it| it.state == state);
    vec![
        ("vpc", PRESENT, count(&observed.vpcs, identity, |_| true)),
        ("subnet", PRESENT, count(&observed.subnets, identity, |_| true)),
        ("internet_gateway", PRESENT, count(&observed.internet_gateways, identity, |_| true)),
        ("elastic_ip", PRESENT, count(&observed.addresses, identity, |_| true)),
        ("route_table", PRESENT, count(&observed.route_tables, identity, |_| true)),
        ("security_group", PRESENT, count(&observed.security_groups, identity, |_| true)),
        ("nat_gateway", "pending", nats(NatState::Pending)),
        ("nat_gateway", "available", nats(NatState::Available)),
        ("nat_gateway", "failed", nats(NatState::Failed)),
        ("nat_gateway", "deleting", nats(NatState::Deleting)),
        ("instance", "pending", bastions(InstanceState::Pending)),
        ("instance", "running", bastions(InstanceState::Running)),
        ("instance", "stopped", bastions(InstanceState::Stopped)),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use aws_network::Answer;
    use prometheus::IntGauge;
    use prometheus::core::Collector as _;
    use serde_json::{Value, json};

    use super::*;

    const DASHBOARD: &str = include_str!("../../../../../deploy/grafana/cluster-api.json");

    #[test]
    fn repairs_that_were_carried_out_are_counted() {
        let metrics = AwsClusterMetrics::new(&Registry::new()).unwrap();
        let (table, destination) = ("rtb-1".to_owned(), aws_network::DEFAULT_ROUTE);
        let action = Action::DeleteRoute { table, destination };
        metrics.repaired(&action, &Outcome::Unknown);
        metrics.repaired(&action, &Outcome::Done(Answer::default()));
        assert_eq!(metrics.repairs.with_label_values(&["DeleteRoute"]).get(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_look_ages_and_ends_with_its_cluster() {
        let registry = Registry::new();
        let metrics = AwsClusterMetrics::new(&registry).unwrap();
        let oldest = || {
            let families = registry.gather();
            let found = families.iter().find(|it| it.name() == "icm_aws_oldest_look_seconds")?;
            Some(found.get_metric()[0].get_gauge().get_value())
        };
        assert_eq!(oldest(), None);
        let looks = |name: &str, age: Option<u64>| {
            metrics.saw(&object(name), "PerAZ", &Vec::new(), age.map(Duration::from_secs));
        };
        let later = || tokio::time::advance(Duration::from_secs(10));
        looks("a", Some(0));
        later().await;
        looks("b", Some(0));
        assert_eq!(oldest(), Some(10.0));
        looks("a", None);
        later().await;
        assert_eq!(oldest(), Some(20.0), "published without a look");
        looks("a", Some(0));
        assert_eq!(oldest(), Some(10.0));
        metrics.rests("ns/b");
        assert_eq!(oldest(), Some(0.0));
        looks("a", Some(5));
        assert_eq!(oldest(), Some(5.0), "a sweep that began then");
        looks("a", Some(0));
        looks("b", Some(0));
        later().await;
        metrics.forget("ns/b");
        assert_eq!(oldest(), Some(10.0));
    }

    fn object(name: &str) -> Object<AwsCluster> {
        Object::read(json!({"metadata": {"name": name, "namespace": "ns", "uid": "u",
            "resourceVersion": "1"}, "spec": {"region": "r"}}))
        .unwrap()
    }

    #[test]
    fn what_was_seen_is_shown_until_its_cluster_is_gone() {
        let metrics = AwsClusterMetrics::new(&Registry::new()).unwrap();
        let nats = |mode: &str| metrics.nat_gateways.with_label_values(&[mode]).get();
        let counts = |number| vec![("vpc", "present", 1), ("nat_gateway", "available", number)];
        metrics.saw(&object("a"), "PerAZ", &counts(3), Some(Duration::ZERO));
        metrics.saw(&object("b"), "PerAZ", &counts(2), Some(Duration::ZERO));
        assert_eq!((nats("PerAZ"), nats("Single"), nats("None")), (5, 0, 0));
        metrics.saw(&object("a"), "Single", &counts(1), Some(Duration::ZERO));
        assert_eq!((nats("PerAZ"), nats("Single")), (2, 1));
        let labels = ["ns", "a", "nat_gateway", "available"];
        assert_eq!(metrics.resources.with_label_values(&labels).get(), 1);
        metrics.forget("ns/a");
        metrics.forget("ns/b");
        let series: usize =
            metrics.resources.collect().iter().map(|family| family.get_metric().len()).sum();
        assert_eq!((series, nats("PerAZ"), nats("Single")), (0, 0, 0));
    }

    #[test]
    fn every_metric_of_the_dashboard_is_exported_and_every_panel_has_a_place_of_its_own() {
        let registry = Registry::new();
        AwsClusterMetrics::new(&registry).unwrap();
        aws::Metrics::new(&registry).unwrap();
        // Another help is refused under a name that is taken.
        let is_exported = |name: &str| {
            registry
                .register(Box::new(IntGauge::new(name, "asked for by a test").unwrap()))
                .is_err()
        };
        let words = DASHBOARD.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let metrics: BTreeSet<_> = words
            .filter(|word| word.starts_with("awscluster_") || word.starts_with("aws_"))
            .collect();
        assert!(metrics.len() >= 8, "{metrics:?}");
        for metric in metrics {
            let name = metric.trim_end_matches("_bucket").trim_end_matches("_sum");
            assert!(is_exported(name), "{metric} is not exported");
        }
        let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
        let mut places = BTreeSet::new();
        for panel in dashboard["panels"].as_array().unwrap() {
            let place = (panel["gridPos"]["x"].as_u64(), panel["gridPos"]["y"].as_u64());
            assert!(places.insert(place), "{panel}");
            assert!(!panel["targets"].as_array().unwrap().is_empty(), "{panel}");
        }
    }
}
