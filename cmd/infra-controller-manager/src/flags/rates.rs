//! The limits of the API clients, as flags give them.

use std::collections::BTreeMap;

use flags::controllers::Known;
use flags::{Problem, Values};

use super::table::generic::{CONTROLLER_QPS, EVENT_BURST, EVENT_QPS, KUBE_API_BURST, KUBE_API_QPS};

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

/// What single controllers have instead of [`work_rate`], by canonical name.
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
                let rule = format!("no controller is named {name:?}; this program hosts: {hosted}");
                problems.push(CONTROLLER_QPS.problem(rule));
            }
            (_, None) => {
                let rule = format!(
                    "{text:?} for {name} is no QPS:BURST, such as 50:100; -1:0 is unlimited"
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

/// A negative burst has no effect, since validation refuses it beside a positive rate.
fn burst(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
