//! Metrics as `/metrics` writes them: in the text format of Prometheus, or in OpenMetrics for a scraper
//! that prefers it. Numbers look as programs in Go write them.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use http::HeaderMap;
use http::header::ACCEPT;
use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

const TOTAL: &str = "_total";

/// The format of a page of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    OpenMetrics,
}

impl Format {
    /// The format that a request wants: OpenMetrics where it is named, and not with less weight.
    pub(super) fn wanted(headers: &HeaderMap) -> Self {
        let ranges = headers.get_all(ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
        let (mut open, mut text) = (0.0, 0.0);
        for range in ranges.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let weight = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "application/openmetrics-text" => &mut open,
                "text/plain" => &mut text,
                _ => continue,
            };
            let (mut of_range, mut known) = (1.0, true);
            for part in parts {
                match part.split_once('=') {
                    Some(("q", given)) => of_range = given.parse().unwrap_or(0.0),
                    Some(("version", version)) => {
                        known = ["0.0.1", "0.0.4", "1.0.0"].contains(&version);
                    }
                    _ => {}
                }
            }
            if known {
                *weight = f64::max(*weight, of_range);
            }
        }
        if open > 0.0 && open >= text { Self::OpenMetrics } else { Self::Text }
    }

    /// The media type of a page.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// A page with all families that have series.
    pub(super) fn page(self, families: Vec<MetricFamily>) -> String {
        let mut page = Page { text: String::new(), format: self };
        // Each is dropped when it is written: those of thousands of objects are larger than the page.
        for family in families.into_iter().filter(|family| !family.get_metric().is_empty()) {
            // Writing to a text does not fail.
            let _written = page.write_family(&family);
        }
        if self == Self::OpenMetrics {
            page.text.push_str("# EOF\n");
        }
        page.text
    }

    /// The name of a family and its type. OpenMetrics names a counter without its suffix, which it must
    /// have there and a gauge may not have.
    fn head(self, name: &str, kind: MetricType) -> (&str, &'static str) {
        let is_open = self == Self::OpenMetrics;
        match (kind, name.strip_suffix(TOTAL)) {
            (MetricType::HISTOGRAM, _) => (name, "histogram"),
            (MetricType::COUNTER, Some(of_family)) if is_open => (of_family, "counter"),
            (MetricType::COUNTER, _) if !is_open => (name, "counter"),
            (MetricType::GAUGE, total) if !is_open || total.is_none() => (name, "gauge"),
            _ => (name, if is_open { "unknown" } else { "untyped" }),
        }
    }

    /// The bound of a bucket.
    fn bound(self, bound: f64) -> String {
        match self {
            Self::Text => as_go(bound),
            Self::OpenMetrics => with_fraction(bound),
        }
    }
}

/// A page that is being written.
struct Page {
    text: String,
    format: Format,
}

impl Page {
    fn write_family(&mut self, family: &MetricFamily) -> fmt::Result {
        let (name, kind) = (family.name(), family.get_field_type());
        let (of_family, kind_name) = self.format.head(name, kind);
        let help = escaped(family.help(), self.format == Format::OpenMetrics);
        writeln!(self.text, "# HELP {of_family} {help}\n# TYPE {of_family} {kind_name}")?;
        for series in family.get_metric() {
            let labels = series.get_label();
            match kind {
                MetricType::COUNTER => {
                    self.write_sample([name, ""], labels, None, series.get_counter().get_value())?;
                }
                MetricType::GAUGE => {
                    self.write_sample([name, ""], labels, None, series.get_gauge().get_value())?;
                }
                MetricType::HISTOGRAM => self.write_histogram(name, series)?,
                // The library makes neither.
                MetricType::SUMMARY | MetricType::UNTYPED => {}
            }
        }
        Ok(())
    }

    fn write_histogram(&mut self, name: &str, series: &Metric) -> fmt::Result {
        let (histogram, labels) = (series.get_histogram(), series.get_label());
        for of in histogram.get_bucket().iter().filter(|of| of.upper_bound().is_finite()) {
            let le = self.format.bound(of.upper_bound());
            let count = float(of.cumulative_count());
            self.write_sample([name, "_bucket"], labels, Some(&le), count)?;
        }
        let all = float(histogram.get_sample_count());
        self.write_sample([name, "_bucket"], labels, Some("+Inf"), all)?;
        self.write_sample([name, "_sum"], labels, None, histogram.get_sample_sum())?;
        self.write_sample([name, "_count"], labels, None, all)
    }

    fn write_sample(
        &mut self,
        [name, suffix]: [&str; 2],
        labels: &[LabelPair],
        le: Option<&str>,
        value: f64,
    ) -> fmt::Result {
        write!(self.text, "{name}{suffix}")?;
        let mut mark = '{';
        for label in labels {
            write!(self.text, "{mark}{}=\"{}\"", label.name(), escaped(label.value(), true))?;
            mark = ',';
        }
        if let Some(le) = le {
            write!(self.text, "{mark}le=\"{le}\"")?;
            mark = ',';
        }
        if mark == ',' {
            self.text.push('}');
        }
        match self.format {
            Format::Text if value.is_finite() => writeln!(self.text, " {value}"),
            format => writeln!(self.text, " {}", format.bound(value)),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "2^53 observations are not reached")]
fn float(count: u64) -> f64 {
    count as f64
}

/// `text` with escapes, of quotes where they end it.
fn escaped(text: &str, quotes: bool) -> Cow<'_, str> {
    if !text.contains(['\\', '\n', '"']) {
        return text.into();
    }
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { text.replace('"', "\\\"").into() } else { text.into() }
}

