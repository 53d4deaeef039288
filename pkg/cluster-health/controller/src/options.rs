//! From flag values to [`Options`]: every rule of the start, without I/O.

use std::collections::BTreeSet;
use std::time::Duration;

use flags::{Flag, GoDuration, Problem, Values};
use health::{
    Cadence, Damping, EvidenceSource, GuardPolicy, Objective, Policy, SHARD_INHERITED, Thresholds,
};
use resilience::Rate;
use transport::DialPolicy;

use crate::api::is_name;
use crate::cluster_profile::options::ClusterProfileOptions;
use crate::engine::{Limits, Reference};
use crate::flags::{
    ALLOW_PLAINTEXT_ENDPOINTS, AUDIT, BEATS_NAMESPACE, CAPI_NAMESPACES, CHECKS_CONFIG,
    CONFIRM_INTERVAL, CONNECTION_MAX_AGE, FAILURE_THRESHOLD, FLAP_MIN_SUCCESS, FLAP_TRANSITIONS,
    FLAP_WINDOW, FLAVOURS, GUARD, GUARD_ENDPOINTS, GUARD_HOLD, GUARD_INTERVAL, GUARD_MIN,
    GUARD_RATIO, GUARD_TIMEOUT, HEALTHCHECK_PERIOD, HEARTBEAT_INTERVAL, IDLE_TIMEOUT, JITTER,
    KUBEFED_CONFIG, KUBEFED_NAMESPACE, MACHINE_PERIOD, MACHINE_REQUIRE_NODE_READY,
    MAX_CONCURRENT_PROBES, NODES_READY_MIN_RATIO, OBJECTIVE, PER_CLUSTER_METRICS, PERIOD,
    RANDOM_PERIOD_MAX, RANDOM_PERIOD_MIN, READY_REQUIRES_NODES, SHARDS, SHARDS_NAMESPACE,
    STALE_AFTER, SUCCESS_THRESHOLD, SUMMARY_CONCURRENCY, SUMMARY_INTERVAL, SUMMARY_PAGE_SIZE,
    TIMEOUT, TKE_FAILURE_THRESHOLD, TKE_INSECURE_WHEN_NO_CA, TKE_SUCCESS_THRESHOLD, TKE_TIMEOUT,
    UPSTREAM_METRICS, WRITE_BURST, WRITE_QPS, ZONES, dial_policy,
};
use crate::shared_flavour::SharedOptions;

/// Changes that damping remembers of each cluster at most.
const FLAP_TRANSITIONS_MAX: i32 = 100;

/// More replicas would read their leases more often than it is worth.
const SHARDS_MAX: i32 = 64;

/// More reference endpoints would tell no more about the network.
const GUARD_ENDPOINTS_MAX: usize = 16;

/// The shortest period and confirm interval: thousands of clusters, probed more often, would be an
/// attack.
pub(crate) const PERIOD_MIN: Duration = Duration::from_secs(1);
/// The shortest timeout: with less, every distant cluster would fail.
pub(crate) const TIMEOUT_MIN: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub limits: Limits,
    /// Whether each cluster has series of its own.
    pub per_cluster_metrics: bool,
    /// Whether there are KubeFed's own metrics.
    pub upstream_metrics: bool,
    /// `None` when there is no guard.
    pub guard: Option<GuardOptions>,
    /// Options of the clients of members, for all flavours.
    pub members: MemberOptions,
    /// `None` when that flavour is not asked for.
    pub kubefed: Option<KubeFedOptions>,
    /// `None` when that flavour is not asked for.
    pub tke: Option<TkeOptions>,
    /// `None` when that flavour is not asked for.
    pub cluster_profile: Option<ClusterProfileOptions>,
    /// `None` when that flavour is not asked for.
    pub cluster_api: Option<SharedOptions>,
}

/// The guard against outages of this process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GuardOptions {
    pub policy: GuardPolicy,
    pub endpoints: Vec<Reference>,
}

