//! [`UpstreamMetrics`]: the metrics of KubeFed's own controller, under its names, for dashboards
//! and alert rules that stand on them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use health::Health;
use metrics::Family;
use parking_lot::Mutex;
use prometheus::proto::Metric;
use prometheus::{Histogram, HistogramOpts, Registry as Metrics};

use crate::engine::{FlavourRegistry, Overview};

/// The buckets of upstream.
const BUCKETS: [f64; 21] = [
    0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0, 22.5, 25.0, 27.5, 30.0,
    50.0, 75.0, 100.0, 1000.0,
];

/// Registered once per process; a restarted controller shows its new members.
#[derive(Clone)]
pub(crate) struct UpstreamMetrics {
    probes: Histogram,
    connections: Histogram,
    shown: Arc<Mutex<Option<Overview>>>,
}

impl UpstreamMetrics {
    /// Registers them; series of each member only if `per_cluster`.
    pub(crate) fn new(metrics: &Metrics, per_cluster: bool) -> Result<Self, prometheus::Error> {
        let histogram = |name: &str, help: &str| {
            let opts = HistogramOpts::new(name, help).buckets(BUCKETS.to_vec());
            metrics::register(metrics, Histogram::with_opts(opts)?)
        };
        let shown = Arc::<Mutex<Option<Overview>>>::default();
        show_members(metrics, per_cluster, Arc::clone(&shown))?;
        Ok(Self {
            probes: histogram(
                "cluster_health_status_duration_seconds",
                "Time of one probe of a kubefed cluster; upstream's is that of a round of all.",
            )?,
            connections: histogram(
                "cluster_client_connection_duration_seconds",
                "Time to open a connection to a kubefed cluster, for every probe that opens one.",
            )?,
            shown,
        })
    }

    /// Shows the members of this run from now on.
    pub(super) fn show(&self, registry: &FlavourRegistry) {
        *self.shown.lock() = Some(registry.overview());
    }

    pub(super) fn probed(&self, took: Duration) {
        self.probes.observe(took.as_secs_f64());
    }

    /// Observes how long a probe took to open connections.
    pub(super) fn connected(&self, attempts: &[probe::Trace]) {
        for trace in attempts.iter().filter(|trace| !trace.reused) {
            let probe::Timings { dns, tcp, proxy, tls, first_byte, .. } = trace.timings;
            // One that was asked something was open.
            if first_byte.is_some() {
                let opening: Duration = [dns, tcp, proxy, tls].into_iter().flatten().sum();
                self.connections.observe(opening.as_secs_f64());
            }
        }
    }
}

/// Upstream counts what it found last; here it is what is published, and it goes with the member.
fn show_members(
    metrics: &Metrics,
    per_cluster: bool,
    shown: Arc<Mutex<Option<Overview>>>,
) -> Result<(), prometheus::Error> {
    let mut families =
        vec![Family::gauge("joined_cluster_total", "Number of total joined clusters.", &[])?];
    if per_cluster {
        families.push(Family::gauge(
            "kubefedcluster_total",
            "Number of total kubefed clusters in a specific state.",
            &["state", "cluster"],
        )?);
    }
    metrics::at_scrape(metrics, families, move |families| {
        let members = shown.lock().as_ref().map(Overview::published_healths);
        members.map_or(Vec::new(), |members| read(families, &members))
    })
}

fn read(families: &[Family], members: &[(Arc<str>, Option<Health>)]) -> Vec<Vec<Metric>> {
    #[allow(clippy::cast_precision_loss, reason = "no process has 2^52 clusters")]
    let joined = families[0].series(&[], members.len() as f64);
    let states = families.get(1).map(|family| states(family, members));
    [vec![joined]].into_iter().chain(states).collect()
}

/// The state of each member. A series has no namespace: members of the same name in several
/// namespaces share one, which shows the worst state.
fn states(family: &Family, members: &[(Arc<str>, Option<Health>)]) -> Vec<Metric> {
    let mut states = BTreeMap::<&str, usize>::new();
    for (key, health) in members {
        let Some(health) = health else { continue };
        let name = key.rsplit_once('/').map_or(&**key, |(_, name)| name);
        let state = state(*health);
        let worst = states.entry(name).or_insert(state);
        *worst = state.max(*worst);
    }
    let mut series = Vec::with_capacity(3 * states.len());
    for (name, state) in states {
        for (number, label) in STATES.into_iter().enumerate() {
            let value = f64::from(u8::from(number == state));
            series.push(family.series(&[label, name], value));
        }
    }
    series
}

/// Labels, the better the earlier.
const STATES: [&str; 3] = ["ready", "notready", "offline"];

/// Number of the label.
fn state(health: Health) -> usize {
    match health {
        Health::Ready => 0,
        Health::NotReady
        | Health::Malformed
        | Health::Unknown
        | Health::HubPartition
        | Health::HeartbeatStopped => 1,
        Health::Unreachable => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_has_one_state_and_of_namesakes_the_worst_is_shown() {
        let family = Family::gauge("kubefedcluster_total", "-", &["state", "cluster"]).unwrap();
        let members = [
            ("ns/a", Some(Health::Ready)),
            ("ns/b", Some(Health::Unknown)),
            ("ns/c", Some(Health::Ready)),
            ("other/c", Some(Health::Unreachable)),
            ("ns/new", None),
        ];
        let members = members.map(|(key, health)| (Arc::from(key), health));
        let shown = states(&family, &members);
        let mut found = Vec::new();
        for series in &shown {
            let label = |name: &str| {
                let pair = series.get_label().iter().find(|pair| pair.name() == name);
                pair.unwrap().value().to_owned()
            };
            if series.get_gauge().get_value() > 0.0 {
                found.push((label("cluster"), label("state")));
            }
        }
        let expected = [("a", "ready"), ("b", "notready"), ("c", "offline")];
        assert_eq!(found, expected.map(|(name, state)| (name.to_owned(), state.to_owned())));
        assert_eq!(shown.len(), 9);
    }

    #[test]
    fn only_connections_that_were_opened_are_timed() {
        let metrics = UpstreamMetrics::new(&Metrics::new(), true).unwrap();
        let ms = |count| Some(Duration::from_millis(count));
        let trace = |reused, tls, first_byte| probe::Trace {
            address: "a".into(),
            path: health::ProbePath::Readyz,
            reused,
            after: Duration::ZERO,
            took: Duration::ZERO,
            timings: probe::Timings { tcp: ms(5), tls, first_byte, ..probe::Timings::default() },
            finding: health::Finding::ok(health::ProbePath::Readyz),
            detail: None,
        };
        let attempts =
            [trace(false, None, None), trace(false, ms(15), ms(1)), trace(true, None, ms(1))];
        metrics.connected(&attempts);
        let (count, sum) =
            (metrics.connections.get_sample_count(), metrics.connections.get_sample_sum());
        assert_eq!((count, (sum * 1000.0).round()), (1, 20.0));
    }
}
