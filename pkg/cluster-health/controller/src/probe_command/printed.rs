//! The result of a probe, as a table for people and as JSON for programs, without secrets: a
//! [`Probed`] has none.

use std::time::Duration;

use health::{Endpoints, Lifetime};
use manager::command::table;
use probe::{Probed, Timings, Trace};
use resilience::wall_now;
use serde_json::{Value, json};

/// The text, with its last line break.
pub(super) fn of(probed: &Probed, as_json: bool) -> String {
    if as_json { format!("{:#}\n", json(probed)) } else { text(probed) }
}

fn json(probed: &Probed) -> Value {
    let (finding, endpoints) = (probed.report.finding, probed.report.endpoints);
    json!({
        "verdict": finding.verdict().as_str(),
        "code": finding.code().map(|code| code.to_string()),
        "message": finding.to_string(),
        "detail": probed.report.detail,
        "endpoints": {"down": endpoints.down, "total": endpoints.total},
        "tookSeconds": probed.report.took.as_secs_f64(),
        "serverCertificateExpires": probed.certificate.map(|it| it.to.to_string()),
        "credentialExpires": probed.credential.map(|it| it.to.to_string()),
        "attempts": probed.attempts.iter().map(attempt).collect::<Vec<_>>(),
    })
}

fn attempt(trace: &Trace) -> Value {
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    let Timings { dns, tcp, proxy, tls, first_byte, body } = trace.timings;
    json!({
        "address": trace.address,
        "path": trace.path.as_str(),
        "connection": connection(trace),
        "afterSeconds": trace.after.as_secs_f64(),
        "tookSeconds": trace.took.as_secs_f64(),
        "phases": {
            "dns": seconds(dns),
            "tcp": seconds(tcp),
            "proxy": seconds(proxy),
            "tls": seconds(tls),
            "firstByte": seconds(first_byte),
            "body": seconds(body),
        },
        "result": result(trace),
        "detail": trace.detail,
    })
}

const HEADINGS: [&str; 11] = [
    "ADDRESS",
    "PATH",
    "CONNECTION",
    "DNS",
    "TCP",
    "PROXY",
    "TLS",
    "FIRST BYTE",
    "BODY",
    "TOTAL",
    "RESULT",
];

fn text(probed: &Probed) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    rows.extend(probed.attempts.iter().map(row));
    // There is no row when no address was asked.
    let mut text = if probed.attempts.is_empty() { String::new() } else { table(&rows) + "\n" };
    let mut lines: Vec<String> = Vec::new();
    let (finding, took) = (probed.report.finding, time(probed.report.took));
    let detail = probed.report.detail.as_ref().map_or_else(String::new, |it| format!(": {it}"));
    lines.push(format!("{}: {finding}{detail} ({took})", finding.verdict()));
    let Endpoints { down, total } = probed.report.endpoints;
    if total > 1 && down > 0 {
        lines.push(format!("{down} of {total} API endpoints down."));
    }
    let ends =
        [("The server's certificate", probed.certificate), ("The credential", probed.credential)];
    for (what, end) in ends {
        let Some(Lifetime { to: end, .. }) = end else { continue };
        let word = if end < wall_now() { "expired" } else { "expires" };
        lines.push(format!("{what} {word} at {}.", end.strftime("%Y-%m-%dT%H:%M:%SZ")));
    }
    text.extend(lines.iter().flat_map(|line| [line, "\n"]));
    text
}

fn row(trace: &Trace) -> Vec<String> {
    let Timings { dns, tcp, proxy, tls, first_byte, body } = trace.timings;
    let phase = |span: Option<Duration>| span.map_or_else(|| "-".to_owned(), time);
    [
        trace.address.to_string(),
        trace.path.to_string(),
        connection(trace).to_owned(),
        phase(dns),
        phase(tcp),
        phase(proxy),
        phase(tls),
        phase(first_byte),
        phase(body),
        time(trace.took),
        result(trace),
    ]
    .into()
}

fn connection(trace: &Trace) -> &'static str {
    if trace.reused { "open" } else { "new" }
}

fn result(trace: &Trace) -> String {
    trace.finding.code().map_or_else(|| "ok".to_owned(), |code| code.to_string())
}

fn time(span: Duration) -> String {
    format!("{:.1}ms", span.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use health::{Code, Finding, Moment, ProbePath, Report};
    use jiff::Timestamp;

    use super::*;

    fn probed() -> Probed {
        let trace = |finding, took| Trace {
            address: "10.0.0.1:6443".into(),
            path: ProbePath::Readyz,
            reused: false,
            after: Duration::ZERO,
            took: Duration::from_millis(took),
            timings: Timings { tcp: Some(Duration::from_micros(250)), ..Timings::default() },
            finding,
            detail: None,
        };
        let finding = Finding::failed(Code::Http(503), ProbePath::Readyz);
        let wall = Timestamp::UNIX_EPOCH;
        Probed {
            report: Report {
                took: Duration::from_millis(12),
                ..Report::new(finding, Moment { monotonic: std::time::Instant::now(), wall })
            },
            attempts: vec![
                trace(Finding::failed(Code::Reset, ProbePath::Readyz), 5),
                trace(finding, 7),
            ],
            certificate: Some(Lifetime { from: None, to: wall }),
            credential: None,
        }
    }

    #[test]
    fn people_read_a_line_for_each_attempt_and_the_conclusion_below() {
        let text = of(&probed(), false);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("ADDRESS        PATH     CONNECTION  DNS  TCP"), "{text}");
        assert!(lines[1].ends_with("5.0ms  reset") && lines[1].contains("0.2ms"), "{text}");
        assert!(lines[2].ends_with("7.0ms  http-503"), "{text}");
        assert_eq!(lines[4], "unhealthy: /readyz responded without ok: http-503 (12.0ms)");
        assert_eq!(lines[5], "The server's certificate expired at 1970-01-01T00:00:00Z.");
        assert_eq!(lines.len(), 6);
    }

    #[test]
    fn of_a_cluster_that_could_not_be_asked_only_the_reason_is_reported() {
        let problem = probe::Problem::new(Code::SecretMissing, "Secret s does not exist");
        let text = of(&Probed::of_problem(&problem), false);
        let told =
            "config: cluster cannot be probed: secret-missing: Secret s does not exist (0.0ms)";
        assert_eq!(text, format!("{told}\n"));
    }

    #[test]
    fn addresses_that_are_down_are_counted() {
        let mut probed = probed();
        probed.report.endpoints = Endpoints { down: 1, total: 3 };
        let text = of(&probed, false);
        assert!(text.contains("\n1 of 3 API endpoints down.\n"), "{text}");
    }

    #[test]
    fn programs_read_the_same_as_json() {
        let json: Value = serde_json::from_str(&of(&probed(), true)).unwrap();
        assert_eq!((&json["verdict"], &json["code"]), (&json!("unhealthy"), &json!("http-503")));
        assert_eq!(json["attempts"][0]["result"], "reset");
        assert_eq!(json["attempts"][0]["phases"]["tcp"], json!(0.00025));
        assert_eq!(json["attempts"][0]["phases"]["dns"], Value::Null);
        assert_eq!(json["serverCertificateExpires"], "1970-01-01T00:00:00Z");
    }
}
