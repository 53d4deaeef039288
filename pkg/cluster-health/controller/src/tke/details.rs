//! [`DetailTask`]: versions, summaries, addresses and Nodes of Clusters, read by workers of their own
//! so that no probe waits for them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use probe::Client;
use resilience::{draw, wall_now};
use tokio::time::{Instant, timeout};
use workqueue::{Next, Reconcile, Retry};

use super::cluster_details::{ClusterDetails, LatestNodes};
use super::node_lists::NodeLists;
use super::summary::{Gathered, NodeTotals, list_pods};
use super::summary_metrics::SummaryMetrics;
use crate::engine::facts::git_version;
use crate::engine::{Contact, MemberId};
use crate::options::TkeOptions;
use crate::paging::{Abort, MemberReader};

/// A version is asked for at most this often.
const VERSION_EVERY: Duration = Duration::from_secs(300);
/// Addresses that probes do not ask are asked at most this often, and each for at most this long.
const AROUND_EVERY: Duration = Duration::from_secs(60);
const ADDRESS_LIMIT: Duration = Duration::from_secs(5);
/// A version.
const READ_LIMIT: Duration = Duration::from_secs(30);
const VERSION_MAX: usize = 16 << 10;

/// Something to read from a Cluster apart from its probes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DetailTask {
    detail: Detail,
    cluster: MemberId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Detail {
    Version,
    Summary,
    /// The addresses that probes do not ask while another one answers them.
    Addresses,
    /// The Nodes, where a Cluster is ready only with them.
    Nodes,
}

impl fmt::Display for DetailTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = match self.detail {
            Detail::Version => "version",
            Detail::Summary => "summary",
            Detail::Addresses => "addresses",
            Detail::Nodes => "nodes",
        };
        write!(f, "{detail} of {}", self.cluster.key)
    }
}

/// The tasks that are due after a successful probe.
pub(crate) fn after_probe(
    cluster: &MemberId,
    entry: &mut ClusterDetails,
    contact: Option<Contact>,
    options: &TkeOptions,
) -> Vec<DetailTask> {
    let mut details = Vec::new();
    let now = Instant::now();
    if entry.version_asked.is_none_or(|asked| now.duration_since(asked) >= VERSION_EVERY) {
        entry.version_asked = Some(now);
        details.push(Detail::Version);
    }
    let others = contact.is_some_and(|contact| contact.endpoints.total > 1);
    if others && entry.looked_around.is_none_or(|at| now.duration_since(at) >= AROUND_EVERY) {
        entry.looked_around = Some(now);
        details.push(Detail::Addresses);
    }
    if !options.summary_interval.is_zero() && !std::mem::replace(&mut entry.summary_planned, true) {
        details.push(Detail::Summary);
    }
    if options.ready_requires_nodes {
        details.push(Detail::Nodes);
    }
    let task = |detail| DetailTask { detail, cluster: cluster.clone() };
    details.into_iter().map(task).collect()
}

/// Carries out the tasks.
pub(crate) struct DetailReconciler {
    pub(crate) lists: Arc<NodeLists>,
    pub(crate) metrics: SummaryMetrics,
}

impl Reconcile for DetailReconciler {
    type Key = DetailTask;

    async fn reconcile(&self, task: &DetailTask) -> Result<Next, Retry> {
        let Some(life) = self.lists.registry.life(&task.cluster) else { return Ok(Next::Done) };
        Ok(life.run_until_cancelled(self.run_task(task)).await.unwrap_or(Next::Done))
    }
}

impl DetailReconciler {
    async fn run_task(&self, DetailTask { detail, cluster }: &DetailTask) -> Next {
        match detail {
            Detail::Version => self.version(cluster).await,
            Detail::Summary => return self.summary(cluster).await,
            Detail::Addresses => {
                if let Some(client) = self.lists.details.connections.client(cluster) {
                    self.lists.prober.look_around(&client, ADDRESS_LIMIT).await;
                }
            }
            Detail::Nodes => self.nodes(cluster).await,
        }
        Next::Done
    }

