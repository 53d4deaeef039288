//! The series of each cluster.

use std::sync::{Arc, Weak};

use health::{Lifetime, Moment, Published, Status, observed_ratio};
use metrics::Family;
use parking_lot::Mutex;
use prometheus::Registry;
use prometheus::proto::Metric;

use crate::engine::cluster_registry::ClusterRegistry;
use crate::engine::difference::Difference;
use crate::engine::flavour::{Contact, now};
use crate::engine::member_cluster::{MemberState, STATUSES};

/// Labels of all; some have one more.
const CLUSTER: [&str; 3] = ["flavour", "namespace", "cluster"];

/// Number of a family in [`FAMILIES`].
#[derive(Clone, Copy)]
enum Which {
    Ready,
    Success,
    Probed,
    Changed,
    Availability,
    Observed,
    Bad,
    ObservedRatio,
    Objective,
    Budget,
    Credential,
    Certificate,
    Endpoints,
    Waived,
    Beat,
    Check,
    Differs,
    Transitions,
}

/// Name, further label and help, in the order of [`Which`].
const FAMILIES: [(&str, Option<&str>, &str); 18] = [
    (
        "clusterhealth_cluster_ready",
        None,
        "Published readiness: 1 ready, 0 not ready, -1 unknown; absent while the cluster is paused.",
    ),
    ("clusterhealth_cluster_probe_success", None, "Result of the last probe: 1 healthy, else 0."),
    (
        "clusterhealth_cluster_last_probe_timestamp_seconds",
        None,
        "Start of the last completed probe.",
    ),
    (
        "clusterhealth_cluster_last_transition_timestamp_seconds",
        None,
        "Time of the last change of the published readiness.",
    ),
    (
        "clusterhealth_cluster_availability_ratio",
        Some("window"),
        "Fraction of the observed time in which the cluster was healthy; of the window 28d since before this process, where the object keeps a record.",
    ),
    (
        "clusterhealth_cluster_observed_seconds_total",
        None,
        "Time in which results of probes said how the cluster is.",
    ),
    (
        "clusterhealth_cluster_bad_seconds_total",
        None,
        "The part of the observed time in which the last probe was not ok.",
    ),
    (
        "clusterhealth_cluster_observed_ratio",
        None,
        "Fraction of the last 28 days in which the cluster was observed.",
    ),
    (
        "clusterhealth_cluster_objective_ratio",
        None,
        "Fraction of the observed time in which the cluster has to be healthy: its annotation, or --cluster-health-objective.",
    ),
    (
        "clusterhealth_cluster_error_budget_remaining_ratio",
        None,
        "Fraction of the unhealthy time that the objective allows in 28 days that is left; negative when it is exceeded, at least -10. Absent until the cluster was observed for a day.",
    ),
    (
        "clusterhealth_credential_expiry_timestamp_seconds",
        None,
        "Earliest expiry of our credentials for the cluster, if they have one.",
    ),
    (
        "clusterhealth_serving_certificate_expiry_timestamp_seconds",
        None,
        "Expiry of the serving certificate that the cluster's API server sent last.",
    ),
    (
        "clusterhealth_cluster_endpoints",
        Some("state"),
        "Addresses of a cluster with several, by the result of the last probe of each.",
    ),
    (
        "clusterhealth_cluster_tls_checks_waived",
        Some("check"),
        "Always 1, for each skipped check of the server's certificate; * is all.",
    ),
    (
        "clusterhealth_cluster_beat_age_seconds",
        None,
        "Time since the cluster renewed its Lease in --cluster-health-beats-namespace, in which a renewal could be seen.",
    ),
    (
        "clusterhealth_check_status",
        Some("check"),
        "Published status of a check of --cluster-health-checks-config: 1 passed, 0 failed, -1 unknown.",
    ),
    (
        "clusterhealth_cluster_audit_differs",
        None,
        "In an audit, 1 when the stored health differs from the result of the probes for a while, else 0.",
    ),
    ("clusterhealth_cluster_transitions_total", Some("to"), "Published changes of readiness."),
];

/// The series of all clusters, while they are read.
struct Reading<'a> {
    families: &'a [Family],
    series: Vec<Vec<Metric>>,
}

/// Registers the series of each cluster of `shown`.
pub(super) fn register(
    registry: &Registry,
    shown: Arc<Mutex<Weak<ClusterRegistry>>>,
    audit: bool,
) -> Result<(), prometheus::Error> {
    let family = |(name, further, help): &(&str, Option<&str>, &str)| {
        let labels: Vec<_> = CLUSTER.into_iter().chain(*further).collect();
        if name.ends_with("_total") {
            Family::counter(name, help, &labels)
        } else {
            Family::gauge(name, help, &labels)
        }
    };
    let families = FAMILIES.iter().map(family).collect::<Result<Vec<_>, _>>()?;
    metrics::at_scrape(registry, families, move |families| {
        let registry = shown.lock().upgrade();
        registry.map_or_else(Vec::new, |registry| read(families, &registry, audit))
    })
}