/// How members are talked to, in every flavour.
#[derive(Clone, Debug)]
pub(crate) struct MemberOptions {
    /// Age after which a connection is replaced; zero for no reuse.
    pub connection_max_age: Duration,
    /// How long a connection may carry nothing.
    pub idle_timeout: Duration,
    /// Whether tokens may be sent over plain http.
    pub allow_plaintext: bool,
    /// The addresses that may be dialled.
    pub policy: DialPolicy,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KubeFedOptions {
    /// Where its objects are; `None` for everywhere.
    pub namespace: Option<String>,
    /// Name of the KubeFedConfig that wins over `policy`; `None` when it is not watched.
    pub config: Option<String>,
    /// The policy of the flags.
    pub policy: Policy,
    /// Whether zones and region are written.
    pub zones: bool,
}

/// Judges the values: what to run with, and what to say in the log.
///
/// # Errors
/// Every broken rule, each naming its flag and the cause.
pub(crate) fn judge(values: &Values) -> Result<(Options, Vec<String>), Vec<Problem>> {
    let mut judge = Judge { values, problems: Vec::new() };
    let flavours = judge.flavours();
    let limits = Limits {
        concurrent_probes: judge.count(&MAX_CONCURRENT_PROBES, 0, i32::MAX),
        write_rate: judge.write_rate(),
        shards: judge.count(&SHARDS, 1, SHARDS_MAX),
        shards_namespace: judge.shards_namespace(),
        audit: values.get(&AUDIT),
        beats_namespace: judge.beats_namespace(),
        checks_config: judge.checks_config(),
    };
    judge.audit_alone(&limits);
    let policy = judge.kubefed_policy();
    let non_empty = |text: String| (!text.is_empty()).then_some(text);
    let kubefed = KubeFedOptions {
        namespace: non_empty(values.get(&KUBEFED_NAMESPACE)),
        config: non_empty(values.get(&KUBEFED_CONFIG)),
        policy,
        zones: values.get(&ZONES),
    };
    let tke = judge.tke(values, &policy);
    let profiles = ClusterProfileOptions::judge(values, policy, &mut judge.problems);
    let capi = SharedOptions::judge(values, &CAPI_NAMESPACES, policy, &mut judge.problems);
    let members = MemberOptions {
        connection_max_age: judge.span(&CONNECTION_MAX_AGE),
        idle_timeout: judge.positive(&IDLE_TIMEOUT),
        allow_plaintext: values.get(&ALLOW_PLAINTEXT_ENDPOINTS),
        policy: dial_policy(values, &mut judge.problems),
    };
    let guard = judge.guard();
    let options = Options {
        limits,
        guard: values.get(&GUARD).then_some(guard),
        per_cluster_metrics: values.get(&PER_CLUSTER_METRICS),
        upstream_metrics: values.get(&UPSTREAM_METRICS),
        members,
        kubefed: flavours.contains("kubefed").then_some(kubefed),
        tke: flavours.contains("tke").then_some(tke),
        cluster_profile: flavours.contains("clusterprofile").then_some(profiles),
        cluster_api: flavours.contains("capi").then_some(capi),
    };
    if judge.problems.is_empty() {
        let warnings = warnings(values, &options);
        Ok((options, warnings))
    } else {
        Err(judge.problems)
    }
}

/// Warnings about the flavours in use, and about flags without effect.
fn warnings(values: &Values, options: &Options) -> Vec<String> {
    let unused = [&RANDOM_PERIOD_MIN, &RANDOM_PERIOD_MAX]
        .into_iter()
        .filter(|flag| values.is_set(flag.name()))
        .map(|flag| format!("{flag} has no effect: {JITTER} spreads the probes"));
    let kubefed = options.kubefed.as_ref().map(|it| (it.policy, [&TIMEOUT, &PERIOD]));
    let tke = options.tke.as_ref().map(|it| (it.policy, [&TKE_TIMEOUT, &HEALTHCHECK_PERIOD]));
    let both = kubefed.into_iter().chain(tke);
    let odd = both.flat_map(|(policy, flags)| odd(&policy, flags));
    unused.chain(odd).collect()
}

/// Settings that are allowed and are likely mistakes.
fn odd(policy: &Policy, [timeout_flag, period_flag]: [&Flag<GoDuration>; 2]) -> Vec<String> {
    let Cadence { period, timeout, .. } = policy.cadence;
    let (stale_after, least) = (policy.stale_after, policy.stale_after_min());
    let long = (timeout > period).then(|| {
        format!(
            "{timeout_flag}={timeout:?} is longer than {period_flag}={period:?}: clusters \
             that do not answer are probed every {timeout:?}"
        )
    });
    let short = (!stale_after.is_zero() && stale_after < least).then(|| {
        format!(
            "--cluster-health-stale-after={stale_after:?} is shorter than the time between two \
             probes of a cluster that does not answer, with {period_flag}={period:?}: \
             {least:?} is used"
        )
    });
    long.into_iter().chain(short).collect()
}

/// Reads values and gathers what is wrong with them.
pub(crate) struct Judge<'a> {
    values: &'a Values,
    problems: Vec<Problem>,
}