/// A number as Go writes it: from a million on, or below a ten-thousandth, with an exponent of a sign
/// and two digits.
fn as_go(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let text = format!("{value:e}");
    let power =
        text.split_once('e').and_then(|(digits, power)| Some((digits, power.parse().ok()?)));
    match power {
        Some((digits, power @ (..-4 | 6..))) => format!("{digits}e{power:+03}"),
        _ => value.to_string(),
    }
}

/// A number of OpenMetrics, where whole ones have a fraction, too.
fn with_fraction(value: f64) -> String {
    let text = as_go(value);
    let is_whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_whole { text + ".0" } else { text }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use prometheus::{Gauge, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

    use super::*;

    #[test]
    fn the_formats_are_those_of_the_standards_and_names_stay() {
        let registry = Registry::new();
        let requests = IntCounterVec::new(Opts::new("b_total", "Say \"b\"."), &["code"]).unwrap();
        requests.with_label_values(&["a\"\n"]).inc_by(2);
        let attempts = IntCounterVec::new(Opts::new("c_attempts", "C."), &["code"]).unwrap();
        attempts.with_label_values(&["1"]).inc();
        let seconds = HistogramOpts::new("d_seconds", "D.").buckets(vec![1e-8, 1.0]);
        let seconds = HistogramVec::new(seconds, &["of"]).unwrap();
        seconds.with_label_values(&["x"]).observe(0.75);
        let ratio = Gauge::new("a_ratio", "A.").unwrap();
        ratio.set(f64::INFINITY);
        registry.register(Box::new(requests)).unwrap();
        registry.register(Box::new(attempts)).unwrap();
        registry.register(Box::new(seconds)).unwrap();
        registry.register(Box::new(ratio)).unwrap();
        let families = registry.gather();
        let open = r#"# HELP a_ratio A.
# TYPE a_ratio gauge
a_ratio +Inf
# HELP b Say \"b\".
# TYPE b counter
b_total{code="a\"\n"} 2.0
# HELP c_attempts C.
# TYPE c_attempts unknown
c_attempts{code="1"} 1.0
# HELP d_seconds D.
# TYPE d_seconds histogram
d_seconds_bucket{of="x",le="1e-08"} 0.0
d_seconds_bucket{of="x",le="1.0"} 1.0
d_seconds_bucket{of="x",le="+Inf"} 1.0
d_seconds_sum{of="x"} 0.75
d_seconds_count{of="x"} 1.0
# EOF
"#;
        assert_eq!(Format::OpenMetrics.page(families.clone()), open);
        let text = r#"# HELP a_ratio A.
# TYPE a_ratio gauge
a_ratio +Inf
# HELP b_total Say "b".
# TYPE b_total counter
b_total{code="a\"\n"} 2
# HELP c_attempts C.
# TYPE c_attempts counter
c_attempts{code="1"} 1
# HELP d_seconds D.
# TYPE d_seconds histogram
d_seconds_bucket{of="x",le="1e-08"} 0
d_seconds_bucket{of="x",le="1"} 1
d_seconds_bucket{of="x",le="+Inf"} 1
d_seconds_sum{of="x"} 0.75
d_seconds_count{of="x"} 1
"#;
        assert_eq!(Format::Text.page(families), text);
    }

    #[test]
    fn a_scraper_that_prefers_openmetrics_gets_it() {
        const PROMETHEUS: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
            application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,\
            text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, wanted) in [
            (PROMETHEUS, true),
            ("application/openmetrics-text", true),
            ("text/plain, application/openmetrics-text;q=0.5", false),
            ("application/openmetrics-text;version=2.0.0", false),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text; q=junk", false),
            ("text/plain", false),
            ("*/*", false),
            ("", false),
        ] {
            let headers = [(ACCEPT, HeaderValue::from_static(accept))].into_iter().collect();
            assert_eq!(Format::wanted(&headers) == Format::OpenMetrics, wanted, "{accept}");
        }
        assert_eq!(Format::wanted(&HeaderMap::new()), Format::Text);
    }

    #[test]
    fn numbers_are_written_as_by_programs_in_go() {
        for (value, text, openmetrics) in [
            (1e-8, "1e-08", "1e-08"),
            (9.999_999_999_999_999e-5, "9.999999999999999e-05", "9.999999999999999e-05"),
            (0.001, "0.001", "0.001"),
            (5.0, "5", "5.0"),
            (-5.0, "-5", "-5.0"),
            (0.0, "0", "0.0"),
            (0.000_1, "0.0001", "0.0001"),
            (999_999.5, "999999.5", "999999.5"),
            (1e6, "1e+06", "1e+06"),
            (1_048_576.0, "1.048576e+06", "1.048576e+06"),
            (-1e300, "-1e+300", "-1e+300"),
            (f64::NAN, "NaN", "NaN"),
            (f64::NEG_INFINITY, "-Inf", "-Inf"),
        ] {
            assert_eq!((&*as_go(value), &*with_fraction(value)), (text, openmetrics));
        }
    }
}
