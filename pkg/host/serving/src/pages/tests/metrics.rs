//! `/metrics` and `/metrics/slis`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use ::metrics::Family;
use parking_lot::Mutex;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts};

use super::*;

#[tokio::test]
async fn a_long_scrape_holds_up_no_other_task() {
    let standard = standard();
    let (send, go) = mpsc::channel();
    let came = Arc::new(AtomicBool::new(false));
    let (go, seen) = (Mutex::new(go), came.clone());
    let slow = Family::gauge("slow", "Slow.", &[]).unwrap();
    ::metrics::at_scrape(&standard.registry, [slow], move |[slow]| {
        seen.store(go.lock().recv_timeout(Duration::from_secs(60)).is_ok(), Ordering::Relaxed);
        [vec![slow.series(&[], 0.0)]]
    })
    .unwrap();
    let other = async { send.send(()).unwrap() };
    let ((status, page), ()) = tokio::join!(get(&standard, "/metrics"), other);
    assert_eq!(status, 200);
    assert!(page.contains("\nslow 0\n"), "{page}");
    assert!(came.load(Ordering::Relaxed), "the other task ran during the scrape");
}

#[tokio::test]
async fn metrics_are_the_registry_in_text_with_the_process_start() {
    let standard = standard();
    crate::register_process_metrics(&standard.registry, &BUILD).unwrap();
    let answer = ask_as(&standard, Method::GET, "/metrics").await;
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(answer.headers["cache-control"], "no-cache, private");
    let value = |name: &str| {
        let line = answer.body.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(answer.headers["process-start-time-unix"], value("process_start_time_seconds "));
    assert_ne!(value("process_resident_memory_bytes "), "0");
    assert!(
        answer.body.contains(
            r#"icm_build_info{commit="abc",k8s_compat="1.31-1.37",rustc="rustc 1.95.0",version="0.1.2"} 1"#
        ),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn a_registry_without_series_is_shown_as_a_page() {
    let standard = standard();
    let empty = IntCounterVec::new(Opts::new("without_series", "h"), &["of"]).unwrap();
    standard.registry.register(Box::new(empty)).unwrap();
    let (status, page) = get(&standard, "/metrics").await;
    assert_eq!(status, 200);
    assert!(page.contains("\ndisabled_metrics_total 0\n"), "{page}");
    assert!(
        !page.contains("without_series") && !page.contains("registered_metrics_total"),
        "{page}"
    );
}

/// The lines of `/metrics` that begin so.
async fn series(standard: &Standard, prefix: &str) -> Vec<String> {
    let page = get(standard, "/metrics").await.1;
    page.lines().filter(|line| line.starts_with(prefix)).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_disabled_metric_is_not_shown_and_its_neighbours_are() {
    let disabled = ["hidden".to_owned()].into();
    let standard = exposing(&Exposition { disabled, ..Exposition::default() });
    for name in ["hidden", "hidden_not"] {
        let gauge = IntGauge::new(name, "A gauge.").unwrap();
        standard.registry.register(Box::new(gauge)).unwrap();
    }
    assert_eq!(series(&standard, "hidden").await, ["hidden_not 0"]);
}

#[tokio::test]
async fn metrics_are_counted_by_their_stability_and_those_that_are_disabled_too() {
    let disabled = ["hidden".to_owned(), "unknown".to_owned()].into();
    let standard = exposing(&Exposition { disabled, ..Exposition::default() });
    for (name, help) in [("hidden", "[ALPHA] A gauge."), ("shown", "[ALPHA] A gauge.")] {
        standard.registry.register(Box::new(IntGauge::new(name, help).unwrap())).unwrap();
    }
    let counts = series(&standard, "registered_metrics_total{").await;
    let alpha = "registered_metrics_total{deprecated_version=\"\",stability_level=\"ALPHA\"} 2";
    assert!(counts.iter().any(|line| line == alpha), "{counts:?}");
    assert_eq!(series(&standard, "disabled_metrics_total ").await, ["disabled_metrics_total 2"]);
}

#[tokio::test]
async fn series_with_labels_that_are_not_expected_are_added_up() {
    let values = BTreeSet::from(["a".to_owned()]);
    let label_values = ["requests", "seconds"]
        .map(|metric| ((metric.to_owned(), "from".to_owned()), values.clone()))
        .into();
    let standard = exposing(&Exposition { label_values, ..Exposition::default() });
    let requests = IntCounterVec::new(Opts::new("requests", "h"), &["from", "to"]).unwrap();
    let seconds = HistogramOpts::new("seconds", "h").buckets(vec![1.0, 2.0]);
    let seconds = HistogramVec::new(seconds, &["from"]).unwrap();
    let others = IntCounterVec::new(Opts::new("others", "h"), &["from"]).unwrap();
    for (from, to, count) in [("a", "x", 1), ("b", "x", 2), ("c", "x", 4), ("c", "y", 8)] {
        requests.with_label_values(&[from, to]).inc_by(count);
        seconds.with_label_values(&[from]).observe(1.5);
        others.with_label_values(&[from]).inc();
    }
    standard.registry.register(Box::new(requests)).unwrap();
    standard.registry.register(Box::new(seconds)).unwrap();
    standard.registry.register(Box::new(others)).unwrap();
    assert_eq!(
        series(&standard, "requests").await,
        [
            "requests{from=\"a\",to=\"x\"} 1",
            "requests{from=\"unexpected\",to=\"x\"} 6",
            "requests{from=\"unexpected\",to=\"y\"} 8",
        ]
    );
    assert_eq!(
        series(&standard, "seconds").await,
        [
            "seconds_bucket{from=\"a\",le=\"1\"} 0",
            "seconds_bucket{from=\"a\",le=\"2\"} 1",
            "seconds_bucket{from=\"a\",le=\"+Inf\"} 1",
            "seconds_sum{from=\"a\"} 1.5",
            "seconds_count{from=\"a\"} 1",
            "seconds_bucket{from=\"unexpected\",le=\"1\"} 0",
            "seconds_bucket{from=\"unexpected\",le=\"2\"} 3",
            "seconds_bucket{from=\"unexpected\",le=\"+Inf\"} 3",
            "seconds_sum{from=\"unexpected\"} 4.5",
            "seconds_count{from=\"unexpected\"} 3",
        ]
    );
    assert_eq!(series(&standard, "others{").await.len(), 3, "it has no rule");
}

#[tokio::test]
async fn live_tasks_are_counted_when_scraped() {
    let standard = standard();
    crate::register_process_metrics(&standard.registry, &BUILD).unwrap();
    let _tasks: Vec<_> = (0..5).map(|_| tokio::spawn(std::future::pending::<()>())).collect();
    let page = get(&standard, "/metrics").await.1;
    assert!(page.contains("\ngo_goroutines 5\n"), "{page}");
    assert!(page.contains("\nicm_tokio_busy_seconds_total "), "{page}");
}

#[tokio::test]
async fn slis_count_what_was_asked_until_reset() {
    let standard = failing();
    for path in ["/readyz", "/readyz", "/livez", "/livez/ping", "/readyz?exclude=informer-sync"] {
        get(&standard, path).await;
    }
    let page = get(&standard, "/metrics/slis").await.1;
    let samples: Vec<_> = page.lines().filter(|line| line.starts_with("kubernetes_")).collect();
    assert_eq!(
        samples,
        [
            r#"kubernetes_healthcheck{name="ping",type="livez"} 1"#,
            r#"kubernetes_healthcheck{name="ping",type="readyz"} 1"#,
            r#"kubernetes_healthcheck{name="informer-sync",type="readyz"} 0"#,
            r#"kubernetes_healthchecks_total{name="ping",type="livez",status="success"} 2"#,
            r#"kubernetes_healthchecks_total{name="ping",type="readyz",status="success"} 3"#,
            r#"kubernetes_healthchecks_total{name="informer-sync",type="readyz",status="error"} 2"#,
        ]
    );
    let reset = ask_as(&standard, Method::DELETE, "/metrics/slis").await;
    assert_eq!((reset.status, reset.body.as_str()), (200, "metrics reset\n"));
    let page = get(&standard, "/metrics/slis").await.1;
    assert!(!page.contains("kubernetes_healthchecks_total{"), "{page}");
}

#[tokio::test]
async fn slis_read_no_other_metric_and_tell_when_the_process_began() {
    let standard = standard();
    let unread = Family::gauge("many", "m", &[]).unwrap();
    ::metrics::at_scrape(&standard.registry, [unread], |_| -> [Vec<_>; 1] { panic!("it is read") })
        .unwrap();
    let (status, page) = get(&standard, "/metrics/slis").await;
    assert_eq!(status, 200, "{page}");
    let start = page.lines().find_map(|line| line.strip_prefix("process_start_time_seconds "));
    assert!(start.unwrap().parse::<f64>().unwrap() > 1.7e9, "{page}");
}

#[tokio::test]
async fn a_scraper_that_prefers_openmetrics_gets_it_with_the_start_of_the_process() {
    let standard = standard();
    crate::register_process_metrics(&standard.registry, &BUILD).unwrap();
    let accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
    let answer = ask(&Everyone, &standard, Request::get("/metrics").header("accept", accept)).await;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.headers["content-type"], kind);
    assert!(answer.headers.contains_key("process-start-time-unix"));
    assert!(answer.body.contains("\n# TYPE process_cpu_seconds counter\n"), "{}", answer.body);
    assert!(answer.body.ends_with("\n# EOF\n"), "{}", answer.body);
}