impl Judge<'_> {
    /// Replicas that share clusters write leases, and an audit writes nothing.
    fn audit_alone(&mut self, limits: &Limits) {
        if limits.audit && limits.shards > 1 {
            let why = "cannot be combined with --cluster-health-audit, which writes nothing, not \
                even Leases";
            self.problems.push(SHARDS.problem(why));
        }
    }

    fn shards_namespace(&mut self) -> String {
        let namespace = self.values.get(&SHARDS_NAMESPACE);
        if namespace.is_empty() {
            self.problems.push(SHARDS_NAMESPACE.problem("it is empty"));
        }
        namespace
    }

    fn beats_namespace(&mut self) -> Option<String> {
        let namespace = self.values.get(&BEATS_NAMESPACE);
        if !namespace.is_empty() && !is_name(&namespace) {
            let why = format!("{namespace:?} is not the name of a namespace");
            self.problems.push(BEATS_NAMESPACE.problem(why));
        }
        (!namespace.is_empty()).then_some(namespace)
    }

    fn checks_config(&mut self) -> Option<String> {
        let key = self.values.get(&CHECKS_CONFIG);
        let is_key = |(namespace, name): (&str, &str)| is_name(namespace) && is_name(name);
        if !key.is_empty() && !key.split_once('/').is_some_and(is_key) {
            let why = format!("{key:?} is not NAMESPACE/NAME");
            self.problems.push(CHECKS_CONFIG.problem(why));
        }
        (!key.is_empty()).then_some(key)
    }

    fn kubefed_policy(&mut self) -> Policy {
        let (period, timeout) = (self.interval(&PERIOD), self.timeout(&TIMEOUT));
        let thresholds = self.thresholds(&FAILURE_THRESHOLD, &SUCCESS_THRESHOLD);
        self.policy(period, timeout, thresholds)
    }

    /// The policy of one flavour: its own values, and those that all flavours share.
    fn policy(&mut self, period: Duration, timeout: Duration, thresholds: Thresholds) -> Policy {
        let jitter = self.fraction(&JITTER, 0.0, 0.5);
        Policy {
            cadence: Cadence { period, timeout, confirm: self.interval(&CONFIRM_INTERVAL), jitter },
            thresholds,
            damping: Damping {
                transitions: self.number(&FLAP_TRANSITIONS, 0, FLAP_TRANSITIONS_MAX),
                window: self.positive(&FLAP_WINDOW),
                min_success: self.number(&FLAP_MIN_SUCCESS, 1, i32::MAX),
            },
            stale_after: self.span(&STALE_AFTER),
            inherited_after: if self.values.get(&SHARDS) > 1 {
                SHARD_INHERITED
            } else {
                Duration::ZERO
            },
            heartbeat: self.span(&HEARTBEAT_INTERVAL),
            objective: self.objective(),
            evidence: EvidenceSource::Both,
        }
    }

    /// `shared` is the policy of another flavour, with what all have in common.
    fn tke(&mut self, values: &Values, shared: &Policy) -> TkeOptions {
        TkeOptions {
            policy: self.tke_policy(shared),
            secret_namespace: Some(values.get(&KUBEFED_NAMESPACE)).filter(|name| !name.is_empty()),
            summary_interval: self.span(&SUMMARY_INTERVAL),
            summary_concurrency: self.count(&SUMMARY_CONCURRENCY, 1, 1_000),
            summary_page_size: self.count(&SUMMARY_PAGE_SIZE, 1, 5_000),
            nodes_ready_min_ratio: self.fraction(&NODES_READY_MIN_RATIO, 0.0, 1.0),
            ready_requires_nodes: values.get(&READY_REQUIRES_NODES),
            machine_period: self.machine_period(values.get(&AUDIT)),
            machine_require_node_ready: values.get(&MACHINE_REQUIRE_NODE_READY),
            insecure_without_ca: values.get(&TKE_INSECURE_WHEN_NO_CA),
        }
    }

    fn tke_policy(&mut self, shared: &Policy) -> Policy {
        let period = self.interval(&HEALTHCHECK_PERIOD);
        let timeout = self.timeout(&TKE_TIMEOUT);
        let thresholds = self.thresholds(&TKE_FAILURE_THRESHOLD, &TKE_SUCCESS_THRESHOLD);
        let cadence = Cadence { period, timeout, ..shared.cadence };
        Policy { cadence, thresholds, ..*shared }
    }

    /// An audit has nothing to do with Machines: it compares Clusters.
    fn machine_period(&mut self, audit: bool) -> Duration {
        if self.values.get(&MACHINE_PERIOD).nanos() == 0 {
            return Duration::ZERO;
        }
        let period = self.interval(&MACHINE_PERIOD);
        if audit { Duration::ZERO } else { period }
    }

    fn objective(&mut self) -> Option<Objective> {
        let judged = Objective::new(self.values.get(&OBJECTIVE));
        judged.unwrap_or_else(|why| {
            self.problems.push(OBJECTIVE.problem(why));
            None
        })
    }

    fn guard(&mut self) -> GuardOptions {
        let ratio = self.fraction(&GUARD_RATIO, 0.1, 1.0);
        let (interval, timeout) = (self.interval(&GUARD_INTERVAL), self.timeout(&GUARD_TIMEOUT));
        if timeout > interval {
            let why =
                format!("{timeout:?} is longer than --cluster-health-guard-interval={interval:?}");
            self.problems.push(GUARD_TIMEOUT.problem(why));
        }
        let texts = self.values.get(&GUARD_ENDPOINTS);
        if texts.len() > GUARD_ENDPOINTS_MAX {
            let why = format!("{} are more than {GUARD_ENDPOINTS_MAX}", texts.len());
            self.problems.push(GUARD_ENDPOINTS.problem(why));
        }
        let mut endpoints = Vec::new();
        for (text, number) in texts.iter().zip(1..) {
            match Reference::parse(text) {
                Ok(reference) => endpoints.push(reference),
                // Its text may hold a password.
                Err(error) => {
                    let why = format!("endpoint {number} cannot be used: {error}");
                    self.problems.push(GUARD_ENDPOINTS.problem(why));
                }
            }
        }
        let min = self.count(&GUARD_MIN, 2, i32::MAX);
        let hold = self.interval(&GUARD_HOLD);
        GuardOptions { policy: GuardPolicy { ratio, min, interval, timeout, hold }, endpoints }
    }

    fn flavours(&mut self) -> BTreeSet<&'static str> {
        const BUILT: [&str; 4] = ["kubefed", "tke", "clusterprofile", "capi"];
        /// Those whose objects no other program owns.
        const AUTO: [&str; 2] = ["kubefed", "tke"];
        let mut chosen = BTreeSet::new();
        for name in self.values.get(&FLAVOURS) {
            match BUILT.into_iter().find(|built| *built == name) {
                Some(built) => drop(chosen.insert(built)),
                None if name == "auto" => chosen.extend(AUTO),
                None => self.problems.push(FLAVOURS.problem(format!(
                    "{name:?} is not part of this build; use auto or a list of {}",
                    BUILT.join(", ")
                ))),
            }
        }
        chosen
    }

    /// `None` for no limit.
    fn write_rate(&mut self) -> Option<Rate> {
        let per_second = self.values.get(&WRITE_QPS);
        let burst = self.number(&WRITE_BURST, 1, i32::MAX);
        if per_second.is_nan() || per_second == 0.0 {
            let text = format!("{per_second} would stop all writes; use -1 for no limit");
            self.problems.push(WRITE_QPS.problem(text));
        }
        (per_second > 0.0).then_some(Rate { per_second, burst })
    }

    fn interval(&mut self, flag: &Flag<GoDuration>) -> Duration {
        self.at_least(flag, PERIOD_MIN)
    }

    fn timeout(&mut self, flag: &Flag<GoDuration>) -> Duration {
        self.at_least(flag, TIMEOUT_MIN)
    }

    fn at_least(&mut self, flag: &Flag<GoDuration>, least: Duration) -> Duration {
        let value = self.values.get(flag);
        if value.to_std() < least {
            self.problems.push(flag.problem(format!("{value} is less than {least:?}")));
        }
        value.to_std()
    }

    /// A span of time that cannot be nothing.
    fn positive(&mut self, flag: &Flag<GoDuration>) -> Duration {
        let value = self.values.get(flag);
        if value.nanos() <= 0 {
            self.problems.push(flag.problem(format!("{value} is not greater than 0")));
        }
        value.to_std()
    }

    /// A span of time whose zero has a meaning.
    fn span(&mut self, flag: &Flag<GoDuration>) -> Duration {
        let value = self.values.get(flag);
        if value.nanos() < 0 {
            self.problems.push(flag.problem(format!("{value} is less than 0")));
        }
        value.to_std()
    }

    fn fraction(&mut self, flag: &Flag<f64>, least: f64, most: f64) -> f64 {
        let value = self.values.get(flag);
        if !(least..=most).contains(&value) {
            self.problems.push(flag.problem(format!("{value} is not between {least} and {most}")));
        }
        value
    }

    fn thresholds(&mut self, failure: &Flag<i64>, success: &Flag<i64>) -> Thresholds {
        let failure = self.number(failure, 1, i32::MAX);
        Thresholds { failure, success: self.number(success, 1, i32::MAX) }
    }

    fn number(&mut self, flag: &Flag<i64>, least: i32, most: i32) -> u32 {
        let value = self.values.get(flag);
        if !(i64::from(least)..=i64::from(most)).contains(&value) {
            let why = format!("{value} is not between {least} and {most}");
            self.problems.push(flag.problem(why));
        }
        u32::try_from(value).unwrap_or_default()
    }

    fn count(&mut self, flag: &Flag<i64>, least: i32, most: i32) -> usize {
        usize::try_from(self.number(flag, least, most)).unwrap_or(usize::MAX)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TkeOptions {
    /// How Clusters are watched over.
    pub policy: Policy,
    /// Namespace of the Secrets that ClusterCredentials refer to; `None` for all.
    pub secret_namespace: Option<String>,
    /// Between two summaries of a cluster; zero for none.
    pub summary_interval: Duration,
    /// Summaries under way at once, and lists of Nodes for Machines.
    pub summary_concurrency: usize,
    /// Objects in a page.
    pub summary_page_size: usize,
    /// The share of Nodes that has to be ready.
    pub nodes_ready_min_ratio: f64,
    /// Whether a cluster with too few ready Nodes is published as failing.
    pub ready_requires_nodes: bool,
    /// Between two looks at the Machines of a cluster; zero for none.
    pub machine_period: Duration,
    /// Whether a Machine whose Node is not ready fails.
    pub machine_require_node_ready: bool,
    /// Whether certificates of clusters without a CA are not checked.
    pub insecure_without_ca: bool,
}

impl TkeOptions {
    /// From one list of Nodes to the one that confirms what it says of a Machine.
    pub(crate) fn machine_confirm(&self) -> Duration {
        self.policy.cadence.confirm.min(self.machine_period)
    }
}

#[cfg(test)]
mod tests;
