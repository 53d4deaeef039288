//! The limits of the API clients, as flags give them.

use pflag::Values;

use super::table::generic::{EVENT_BURST, EVENT_QPS, KUBE_API_BURST, KUBE_API_QPS};

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

/// A negative burst has no effect, since validation refuses it beside a positive rate.
fn burst(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
