//! `/metrics` in the OpenMetrics format, and numbers as programs in Go write them.

use std::fmt::Write as _;

use http::HeaderMap;
use http::header::ACCEPT;
use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

/// The media type of an answer.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TOTAL: &str = "_total";

/// Whether the request wants this format rather than text: named, and not with less weight.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
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
    open > 0.0 && open >= text
}

/// All families.
pub(super) fn text(families: &[MetricFamily]) -> String {
    let mut page = String::new();
    for family in families {
        // Writing to a text does not fail.
        let _written = write_family(&mut page, family);
    }
    page.push_str("# EOF\n");
    page
}

fn write_family(page: &mut String, family: &MetricFamily) -> std::fmt::Result {
    let name = family.name();
    let (of_family, kind) = match (family.get_field_type(), name.strip_suffix(TOTAL)) {
        (MetricType::COUNTER, Some(of_family)) => (of_family, "counter"),
        (MetricType::HISTOGRAM, _) => (name, "histogram"),
        // A gauge may not end so.
        (MetricType::GAUGE, None) => (name, "gauge"),
        _ => (name, "unknown"),
    };
    writeln!(page, "# HELP {of_family} {}", escaped(family.help()))?;
    writeln!(page, "# TYPE {of_family} {kind}")?;
    for series in family.get_metric() {
        let labels = series.get_label();
        match family.get_field_type() {
            MetricType::COUNTER => {
                write_sample(page, name, labels, None, series.get_counter().get_value())?;
            }
            MetricType::GAUGE => {
                write_sample(page, name, labels, None, series.get_gauge().get_value())?;
            }
            MetricType::HISTOGRAM => write_histogram(page, name, series)?,
            // The library makes neither.
            MetricType::SUMMARY | MetricType::UNTYPED => {}
        }
    }
    Ok(())
}

fn write_histogram(page: &mut String, name: &str, series: &Metric) -> std::fmt::Result {
    let (histogram, labels) = (series.get_histogram(), series.get_label());
    let bucket = format!("{name}_bucket");
    for of in histogram.get_bucket().iter().filter(|of| of.upper_bound().is_finite()) {
        let le = of_openmetrics(of.upper_bound());
        write_sample(page, &bucket, labels, Some(&le), count(of.cumulative_count()))?;
    }
    let all = count(histogram.get_sample_count());
    write_sample(page, &bucket, labels, Some("+Inf"), all)?;
    write_sample(page, &format!("{name}_sum"), labels, None, histogram.get_sample_sum())?;
    write_sample(page, &format!("{name}_count"), labels, None, all)
}

fn write_sample(
    page: &mut String,
    name: &str,
    labels: &[LabelPair],
    le: Option<&str>,
    value: f64,
) -> std::fmt::Result {
    let pairs =
        labels.iter().map(|label| format!("{}=\"{}\"", label.name(), escaped(label.value())));
    let pairs: Vec<_> = pairs.chain(le.map(|le| format!("le=\"{le}\""))).collect();
    let braced = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
    writeln!(page, "{name}{braced} {}", of_openmetrics(value))
}

#[expect(clippy::cast_precision_loss, reason = "2^53 observations are not reached")]
fn count(count: u64) -> f64 {
    count as f64
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// In the text format: those from a million on, or below a ten-thousandth, have an exponent with a sign
/// and two digits.
pub(super) fn of_text(value: f64) -> String {
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

/// In OpenMetrics whole numbers have a fraction, too.
pub(super) fn of_openmetrics(value: f64) -> String {
    let text = of_text(value);
    let is_whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_whole { text + ".0" } else { text }
}

/// A page in the text format, as the library writes it, with the bounds of its buckets so.
pub(super) fn with_bounds_of_text(page: &str) -> String {
    const BOUND: &str = "le=\"";
    let mut written = String::with_capacity(page.len());
    for line in page.split_inclusive('\n') {
        // It is the last label. Texts of other labels have no bare quote.
        let bound = line.rfind(BOUND).filter(|at| line[..*at].ends_with(['{', ',']));
        let bound = bound.map(|at| line.split_at(at + BOUND.len()));
        let bound = bound.and_then(|(before, rest)| Some((before, rest.split_once('"')?)));
        match bound {
            Some((before, (number, after))) if !line.starts_with('#') => {
                written.push_str(before);
                written.push_str(&number.parse().map_or_else(|_| number.to_owned(), of_text));
                written.push('"');
                written.push_str(after);
            }
            _ => written.push_str(line),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use prometheus::{Gauge, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

    use super::*;

    #[test]
    fn the_format_is_that_of_the_standard_and_names_stay() {
        let registry = Registry::new();
        let requests = IntCounterVec::new(Opts::new("b_total", "Say \"b\"."), &["code"]).unwrap();
        requests.with_label_values(&["a\"\n"]).inc_by(2);
        let attempts = IntCounterVec::new(Opts::new("c_attempts", "C."), &["code"]).unwrap();
        attempts.with_label_values(&["1"]).inc();
        let seconds = HistogramOpts::new("d_seconds", "D.").buckets(vec![0.5, 1.0]);
        let seconds = HistogramVec::new(seconds, &["of"]).unwrap();
        seconds.with_label_values(&["x"]).observe(0.75);
        let ratio = Gauge::new("a_ratio", "A.").unwrap();
        ratio.set(f64::INFINITY);
        registry.register(Box::new(requests)).unwrap();
        registry.register(Box::new(attempts)).unwrap();
        registry.register(Box::new(seconds)).unwrap();
        registry.register(Box::new(ratio)).unwrap();
        let expected = r#"# HELP a_ratio A.
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
d_seconds_bucket{of="x",le="0.5"} 0.0
d_seconds_bucket{of="x",le="1.0"} 1.0
d_seconds_bucket{of="x",le="+Inf"} 1.0
d_seconds_sum{of="x"} 0.75
d_seconds_count{of="x"} 1.0
# EOF
"#;
        assert_eq!(text(&registry.gather()), expected);
    }

    #[test]
    fn it_is_given_to_who_prefers_it() {
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
            assert_eq!(is_wanted(&headers), wanted, "{accept}");
        }
        assert!(!is_wanted(&HeaderMap::new()));
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
            assert_eq!((&*of_text(value), &*of_openmetrics(value)), (text, openmetrics));
        }
    }

    #[test]
    fn bounds_of_buckets_are_written_so_and_nothing_else_is_touched() {
        let page = "# HELP a le=\"0.00000001\"\n\
                    a_bucket{name=\"x\",le=\"0.00000001\"} 1048576\n\
                    a_bucket{le=\"1048576\"} 2\na_bucket{le=\"+Inf\"} 2\na_count 2\n\
                    b{role=\"0.00000001\"} 3\n";
        let expected = "# HELP a le=\"0.00000001\"\n\
                        a_bucket{name=\"x\",le=\"1e-08\"} 1048576\n\
                        a_bucket{le=\"1.048576e+06\"} 2\na_bucket{le=\"+Inf\"} 2\na_count 2\n\
                        b{role=\"0.00000001\"} 3\n";
        assert_eq!(with_bounds_of_text(page), expected);
    }
}
