//! The standard pages to the byte, and how a path finds its page.

use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Empty};
use parking_lot::Mutex;
use prometheus::IntGauge;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use super::*;
use crate::{Endpoints, Peer, PeerCertificate, Reply, dispatch};

const HOME: &str = "127.0.0.1";
const AWAY: &str = "10.1.2.3";

const BUILD: BuildInfo =
    BuildInfo { version: "0.1.2", commit: "abc", rustc: "rustc 1.95.0", k8s_compat: "1.31-1.37" };

/// The standard pages and what stands behind them.
struct Standard {
    health: Health,
    registry: Registry,
    pages: Pages,
}

fn standard() -> Standard {
    let (health, registry) = (Health::new(), Registry::new());
    let pages = Pages::standard(&health, &registry, &BUILD);
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

async fn ask_as(standard: &Standard, peer: &str, method: Method, uri: &str) -> Answer {
    let peer = Peer::new(peer.parse().unwrap(), PeerCertificate::Absent);
    let request = Request::builder().method(method).uri(uri).body(Empty::<Bytes>::new()).unwrap();
    let reply: Reply = dispatch::answer(&standard.pages, peer, request).await;
    let (parts, body) = reply.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

async fn get(standard: &Standard, peer: &str, uri: &str) -> (u16, String) {
    let answer = ask_as(standard, peer, Method::GET, uri).await;
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
        let ask = async |query: &str| get(&standard, AWAY, &format!("/{name}{query}")).await;
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
    assert_eq!(get(&standard, AWAY, "/readyz").await, (500, body.to_owned()));
    assert_eq!(get(&standard, AWAY, "/readyz?verbose").await, (500, body.to_owned()));
    assert_eq!(get(&standard, AWAY, "/readyz?exclude=informer-sync").await, ok("ok"));
    assert_eq!(get(&standard, AWAY, "/livez").await, ok("ok"), "not one of its checks");
}

#[tokio::test]
async fn health_answers_any_method_as_uncached_plain_text() {
    for method in [Method::POST, Method::DELETE, Method::HEAD] {
        let answer = ask_as(&failing(), AWAY, method, "/readyz").await;
        assert_eq!(answer.status, 500);
        assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers["cache-control"], "no-cache, private");
    }
}

#[tokio::test]
async fn a_single_check_answers_on_its_own_path_with_the_reason() {
    let standard = failing();
    assert_eq!(get(&standard, HOME, "/livez/ping").await, ok("ok"));
    assert_eq!(
        get(&standard, HOME, "/readyz/informer-sync").await,
        (500, "internal server error: https://secret:6443\n".to_owned())
    );
    for absent in ["/livez/informer-sync", "/readyz/", "/readyz/no", "/ready/ping"] {
        assert_eq!(get(&standard, HOME, absent).await.0, 404, "{absent}");
    }
}

#[tokio::test]
async fn remote_peers_get_the_health_paths_and_nothing_else() {
    let standard = standard();
    for path in ["/metrics", "/metrics/slis", "/version", "/healthz/ping", "/healthz/", "/", "/x"] {
        for peer in [AWAY, "::ffff:10.1.2.3", "2001:db8::1"] {
            let answer = ask_as(&standard, peer, Method::GET, path).await;
            assert_eq!(answer.status, 403, "{path} from {peer}");
            assert_eq!(answer.headers["cache-control"], "no-cache, private");
        }
        for peer in [HOME, "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert_ne!(get(&standard, peer, path).await.0, 403, "{path} from {peer}");
        }
    }
}

#[tokio::test]
async fn a_refusal_is_a_kubernetes_status() {
    let answer = ask_as(&standard(), AWAY, Method::DELETE, "/metrics/slis").await;
    assert_eq!(answer.headers["content-type"], "application/json");
    let status: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["apiVersion"], "v1");
    assert_eq!(status["status"], "Failure");
    assert_eq!(status["reason"], "Forbidden");
    assert_eq!(status["code"], 403);
    let message = status["message"].as_str().unwrap();
    let start = "forbidden: User \"system:anonymous\" cannot delete path \"/metrics/slis\"";
    assert!(message.starts_with(start), "{message}");
    assert!(message.contains("not built yet"), "{message}");
}

#[tokio::test]
async fn unknown_paths_are_not_found() {
    for path in ["/", "/metricsx", "/metrics/", "/configz", "/healthz//ping", "*"] {
        assert_eq!(get(&standard(), HOME, path).await, (404, "404 page not found\n".to_owned()));
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
    let ((status, page), ()) = tokio::join!(get(&standard, HOME, "/metrics"), other);
    assert_eq!(status, 200);
    assert!(page.contains("\nslow 0\n"), "{page}");
    assert!(came.load(Ordering::Relaxed), "the other task ran during the scrape");
}

#[tokio::test]
async fn metrics_are_the_registry_in_text_with_the_process_start() {
    let standard = standard();
    crate::register_process_metrics(&standard.registry, &BUILD).unwrap();
    let answer = ask_as(&standard, HOME, Method::GET, "/metrics").await;
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
async fn live_tasks_are_counted_when_scraped() {
    let standard = standard();
    crate::register_process_metrics(&standard.registry, &BUILD).unwrap();
    let _tasks: Vec<_> = (0..5).map(|_| tokio::spawn(std::future::pending::<()>())).collect();
    let page = get(&standard, HOME, "/metrics").await.1;
    assert!(page.contains("\ngo_goroutines 5\n"), "{page}");
}

#[tokio::test]
async fn version_is_json_with_the_names_of_kubernetes() {
    let (status, body) = get(&standard(), HOME, "/version").await;
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
        get(&standard, AWAY, path).await;
    }
    let page = get(&standard, HOME, "/metrics/slis").await.1;
    let samples: Vec<_> = page.lines().filter(|line| line.starts_with("kubernetes_")).collect();
    assert_eq!(
        samples,
        [
            r#"kubernetes_healthcheck{name="ping",type="livez"} 1"#,
            r#"kubernetes_healthcheck{name="ping",type="readyz"} 1"#,
            r#"kubernetes_healthcheck{name="informer-sync",type="readyz"} 0"#,
            r#"kubernetes_healthchecks_total{name="ping",type="livez",status="success"} 1"#,
            r#"kubernetes_healthchecks_total{name="ping",type="readyz",status="success"} 3"#,
            r#"kubernetes_healthchecks_total{name="informer-sync",type="readyz",status="error"} 2"#,
        ]
    );
    let reset = ask_as(&standard, HOME, Method::DELETE, "/metrics/slis").await;
    assert_eq!((reset.status, reset.body.as_str()), (200, "metrics reset\n"));
    let page = get(&standard, HOME, "/metrics/slis").await.1;
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
    let (status, page) = get(&standard, HOME, "/metrics/slis").await;
    assert_eq!(status, 200, "{page}");
    let start = page.lines().find_map(|line| line.strip_prefix("process_start_time_seconds "));
    assert!(start.unwrap().parse::<f64>().unwrap() > 1.7e9, "{page}");
}

async fn said(pages: &Pages, path: &str) -> (u16, String) {
    let standard = Standard { pages: pages.clone(), ..standard() };
    get(&standard, HOME, path).await
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
