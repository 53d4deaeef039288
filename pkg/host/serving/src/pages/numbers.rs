//! Numbers as programs in Go write them: a bucket's bound is part of the name of its series, which must
//! be the same whoever exposes it.

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
    use super::*;

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
