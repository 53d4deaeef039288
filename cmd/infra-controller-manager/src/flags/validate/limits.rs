//! Rates and durations that would stop work or never end.

use flags::{Flag, Problem, Values};

use crate::flags::table::delegation::{
    AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL, AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL,
    AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL, AUTHZ_OUTAGE_GRACE,
};
use crate::flags::table::generic::{
    CONTROLLER_SHUTDOWN_TIMEOUT, CONTROLLER_START_INTERVAL, EVENT_BURST, EVENT_QPS, KUBE_API_BURST,
    KUBE_API_QPS, MIN_RESYNC_PERIOD,
};
use crate::flags::table::observing::LOG_FLUSH_FREQUENCY;

pub(super) fn rates(values: &Values, problems: &mut Vec<Problem>) {
    let qps = values.get(&KUBE_API_QPS);
    finite(&KUBE_API_QPS, qps, problems);
    if qps == 0.0 {
        let advice = "0 would stop all requests; use -1 for no limit, or a positive number";
        problems.push(KUBE_API_QPS.problem(advice));
    }
    let burst = values.get(&KUBE_API_BURST);
    if qps > 0.0 && burst <= 0 {
        problems.push(KUBE_API_BURST.problem(too_small(burst, &KUBE_API_QPS)));
    }
    let event_qps = values.get(&EVENT_QPS);
    finite(&EVENT_QPS, event_qps, problems);
    let event_burst = values.get(&EVENT_BURST);
    if event_burst < 0 {
        let rule = format!("{event_burst} is negative; use 0 to follow {KUBE_API_BURST}");
        problems.push(EVENT_BURST.problem(rule));
    } else if event_burst == 0 && burst <= 0 && qps < 0.0 && event_qps > 0.0 {
        problems.push(EVENT_BURST.problem(too_small(burst, &EVENT_QPS)));
    }
}

fn too_small(burst: i64, rate: &Flag<f64>) -> String {
    format!("{burst} lets no request through while {rate} is positive; use 1 or more")
}

fn finite(flag: &Flag<f64>, value: f64, problems: &mut Vec<Problem>) {
    if !value.is_finite() {
        let advice = format!("{value} is no rate; use -1 for no limit");
        problems.push(flag.problem(advice));
    }
}

/// Durations for which a negative value has no meaning.
pub(super) fn durations(values: &Values, problems: &mut Vec<Problem>) {
    let not_negative = [
        CONTROLLER_SHUTDOWN_TIMEOUT,
        CONTROLLER_START_INTERVAL,
        MIN_RESYNC_PERIOD,
        AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL,
        AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL,
        AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL,
        AUTHZ_OUTAGE_GRACE,
    ];
    for flag in not_negative {
        let given = values.get(&flag);
        if given.nanos() < 0 {
            problems.push(flag.problem(format!("{given} is negative")));
        }
    }
    let flush = values.get(&LOG_FLUSH_FREQUENCY);
    if flush.nanos() <= 0 {
        problems.push(LOG_FLUSH_FREQUENCY.problem(format!("{flush} is not greater than zero")));
    }
}
