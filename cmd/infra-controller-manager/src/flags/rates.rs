//! Typed settings from flag values: client rates, leader election, TLS, metric labels, and the feature
//! gates that this program knows.

use std::collections::{BTreeMap, BTreeSet};

use election::ElectionConfig;
use flags::controllers::Known;
use flags::syntax::composite::DEFAULT_COMPONENT;
use flags::{Problem, Values};
use serving::TlsChoice;

use super::table::generic::{
    CONTROLLER_QPS, DRY_RUN, EVENT_BURST, EVENT_QPS, FEATURE_GATES, KUBE_API_BURST, KUBE_API_QPS,
    LEADER_ELECT_LEASE_DURATION, LEADER_ELECT_RELEASE_ON_EXIT, LEADER_ELECT_RENEW_DEADLINE,
    LEADER_ELECT_RESOURCE_NAME, LEADER_ELECT_RESOURCE_NAMESPACE, LEADER_ELECT_RETRY_PERIOD,
};
use super::table::serving::{TLS_CIPHER_SUITES, TLS_CURVE_PREFERENCES, TLS_MIN_VERSION};

/// The limit of each controller's client: requests per second (negative means unlimited) and
/// requests that may go at once.
pub fn work_rate(values: &Values) -> (f64, u32) {
    (values.get(&KUBE_API_QPS), burst(values.get(&KUBE_API_BURST)))
}

/// The limit of the event client; what is 0, as by default, follows [`work_rate`].
pub fn event_rate(values: &Values) -> (f64, u32) {
    let (work_qps, work_burst) = work_rate(values);
    let qps = values.get(&EVENT_QPS);
    let given = burst(values.get(&EVENT_BURST));
    (if qps == 0.0 { work_qps } else { qps }, if given == 0 { work_burst } else { given })
}

/// `--controller-qps`: rates of single controllers, by canonical name.
pub fn own_rates(
    values: &Values,
    known: &Known,
) -> Result<BTreeMap<&'static str, (f64, u32)>, Vec<Problem>> {
    let (mut rates, mut problems) = (BTreeMap::new(), Vec::new());
    for (name, text) in values.get(&CONTROLLER_QPS) {
        let controller = known.resolve(&name);
        match (controller, rate(&text)) {
            (Some(controller), Some(rate)) => {
                rates.insert(controller, rate);
            }
            (None, _) => {
                let hosted = known.names().join(", ");
                let rule = format!("there is no controller {name:?}; this program hosts: {hosted}");
                problems.push(CONTROLLER_QPS.problem(rule));
            }
            (_, None) => {
                let rule = format!(
                    "{text:?} for {name} is not QPS:BURST, such as 50:100; -1:0 is unlimited"
                );
                problems.push(CONTROLLER_QPS.problem(rule));
            }
        }
    }
    if problems.is_empty() { Ok(rates) } else { Err(problems) }
}

/// Reads `QPS:BURST`: a positive rate with at least one at once, or a negative one without a limit.
fn rate(text: &str) -> Option<(f64, u32)> {
    let (qps, burst) = text.split_once(':')?;
    let (qps, burst): (f64, u32) = (qps.trim().parse().ok()?, burst.trim().parse().ok()?);
    let limits = qps.is_finite() && qps > 0.0 && burst > 0;
    (limits || qps < 0.0).then_some((qps, burst))
}

