//! Metrics, logs and debugging.

use pflag::{Kind, Spec};

use super::{accepted, not_enforced};

pub(super) const METRICS: &[Spec] = &[
    metric("disabled-metrics", Kind::Strings, "Metrics that are not exposed, by full name."),
    metric(
        "allow-metric-labels",
        Kind::StringMap,
        "Values a label of a metric may take, as metric,label=v1,v2; others become 'unexpected'.",
    ),
    metric(
        "allow-metric-labels-manifest",
        Kind::String,
        "File with the contents of --allow-metric-labels.",
    ),
    accepted(
        "show-hidden-metrics-for-version",
        Kind::String,
        "",
        "Release whose hidden metrics are shown; this program hides none.",
    ),
];

const fn metric(name: &'static str, kind: Kind, help: &'static str) -> Spec {
    not_enforced("metrics", name, kind, "", help)
}

const LOG_GROUP: &str = "logs";

pub(super) const LOGS: &[Spec] = &[
    Spec::honoured(
        LOG_GROUP,
        "v",
        Kind::Verbosity,
        "0",
        "Log level: 0 what an operator needs, 2 the usual choice, 6 and up for API requests.",
    ),
    Spec::honoured(
        LOG_GROUP,
        "vmodule",
        Kind::VModule,
        "",
        "Log levels of single source files, by file name pattern; text format only.",
    ),
    Spec::honoured(LOG_GROUP, "logging-format", Kind::String, "text", "Log format: text or json."),
    accepted(
        "log-flush-frequency",
        Kind::Duration,
        "5s",
        "Longest time a log line may be buffered; this program writes each line at once.",
    ),
    split(
        "log-text-split-stream",
        Kind::Bool,
        "false",
        "Text errors to standard error, the rest to standard output.",
    ),
    split(
        "log-text-info-buffer-size",
        Kind::Quantity,
        "0",
        "Buffer for split text information lines.",
    ),
    split(
        "log-json-split-stream",
        Kind::Bool,
        "false",
        "JSON errors to standard error, the rest to standard output.",
    ),
    split(
        "log-json-info-buffer-size",
        Kind::Quantity,
        "0",
        "Buffer for split JSON information lines.",
    ),
];

const fn split(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Spec {
    not_enforced(LOG_GROUP, name, kind, default, help)
}

pub(super) const DEBUGGING: &[Spec] = &[
    not_enforced(
        "debugging",
        "profiling",
        Kind::Bool,
        "true",
        "Serve profiles under /debug/pprof/.",
    ),
    accepted("contention-profiling", Kind::Bool, "false", "Profile blocked goroutines."),
];