fn read(families: &[Family], registry: &ClusterRegistry, audit: bool) -> Vec<Vec<Metric>> {
    let (now, clusters) = (now(), registry.all());
    let series = families.iter().map(|_| Vec::with_capacity(clusters.len())).collect();
    let mut reading = Reading { families, series };
    for member in &clusters {
        let (namespace, name) = member.cluster.namespace_and_name();
        let labels = [member.flavour.name(), namespace, name];
        if let Some(age) = registry.beats.age(member) {
            reading.put(Which::Beat, labels, age.as_secs_f64());
        }
        member.view(|it| {
            reading.health(labels, it);
            reading.availability(labels, it, now);
            reading.contact(labels, &it.contact());
            reading.checks(labels, it);
            if audit {
                let differs = it.difference.as_ref().is_some_and(Difference::is_lasting);
                reading.put(Which::Differs, labels, f64::from(u8::from(differs)));
            }
        });
    }
    reading.series
}

impl Reading<'_> {
    fn put(&mut self, which: Which, labels: [&str; 3], value: f64) {
        self.series[which as usize].push(self.families[which as usize].series(&labels, value));
    }

    fn put_with(&mut self, which: Which, labels: [&str; 3], further: &str, value: f64) {
        let [flavour, namespace, name] = labels;
        let labels = [flavour, namespace, name, further];
        self.series[which as usize].push(self.families[which as usize].series(&labels, value));
    }

    #[allow(clippy::cast_precision_loss, reason = "seconds since 1970 and counts are below 2^52")]
    fn health(&mut self, labels: [&str; 3], it: &MemberState) {
        let published = it.member.published();
        // Of one that is paused nothing is published but that.
        if !it.paused {
            self.put(Which::Ready, labels, ready(published));
        }
        if let Some(published) = published {
            self.put(Which::Changed, labels, published.ready.since.as_second() as f64);
        }
        if let Some(last) = it.member.last() {
            self.put(Which::Success, labels, f64::from(u8::from(last.finding.is_ok())));
            let started = last.started.wall.as_millisecond() as f64 / 1000.0;
            self.put(Which::Probed, labels, started);
        }
        for (status, count) in STATUSES.iter().zip(it.transitions).filter(|(_, count)| *count > 0) {
            self.put_with(Which::Transitions, labels, status.as_str(), count as f64);
        }
    }

    fn availability(&mut self, labels: [&str; 3], it: &MemberState, now: Moment) {
        let ratios = it.member.availability(now);
        // The window 30d has the value of 28d, for one release.
        let month = [("28d", ratios.month), ("30d", ratios.month)];
        for (window, ratio) in [("1h", ratios.hour), ("24h", ratios.day)].into_iter().chain(month) {
            if let Some(ratio) = ratio {
                self.put_with(Which::Availability, labels, window, ratio);
            }
        }
        let (totals, sums) = (it.member.totals(), it.member.sums(now.wall));
        self.put(Which::Observed, labels, totals.observed.as_secs_f64());
        self.put(Which::Bad, labels, totals.bad.as_secs_f64());
        self.put(Which::ObservedRatio, labels, observed_ratio(&sums));
        if let Some(objective) = it.policy.objective {
            self.put(Which::Objective, labels, objective.ratio());
            if let Some(left) = objective.budget_left(&sums) {
                self.put(Which::Budget, labels, left);
            }
        }
    }

    fn checks(&mut self, labels: [&str; 3], it: &MemberState) {
        for check in it.member.check_reports() {
            if let Some(status) = check.status {
                self.put_with(Which::Check, labels, &check.name, number(status.status()));
            }
        }
    }

    fn contact(&mut self, labels: [&str; 3], contact: &Contact) {
        let Contact { credential, certificate, endpoints, waived } = contact;
        self.end(Which::Credential, labels, credential.as_ref());
        self.end(Which::Certificate, labels, certificate.as_ref());
        if endpoints.total > 1 {
            let up = endpoints.total.saturating_sub(endpoints.down);
            self.put_with(Which::Endpoints, labels, "up", f64::from(up));
            self.put_with(Which::Endpoints, labels, "down", f64::from(endpoints.down));
        }
        for check in waived.names() {
            self.put_with(Which::Waived, labels, check, 1.0);
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "seconds since 1970 are below 2^52")]
    fn end(&mut self, which: Which, labels: [&str; 3], lifetime: Option<&Lifetime>) {
        if let Some(lifetime) = lifetime {
            self.put(which, labels, lifetime.to.as_second() as f64);
        }
    }
}

fn ready(published: Option<&Published>) -> f64 {
    number(published.map_or(Status::Unknown, |published| published.ready.status))
}

fn number(status: Status) -> f64 {
    match status {
        Status::True => 1.0,
        Status::False => 0.0,
        Status::Unknown => -1.0,
    }
}
