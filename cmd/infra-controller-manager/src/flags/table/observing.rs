//! Flags of metrics, logs and debugging.

use flags::{Flag, GoDuration, Kind, Spec};

use super::accepted::accepted;

pub(crate) const DISABLED_METRICS: Flag<Vec<String>> =
    Flag::strings("metrics", "disabled-metrics", "", "Metrics that are not exposed, by full name.");

pub(crate) const ALLOW_METRIC_LABELS: Flag<Vec<(String, String)>> = Flag::string_map(
    "metrics",
    "allow-metric-labels",
    "",
    "Values that a label of a metric may have, as metric,label=v1,v2. Other values are replaced by 'unexpected' and counted in one series.",
);

pub(crate) const ALLOW_METRIC_LABELS_MANIFEST: Flag<String> = Flag::string(
    "metrics",
    "allow-metric-labels-manifest",
    "",
    "YAML file with entries of the form metric,label: v1,v2; --allow-metric-labels takes precedence.",
);

pub(crate) const PROFILING: Flag<bool> = Flag::bool(
    "debugging",
    "profiling",
    "true",
    "Serve /debug/flags/v; a PUT sets the log level. The program serves no profiles under /debug/pprof/: use perf.",
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
    "Log level: 0 for what an operator needs, 2 is the usual choice, 6 and higher also log API requests.",
);

pub(crate) const VMODULE: Flag<Vec<(String, u8)>> = Flag::vmodule(
    LOG_GROUP,
    "vmodule",
    "",
    "Log levels of single source files, by file name pattern; only for the text format.",
);

pub(crate) const LOGGING_FORMAT: Flag<String> =
    Flag::string(LOG_GROUP, "logging-format", "text", "Log format: text or json.");

pub(crate) const LOG_FLUSH_FREQUENCY: Flag<GoDuration> = Flag::duration(
    LOG_GROUP,
    "log-flush-frequency",
    "5s",
    "Longest time that a line stays in a log buffer; without a buffer each line is written at once.",
);

pub(crate) const LOG_TEXT_SPLIT_STREAM: Flag<bool> = Flag::bool(
    LOG_GROUP,
    "log-text-split-stream",
    "false",
    "Write errors to standard error and the rest to standard output, in the text format. Needs the feature gate LoggingAlphaOptions.",
);

pub(crate) const LOG_TEXT_INFO_BUFFER_SIZE: Flag<i64> = Flag::quantity(
    LOG_GROUP,
    "log-text-info-buffer-size",
    "0",
    "With --log-text-split-stream, size of the buffer of standard output, such as 64Ki. The buffer is written when it is full, after --log-flush-frequency, and at exit. Needs the feature gate LoggingAlphaOptions.",
);

pub(crate) const LOG_JSON_SPLIT_STREAM: Flag<bool> = Flag::bool(
    LOG_GROUP,
    "log-json-split-stream",
    "false",
    "Write errors to standard error and the rest to standard output, in the JSON format. Needs the feature gate LoggingAlphaOptions.",
);

pub(crate) const LOG_JSON_INFO_BUFFER_SIZE: Flag<i64> = Flag::quantity(
    LOG_GROUP,
    "log-json-info-buffer-size",
    "0",
    "With --log-json-split-stream, size of the buffer of standard output, such as 64Ki. The buffer is written when it is full, after --log-flush-frequency, and at exit. Needs the feature gate LoggingAlphaOptions.",
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