    async fn version(&self, cluster: &MemberId) {
        let Some((client, target)) = self.lists.details.target(cluster) else { return };
        let mut reader = self.lists.prober.reader(&client);
        let Ok(read) = reader.get("/version", VERSION_MAX, READ_LIMIT).await else { return };
        let now = wall_now();
        self.lists.details.still(cluster, &target, |entry| match read.status {
            StatusCode::OK => {
                let version = git_version(&read.body).and_then(|text| parse_version(&text));
                entry.facts.versioned(version, now);
            }
            refused => entry.facts.version_refused(refused, now),
        });
        self.lists.registry.facts_changed(cluster);
    }

    async fn nodes(&self, cluster: &MemberId) {
        let Some((client, target)) = self.lists.details.target(cluster) else { return };
        let cadence = self.lists.options.policy.cadence;
        // A list that another task made since the last probe is new enough.
        let max_age = cadence.confirm.min(cadence.period) / 2;
        // Errors are taken in where the list is read.
        let _listed = self.lists.totals(cluster, &client, target, max_age).await;
    }

    async fn summary(&self, cluster: &MemberId) -> Next {
        let target = self.lists.details.target(cluster);
        // What is published decides: one probe that failed ends nothing.
        let is_ready = self.lists.registry.is_ready(cluster);
        let goes_on = self.lists.details.known(cluster, |entry| {
            entry.summary_planned = is_ready && target.is_some();
            entry.summary_planned
        });
        let (Some(true), Some((client, target))) = (goes_on, target) else {
            // The next good probe plans it again.
            return Next::Done;
        };
        let began = Instant::now();
        let gathered = self.gather(cluster, &client, Arc::clone(&target)).await;
        self.metrics.gathered(began.elapsed(), gathered.as_ref().err());
        let now = wall_now();
        self.lists
            .details
            .still(cluster, &target, |entry| entry.facts.gathered(gathered.as_ref(), now));
        self.lists.registry.facts_changed(cluster);
        let interval = self.lists.options.summary_interval;
        Next::After(interval.mul_f64(0.9 + 0.2 * draw()))
    }

    async fn gather(
        &self,
        cluster: &MemberId,
        client: &Arc<Client>,
        target: LatestNodes,
    ) -> Result<Gathered, Abort> {
        let limit = self.lists.details.with(cluster, |entry| entry.summary_limit);
        let gathering = async {
            // A list that was made for the Machines will do.
            let max_age = self.lists.options.machine_period;
            let nodes = self.lists.totals(cluster, client, target, max_age).await?;
            let mut member = MemberReader::new(&self.lists.prober, client);
            let pods = list_pods(&mut member, self.lists.options.summary_page_size).await?;
            Ok(Gathered { nodes: NodeTotals::clone(&nodes), pods })
        };
        timeout(limit, gathering).await.unwrap_or_else(|_| {
            self.lists.details.known(cluster, ClusterDetails::summary_timed_out);
            let why = format!("the lists were not complete within {limit:?}");
            Err(Abort::Failed(why.into()))
        })
    }
}

/// `major.minor.patch` of a version as vendors write it; `None` when it cannot be parsed.
fn parse_version(text: &str) -> Option<String> {
    let text = text.trim();
    let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
    let (major, minor, patch) = (parts.next()?, parts.next(), parts.next());
    let patch = match patch {
        // What follows the number names a vendor's build.
        Some(patch) => {
            let (number, suffix) = patch.split_at(patch.find(['-', '+']).unwrap_or(patch.len()));
            suffix
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-+.".contains(&byte))
                .then_some(number)?
        }
        None => "0",
    };
    let [major, minor, patch] = [number(major)?, number(minor.unwrap_or("0"))?, number(patch)?];
    Some(format!("{major}.{minor}.{patch}"))
}

