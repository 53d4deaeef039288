//! The limits of the API clients, as flags give them (`host.md` 4.5): requests per second (negative
//! means unlimited) and requests that may go at once.

use pflag::Values;

/// The limit of each controller's work client.
pub fn work_rate(values: &Values) -> (f64, u32) {
    (values.float("kube-api-qps"), burst(values.int("kube-api-burst")))
}

/// The limit of the event client; what is 0, as by default, follows [`work_rate`].
pub fn event_rate(values: &Values) -> (f64, u32) {
    let (work_qps, work_burst) = work_rate(values);
    let qps = values.float("event-qps");
    let given = burst(values.int("event-burst"));
    (if qps == 0.0 { work_qps } else { qps }, if given == 0 { work_burst } else { given })
}

/// A negative burst has no effect, since validation refuses it beside a positive rate.
fn burst(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
