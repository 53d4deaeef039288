//! Rates and durations that would stop work or never end (`host.md` 4.5).

use pflag::{Problem, Values};

pub(super) fn rates(values: &Values, problems: &mut Vec<Problem>) {
    let qps = values.float("kube-api-qps");
    finite("kube-api-qps", qps, problems);
    if qps == 0.0 {
        let advice = "0 would stop all requests; use -1 for no limit, or a positive number";
        problems.push(Problem::new("kube-api-qps", advice));
    }
    let burst = values.int("kube-api-burst");
    if qps > 0.0 && burst <= 0 {
        problems.push(Problem::new("kube-api-burst", too_small(burst, "--kube-api-qps")));
    }
    finite("event-qps", values.float("event-qps"), problems);
    let event_burst = values.int("event-burst");
    if event_burst < 0 {
        problems.push(Problem::new(
            "event-burst",
            format!("{event_burst} is negative; use 0 to follow --kube-api-burst"),
        ));
    } else if event_burst == 0 && burst <= 0 && qps < 0.0 && values.float("event-qps") > 0.0 {
        problems.push(Problem::new("event-burst", too_small(burst, "--event-qps")));
    }
}

fn too_small(burst: i64, rate: &str) -> String {
    format!("{burst} lets no request through while {rate} is positive; use 1 or more")
}

fn finite(flag: &str, value: f64, problems: &mut Vec<Problem>) {
    if !value.is_finite() {
        let advice = format!("{value} is no rate; use -1 for no limit");
        problems.push(Problem::new(flag, advice));
    }
}

/// Durations for which a negative value has no meaning.
pub(super) fn durations(values: &Values, problems: &mut Vec<Problem>) {
    const NOT_NEGATIVE: [&str; 6] = [
        "controller-shutdown-timeout",
        "controller-start-interval",
        "min-resync-period",
        "authentication-token-webhook-cache-ttl",
        "authorization-webhook-cache-authorized-ttl",
        "authorization-webhook-cache-unauthorized-ttl",
    ];
    for flag in NOT_NEGATIVE {
        let given = values.go_duration(flag);
        if given.nanos() < 0 {
            problems.push(Problem::new(flag, format!("{given} is negative")));
        }
    }
    let flush = values.go_duration("log-flush-frequency");
    if flush.nanos() <= 0 {
        let rule = format!("{flush} is not greater than zero");
        problems.push(Problem::new("log-flush-frequency", rule));
    }
}
