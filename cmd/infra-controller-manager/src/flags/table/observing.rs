//! Metrics, logs and debugging.

use pflag::{Flag, GoDuration, Kind, Spec, Verdict};

use super::verdicts::{ACCEPTED_GROUP, accepted, not_enforced};

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

pub(crate) const VERBOSITY: Flag<i64> = Flag::verbosity(
    LOG_GROUP,
    "v",
    "0",
    "Log level: 0 what an operator needs, 2 the usual choice, 6 and up for API requests.",
);

pub(crate) const VMODULE: Flag<Vec<(String, u8)>> = Flag::vmodule(
    LOG_GROUP,
    "vmodule",
    "",
    "Log levels of single source files, by file name pattern; text format only.",
);

pub(crate) const LOGGING_FORMAT: Flag<String> =
    Flag::string(LOG_GROUP, "logging-format", "text", "Log format: text or json.");

pub(crate) const LOG_FLUSH_FREQUENCY: Flag<GoDuration> = Flag::duration(
    ACCEPTED_GROUP,
    "log-flush-frequency",
    "5s",
    "Longest time a log line may be buffered; this program writes each line at once.",
)
.with_verdict(Verdict::Accepted);

pub(crate) const LOG_TEXT_SPLIT_STREAM: Flag<bool> = Flag::bool(
    LOG_GROUP,
    "log-text-split-stream",
    "false",
    "Text errors to standard error, the rest to standard output.",
)
.with_verdict(Verdict::NotEnforced);

pub(crate) const LOG_TEXT_INFO_BUFFER_SIZE: Flag<i64> = Flag::quantity(
    LOG_GROUP,
    "log-text-info-buffer-size",
    "0",
    "Buffer for split text information lines.",
)
.with_verdict(Verdict::NotEnforced);

pub(crate) const LOG_JSON_SPLIT_STREAM: Flag<bool> = Flag::bool(
    LOG_GROUP,
    "log-json-split-stream",
    "false",
    "JSON errors to standard error, the rest to standard output.",
)
.with_verdict(Verdict::NotEnforced);

pub(crate) const LOG_JSON_INFO_BUFFER_SIZE: Flag<i64> = Flag::quantity(
    LOG_GROUP,
    "log-json-info-buffer-size",
    "0",
    "Buffer for split JSON information lines.",
)
.with_verdict(Verdict::NotEnforced);

pub(super) const LOGS: &[Spec] = &[
    VERBOSITY.spec(),
    VMODULE.spec(),
    LOGGING_FORMAT.spec(),
    LOG_FLUSH_FREQUENCY.spec(),
    LOG_TEXT_SPLIT_STREAM.spec(),
    LOG_TEXT_INFO_BUFFER_SIZE.spec(),
    LOG_JSON_SPLIT_STREAM.spec(),
    LOG_JSON_INFO_BUFFER_SIZE.spec(),
];

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
