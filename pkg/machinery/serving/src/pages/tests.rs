//! The standard pages to the byte, and how a path finds its page.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Empty};
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts};

use super::*;
use crate::{Endpoints, Everyone, Guard, Judgement, Peer, PeerCertificate, Reply, Visit, dispatch};

const BUILD: BuildInfo =
    BuildInfo { version: "0.1.2", commit: "abc", rustc: "rustc 1.95.0", k8s_compat: "1.31-1.37" };

/// The standard pages and what stands behind them.
struct Standard {
    health: Health,
    registry: Registry,
    pages: Pages,
}

fn standard() -> Standard {
    exposing(&Exposition::default())
}

fn exposing(exposition: &Exposition) -> Standard {
    let (health, registry) = (Health::new(), Registry::new());
    let pages = Pages::standard(&health, &registry, &BUILD, exposition);
    Standard { health, registry, pages }
}

/// Pages with one failing check.
fn failing() -> Standard {
    let standard = standard();
    let reason = || Err("https://secret:6443".to_owned());
    standard.health.add("informer-sync", Endpoints::READY, reason);
    standard
}

struct Answer {
    status: u16,
    headers: http::HeaderMap,
    body: String,
}

async fn ask_as(standard: &Standard, method: Method, uri: &str) -> Answer {
    ask_guarded(&Everyone, standard, method, uri).await
}

async fn ask_guarded(guard: &dyn Guard, standard: &Standard, method: Method, uri: &str) -> Answer {
    let peer = Peer::new([10, 1, 2, 3].into(), PeerCertificate::Absent);
    let request = Request::builder().method(method).uri(uri).body(Empty::<Bytes>::new()).unwrap();
    let reply: Reply = dispatch::answer(&standard.pages, guard, peer, request).await;
    let (parts, body) = reply.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

async fn get(standard: &Standard, uri: &str) -> (u16, String) {
    let answer = ask_as(standard, Method::GET, uri).await;
    (answer.status, answer.body)
}

fn ok(body: &str) -> (u16, String) {
    (200, body.to_owned())
}

#[tokio::test]
async fn health_bodies_are_those_of_kubernetes() {
    let standard = standard();
    standard.health.add("leaderElection", Endpoints::ALL, || Ok(()));
    for name in ["healthz", "livez", "readyz"] {
        let ask = async |query: &str| get(&standard, &format!("/{name}{query}")).await;
        assert_eq!(ask("").await, ok("ok"));
        assert_eq!(ask("?verbose=").await, ask("?verbose").await);
        assert_eq!(
            ask("?verbose").await,
            ok(&format!("[+]ping ok\n[+]leaderElection ok\n{name} check passed\n"))
        );
        assert_eq!(
            ask("?verbose&exclude=leader%45lection&exclude=ping").await,
            ok(&format!(
                "[+]ping excluded: ok\n[+]leaderElection excluded: ok\n{name} check passed\n"
            ))
        );
        assert_eq!(
            ask("?exclude=b&verbose&exclude=a").await,
            ok(&format!(
                "[+]ping ok\n[+]leaderElection ok\nwarn: some health checks cannot be excluded: \
                 no matches for \"a\",\"b\"\n{name} check passed\n"
            ))
        );
    }
}

#[tokio::test]
async fn a_failure_shows_all_lines_but_not_the_reason() {
    let standard = failing();
    let body = "[+]ping ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n";
    assert_eq!(get(&standard, "/readyz").await, (500, body.to_owned()));
    assert_eq!(get(&standard, "/readyz?verbose").await, (500, body.to_owned()));
    assert_eq!(get(&standard, "/readyz?exclude=informer-sync").await, ok("ok"));
    assert_eq!(get(&standard, "/livez").await, ok("ok"), "not one of its checks");
}

#[tokio::test]
async fn health_answers_any_method_as_uncached_plain_text() {
    for method in [Method::POST, Method::DELETE, Method::HEAD] {
        let answer = ask_as(&failing(), method, "/readyz").await;
        assert_eq!(answer.status, 500);
        assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers["cache-control"], "no-cache, private");
    }
}

#[tokio::test]
async fn a_single_check_answers_on_its_own_path_with_the_reason() {
    let standard = failing();
    assert_eq!(get(&standard, "/livez/ping").await, ok("ok"));
    assert_eq!(
        get(&standard, "/readyz/informer-sync").await,
        (500, "internal server error: https://secret:6443\n".to_owned())
    );
    for absent in ["/livez/informer-sync", "/readyz/", "/readyz/no", "/ready/ping"] {
        assert_eq!(get(&standard, absent).await.0, 404, "{absent}");
    }
}

/// Refuses all that is asked for, as a reader without rights.
struct Nobody;

impl Guard for Nobody {
    fn judge<'a>(&'a self, visit: Visit<'a>) -> Judgement<'a> {
        let refusal = reply::forbidden("system:anonymous", visit.method, visit.path);
        Box::pin(ready(Err(refusal)))
    }
}

#[tokio::test]
async fn every_page_and_every_unknown_path_asks_the_guard() {
    let paths = ["/metrics", "/metrics/slis", "/version", "/healthz/ping", "/livez", "/", "/x"];
    for path in paths {
        let answer = ask_guarded(&Nobody, &standard(), Method::GET, path).await;
        assert_eq!(answer.status, 403, "{path}");
        assert_eq!(answer.headers["cache-control"], "no-cache, private");
    }
}

