//! Typed settings from flag values: client rates, leader election, TLS and metric labels.

use std::collections::{BTreeMap, BTreeSet};

use election::ElectionConfig;
use flags::controllers::Known;
use flags::{Problem, Values};
use serving::TlsChoice;

use super::table::generic::{
    CONTROLLER_QPS, DRY_RUN, EVENT_BURST, EVENT_QPS, KUBE_API_BURST, KUBE_API_QPS,
    LEADER_ELECT_LEASE_DURATION, LEADER_ELECT_RENEW_DEADLINE, LEADER_ELECT_RESOURCE_NAME,
    LEADER_ELECT_RESOURCE_NAMESPACE, LEADER_ELECT_RETRY_PERIOD,
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
///
/// # Errors
/// Every entry that names no controller of this program, or no rate.
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
///
/// # Errors
/// The first pair that cannot be read.
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