/// A negative burst has no effect, since validation refuses it with a positive rate.
fn burst(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// The lease and timings for the candidate `identity`. A negative duration counts as zero, which
/// [`ElectionConfig::validate`] refuses.
pub fn election_config(values: &Values, identity: String) -> ElectionConfig {
    ElectionConfig {
        namespace: values.get(&LEADER_ELECT_RESOURCE_NAMESPACE),
        name: lease_name(values),
        identity,
        lease_duration: values.get(&LEADER_ELECT_LEASE_DURATION).to_std(),
        renew_deadline: values.get(&LEADER_ELECT_RENEW_DEADLINE).to_std(),
        retry_period: values.get(&LEADER_ELECT_RETRY_PERIOD).to_std(),
    }
}

/// A dry run has its own Lease, because it runs next to the working program.
fn lease_name(values: &Values) -> String {
    let name = values.get(&LEADER_ELECT_RESOURCE_NAME);
    let own = values.get(&DRY_RUN) && !values.is_set(LEADER_ELECT_RESOURCE_NAME.name());
    if own { format!("{name}-dry-run") } else { name }
}

/// TLS versions, ciphers and curves of the HTTPS server.
pub fn tls_choice(values: &Values) -> TlsChoice {
    TlsChoice::new(
        &values.get(&TLS_MIN_VERSION),
        &values.get(&TLS_CIPHER_SUITES),
        &values.get(&TLS_CURVE_PREFERENCES),
    )
}

/// By metric and label the values that this may have.
type LabelValues = BTreeMap<(String, String), BTreeSet<String>>;

/// Reads pairs of `metric,label` and `value,value`.
pub fn label_values(
    pairs: impl IntoIterator<Item = (String, String)>,
) -> Result<LabelValues, String> {
    let mut all = LabelValues::new();
    for (of, values) in pairs {
        let parts = of.split_once(',').map(|(metric, label)| (metric.trim(), label.trim()));
        let is_whole = |(metric, label): &(&str, &str)| {
            !metric.is_empty() && !label.is_empty() && !label.contains(',')
        };
        let Some((metric, label)) = parts.filter(is_whole) else {
            return Err(format!(
                "{of:?} does not name a metric and one of its labels, as metric,label"
            ));
        };
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        all.insert((metric.to_owned(), label.to_owned()), values);
    }
    Ok(all)
}

pub(super) const ALL_ALPHA: &str = "AllAlpha";
pub(super) const ALL_BETA: &str = "AllBeta";
pub(super) const COORDINATED_ELECTION: &str = "CoordinatedLeaderElection";
pub(super) const FLAGZ: &str = "ComponentFlagz";
pub(super) const STATUSZ: &str = "ComponentStatusz";
pub(super) const LOGGING_ALPHA: &str = "LoggingAlphaOptions";
pub(super) const LOGGING_BETA: &str = "LoggingBetaOptions";
const RELEASE_ON_EXIT: &str = "ControllerManagerReleaseLeaderElectionLockOnExit";

/// A gate whose value changes what this program does.
struct KnownGate {
    name: &'static str,
    /// The umbrella gate that sets it when it is not set itself.
    umbrella: &'static str,
    default: bool,
}

const KNOWN: [KnownGate; 5] = [
    // Off upstream; ours is on, since a lease left held costs the successor 15 s.
    KnownGate { name: RELEASE_ON_EXIT, umbrella: ALL_ALPHA, default: true },
    KnownGate { name: FLAGZ, umbrella: ALL_BETA, default: true },
    KnownGate { name: STATUSZ, umbrella: ALL_BETA, default: true },
    KnownGate { name: LOGGING_ALPHA, umbrella: ALL_ALPHA, default: false },
    KnownGate { name: LOGGING_BETA, umbrella: ALL_BETA, default: true },
];

/// Whether a gate of [`KNOWN`] is on: its own setting, else its umbrella's, else the default.
pub(super) fn enabled(values: &Values, name: &str) -> bool {
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else { return false };
    setting(values, name).or_else(|| setting(values, known.umbrella)).unwrap_or(known.default)
}

/// The user's own setting of a gate.
pub(super) fn setting(values: &Values, name: &str) -> Option<bool> {
    values
        .get(&FEATURE_GATES)
        .iter()
        .find(|gate| gate.component == DEFAULT_COMPONENT && gate.name == name)
        .map(|gate| gate.enabled)
}

/// The gates set by the user that change nothing here, as written.
pub(super) fn without_effect(values: &Values) -> Vec<String> {
    let has_effect = |name: &str| {
        [ALL_ALPHA, ALL_BETA, COORDINATED_ELECTION].contains(&name)
            || KNOWN.iter().any(|known| known.name == name)
    };
    values
        .get(&FEATURE_GATES)
        .iter()
        .filter(|gate| gate.component != DEFAULT_COMPONENT || !has_effect(&gate.name))
        .map(ToString::to_string)
        .collect()
}

/// Name, stage and value of each gate, in the words of Kubernetes' components.
pub fn features(values: &Values) -> Vec<(&'static str, &'static str, bool)> {
    let shown = |known: &KnownGate| {
        let stage = if known.umbrella == ALL_ALPHA { "ALPHA" } else { "BETA" };
        (known.name, stage, enabled(values, known.name))
    };
    KNOWN.iter().map(shown).collect()
}

/// Names and defaults for help.
pub(super) fn described() -> String {
    let gates: Vec<String> =
        KNOWN.iter().map(|known| format!("{} (default {})", known.name, known.default)).collect();
    gates.join(", ")
}

/// Whether the log options that are alpha may be used.
pub fn has_alpha_logging(values: &Values) -> bool {
    enabled(values, LOGGING_ALPHA)
}

/// Whether `/flagz` is served.
pub fn has_flagz(values: &Values) -> bool {
    enabled(values, FLAGZ)
}

/// Whether `/statusz` is served.
pub fn has_statusz(values: &Values) -> bool {
    enabled(values, STATUSZ)
}

/// Whether a clean exit gives the lease up; flag and gate must agree.
pub fn release_on_exit(values: &Values) -> bool {
    values.get(&LEADER_ELECT_RELEASE_ON_EXIT) && enabled(values, RELEASE_ON_EXIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_name_a_metric_a_label_and_its_values() {
        let pair = |of: &str, values: &str| [(of.to_owned(), values.to_owned())];
        let read = label_values(pair("rest_client_requests_total,code", "200, 404")).unwrap();
        let key = ("rest_client_requests_total".to_owned(), "code".to_owned());
        assert_eq!(read, [(key, ["200", "404"].map(str::to_owned).into())].into());
        for bad in ["", "metric", "metric,", ",label", "metric,label,more"] {
            let told = label_values(pair(bad, "a")).unwrap_err();
            assert!(told.starts_with(&format!("{bad:?} does not name")), "{told}");
        }
    }
}
