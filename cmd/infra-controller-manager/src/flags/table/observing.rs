//! Metrics, logs and debugging.

use flags::{Flag, GoDuration, Kind, Spec};

use super::accepted::accepted;

pub(crate) const DISABLED_METRICS: Flag<Vec<String>> =
    Flag::strings("metrics", "disabled-metrics", "", "Metrics that are not exposed, by full name.");

pub(crate) const ALLOW_METRIC_LABELS: Flag<Vec<(String, String)>> = Flag::string_map(
    "metrics",
    "allow-metric-labels",
    "",
    "Values that a label of a metric may take, as metric,label=v1,v2. Others become 'unexpected', and their series one.",
);

pub(crate) const ALLOW_METRIC_LABELS_MANIFEST: Flag<String> = Flag::string(
    "metrics",
    "allow-metric-labels-manifest",
    "",
    "YAML file with such lines, as metric,label: v1,v2; those of --allow-metric-labels go before.",
);

pub(crate) const PROFILING: Flag<bool> = Flag::bool(
    "debugging",
    "profiling",
    "true",
    "Serve /debug/flags/v, where a PUT sets the log level. Profiles, as under /debug/pprof/ of programs in Go, are not to be had of this one: use perf.",
);

pub(super) const METRICS: &[Spec] = &[
    DISABLED_METRICS.spec(),
    ALLOW_METRIC_LABELS.spec(),
    ALLOW_METRIC_LABELS_MANIFEST.spec(),
    accepted(
        "show-hidden-metrics-for-version",
        Kind::String,
        "",
        "Release whose hidden metrics are shown; this program hides none.",
    ),
];

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
    LOG_GROUP,
    "log-flush-frequency",
    "5s",
    "Longest time that a line waits in a buffer of the log; without a buffer each is written at once.",
);

pub(crate) const LOG_TEXT_SPLIT_STREAM: Flag<bool> = Flag::bool(
    LOG_GROUP,
    "log-text-split-stream",
    "false",
    "Text errors to standard error, the rest to standard output. Needs the feature gate LoggingAlphaOptions.",
);

pub(crate) const LOG_TEXT_INFO_BUFFER_SIZE: Flag<i64> = Flag::quantity(
    LOG_GROUP,
    "log-text-info-buffer-size",
    "0",
    "With --log-text-split-stream, bytes of standard output that are held back, such as 64Ki, to be written at once: when they are more, after --log-flush-frequency, and at the end. Needs the feature gate LoggingAlphaOptions.",
);

pub(crate) const LOG_JSON_SPLIT_STREAM: Flag<bool> = Flag::bool(
    LOG_GROUP,
    "log-json-split-stream",
    "false",
    "JSON errors to standard error, the rest to standard output. Needs the feature gate LoggingAlphaOptions.",
);

pub(crate) const LOG_JSON_INFO_BUFFER_SIZE: Flag<i64> = Flag::quantity(
    LOG_GROUP,
    "log-json-info-buffer-size",
    "0",
    "With --log-json-split-stream, bytes of standard output that are held back, such as 64Ki, to be written at once: when they are more, after --log-flush-frequency, and at the end. Needs the feature gate LoggingAlphaOptions.",
);

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
    PROFILING.spec(),
    accepted(
        "contention-profiling",
        Kind::Bool,
        "false",
        "Profile blocked goroutines; this program has none.",
    ),
];