#[tokio::test]
async fn a_refusal_is_a_kubernetes_status_to_the_byte() {
    let answer = ask_guarded(&Nobody, &standard(), Method::DELETE, "/metrics/slis?a=b").await;
    assert_eq!(answer.headers["content-type"], "application/json");
    let forbidden = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"forbidden: User \"system:anonymous\" cannot delete path \"/metrics/slis\"","reason":"Forbidden","details":{},"code":403}"#;
    assert_eq!(answer.body, forbidden);
    let body = reply::unauthorized().into_body().collect().await.unwrap().to_bytes();
    let unauthorized = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
    assert_eq!(body, unauthorized);
}

#[tokio::test]
async fn unknown_paths_are_not_found() {
    for path in ["/", "/metricsx", "/metrics/", "/configz", "/healthz//ping", "*"] {
        assert_eq!(get(&standard(), path).await, (404, "404 page not found\n".to_owned()));
    }
}

/// A gauge that takes a while to be collected: until `go` comes.
struct SlowGauge {
    gauge: IntGauge,
    go: Mutex<mpsc::Receiver<()>>,
    came: Arc<AtomicBool>,
}

impl Collector for SlowGauge {
    fn desc(&self) -> Vec<&Desc> {
        self.gauge.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let came = self.go.lock().recv_timeout(Duration::from_secs(60)).is_ok();
        self.came.store(came, Ordering::Relaxed);
        self.gauge.collect()
    }
}

#[tokio::test]
async fn a_long_scrape_holds_up_no_other_task() {
    let standard = standard();
    let (send, go) = mpsc::channel();
    let came = Arc::new(AtomicBool::new(false));
    let gauge = IntGauge::new("slow", "Slow.").unwrap();
    let slow = SlowGauge { gauge, go: Mutex::new(go), came: came.clone() };
    standard.registry.register(Box::new(slow)).unwrap();
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
}

#[tokio::test]
async fn version_is_json_with_the_names_of_kubernetes() {
    let (status, body) = get(&standard(), "/version").await;
    let version: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200);
    assert_eq!(
        (&version["major"], &version["minor"], &version["gitVersion"], &version["gitCommit"]),
        (&"0".into(), &"1".into(), &"v0.1.2".into(), &"abc".into())
    );
    assert_eq!(version["compiler"], "rustc 1.95.0");
    let platform = version["platform"].as_str().unwrap();
    assert!(["linux/amd64", "linux/arm64"].contains(&platform), "{platform}");
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

/// What another page shows, and takes long to read.
struct Unread(prometheus::core::Desc);

impl prometheus::core::Collector for Unread {
    fn desc(&self) -> Vec<&prometheus::core::Desc> {
        vec![&self.0]
    }

    fn collect(&self) -> Vec<prometheus::proto::MetricFamily> {
        panic!("it is read");
    }
}

#[tokio::test]
async fn slis_read_no_other_metric_and_tell_when_the_process_began() {
    let standard = standard();
    let desc = prometheus::core::Desc::new("many".into(), "m".into(), vec![], [].into()).unwrap();
    standard.registry.register(Box::new(Unread(desc))).unwrap();
    let (status, page) = get(&standard, "/metrics/slis").await;
    assert_eq!(status, 200, "{page}");
    let start = page.lines().find_map(|line| line.strip_prefix("process_start_time_seconds "));
    assert!(start.unwrap().parse::<f64>().unwrap() > 1.7e9, "{page}");
}

async fn said(pages: &Pages, path: &str) -> (u16, String) {
    let standard = Standard { pages: pages.clone(), ..standard() };
    get(&standard, path).await
}

fn page(path: &str, says: &'static str) -> Page {
    Page::new(path, Access::Authorized, move |_| ready(reply::text(StatusCode::OK, says)))
}

#[tokio::test]
async fn a_path_stands_for_itself_and_with_a_slash_for_what_is_below_and_the_longest_wins() {
    let pages = Pages::new();
    for (path, says) in [("/debug/", "below"), ("/debug/a", "a"), ("/debug/a/", "below a")] {
        pages.add(page(path, says));
    }
    for (path, says) in [
        ("/debug/", "below"),
        ("/debug/b", "below"),
        ("/debug/a", "a"),
        ("/debug/a/", "below a"),
        ("/debug/a/c/d", "below a"),
        ("/debug/ab", "below"),
    ] {
        assert_eq!(said(&pages, path).await, ok(says), "{path}");
    }
    for unknown in ["/debug", "/", "/debugger/x"] {
        assert_eq!(said(&pages, unknown).await.0, 404, "{unknown}");
    }
}

#[tokio::test]
async fn pages_come_and_are_replaced_while_the_server_runs() {
    let pages = Pages::new();
    let seen_by_the_server = pages.clone();
    assert_eq!(said(&seen_by_the_server, "/configz").await.0, 404);
    pages.add(page("/configz", "first"));
    assert_eq!(said(&seen_by_the_server, "/configz").await, ok("first"));
    pages.add(page("/configz", "second"));
    assert_eq!(said(&seen_by_the_server, "/configz").await, ok("second"));
}