fn number(text: &str) -> Option<u64> {
    // `u64::from_str` takes a plus sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use probe::{Address, Inputs, WaivedChecks};
    use tokio::time::sleep;

    use super::*;
    use crate::engine::tests::scene::{Answer, Scene, cluster};
    use crate::tke::cluster_details::{DetailStore, SUMMARY_LIMIT_MAX};
    use crate::tke::machines::tests::Machines;
    use crate::tke::testing::{connect, options};

    /// Gathers from a member that cannot be reached.
    fn tasks(machines: &Machines, own: &MemberId) -> DetailReconciler {
        let lists = Arc::new(machines.lists());
        let addresses = vec![Address::parse("https://127.0.0.1:1").unwrap()];
        let tls = WaivedChecks { everything: true, ..WaivedChecks::default() };
        let inputs = Inputs { addresses, tls, ..Inputs::default() };
        let client = lists.prober.client(&inputs).map(Arc::new);
        machines.details.with(own, |_| {});
        connect(&machines.details.connections, own, client);
        let metrics = SummaryMetrics::new(&prometheus::Registry::new(), false).unwrap();
        DetailReconciler { lists, metrics }
    }

    #[tokio::test(start_paused = true)]
    async fn summaries_follow_what_is_published_and_not_the_last_probe() {
        let machines = Machines::with(Scene::new(0), &[]);
        let own = cluster("cls-1", 1);
        let tasks = tasks(&machines, &own);
        machines.engine.add("cls-1", 1);
        sleep(Duration::from_secs(15)).await;
        machines.details.with(&own, |entry| entry.answers = false);
        let goes_on = tasks.summary(&own).await;
        assert!(matches!(goes_on, Next::After(_)), "one probe failed, and it is ready yet");

        machines.engine.members.set("cls-1", Answer::Failing);
        sleep(Duration::from_secs(60)).await;
        machines.details.with(&own, |entry| entry.answers = true);
        assert!(
            matches!(tasks.summary(&own).await, Next::Done),
            "one probe does not make it ready"
        );
    }

    #[test]
    fn a_summary_that_takes_too_long_gets_more_time_and_no_end_of_it() {
        let (details, own) = (DetailStore::default(), cluster("cls-1", 1));
        let limits = (0..4).map(|_| {
            details.with(&own, |entry| {
                entry.summary_timed_out();
                entry.summary_limit
            })
        });
        let limits: Vec<_> = limits.map(|limit| limit.as_secs()).collect();
        assert_eq!(limits, [120, 240, 300, 300]);
        assert_eq!(SUMMARY_LIMIT_MAX.as_secs(), 300);
    }

    #[test]
    fn nodes_that_a_cluster_has_to_have_are_listed_after_each_probe_whatever_else_is_off() {
        let cluster = MemberId { uid: "u1".into(), key: "cls-1".into() };
        let off =
            [("cluster-health-summary-interval", "0s"), ("cluster-health-machine-period", "0s")];
        let required = [off[0], off[1], ("ready-requires-nodes", "true")];
        for (flags, expected) in [(&off[..], 0), (&required[..], 2)] {
            let (details, options) = (DetailStore::default(), options(flags));
            let probes = 0..2;
            let tasks = probes.flat_map(|_| {
                details.with(&cluster, |entry| after_probe(&cluster, entry, None, &options))
            });
            let nodes = tasks.filter(|task| task.detail == Detail::Nodes).count();
            assert_eq!(nodes, expected, "{flags:?}");
        }
    }
}

#[cfg(test)]
mod version_tests {
    use super::*;

    #[test]
    fn versions_of_all_vendors_come_to_three_numbers() {
        let rows = [
            ("v1.36.3", "1.36.3"),
            ("1.36.3", "1.36.3"),
            (" v1.14.3-tke.3\n", "1.14.3"),
            ("v1.18.8-aliyun.1", "1.18.8"),
            ("v1.20.4+k3s1", "1.20.4"),
            ("v1.21.0-beta.1.23+abc-dirty", "1.21.0"),
            ("v1.19", "1.19.0"),
            ("v1", "1.0.0"),
            ("v01.02.003", "1.2.3"),
        ];
        for (text, version) in rows {
            assert_eq!(parse_version(text).as_deref(), Some(version), "{text}");
        }
    }

    #[test]
    fn what_is_no_version_is_told_apart() {
        for text in [
            "",
            "v",
            "vv1.2.3",
            "1.2-rc.1",
            "1.2+k3s",
            "1..3",
            "1.2.",
            "1.2.x",
            "1.+2.3",
            "a.b.c",
            "1.2.3 or so",
            "1.2.99999999999999999999",
            "-1.2.3",
            "1.2.3-\u{e4}",
        ] {
            assert_eq!(parse_version(text), None, "{text:?}");
        }
    }
}
