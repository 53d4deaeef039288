//! The table of host.md 5.4, to the byte, for what is built.

use http_body_util::BodyExt;

use super::*;
use crate::Endpoints;

const HOME: &str = "127.0.0.1";
const AWAY: &str = "10.1.2.3";

fn routes() -> Routes {
    let version =
        BuildInfo { version: "0.1.2", commit: "abc", rustc: "1.95.0", k8s_compat: "1.31-1.37" };
    Routes { health: Health::new(), registry: Registry::new(), version }
}

/// Routes with one failing check.
fn failing() -> Routes {
    let routes = routes();
    routes.health.add("informer-sync", Endpoints::READY, || Err("https://secret:6443".to_owned()));
    routes
}

struct Answer {
    status: u16,
    headers: http::HeaderMap,
    body: String,
}

async fn ask_as(routes: &Routes, peer: &str, method: Method, uri: &str) -> Answer {
    let reply = routes.answer(peer.parse().unwrap(), &method, &uri.parse().unwrap());
    let (parts, body) = reply.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

async fn get(routes: &Routes, peer: &str, uri: &str) -> (u16, String) {
    let answer = ask_as(routes, peer, Method::GET, uri).await;
    (answer.status, answer.body)
}

fn ok(body: &str) -> (u16, String) {
    (200, body.to_owned())
}

#[tokio::test]
async fn health_bodies_are_those_of_kubernetes() {
    let routes = routes();
    routes.health.add("leaderElection", Endpoints::ALL, || Ok(()));
    for name in ["healthz", "livez", "readyz"] {
        let ask = async |query: &str| get(&routes, AWAY, &format!("/{name}{query}")).await;
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
    let routes = failing();
    let body = "[+]ping ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n";
    assert_eq!(get(&routes, AWAY, "/readyz").await, (500, body.to_owned()));
    assert_eq!(get(&routes, AWAY, "/readyz?verbose").await, (500, body.to_owned()));
    assert_eq!(get(&routes, AWAY, "/readyz?exclude=informer-sync").await, ok("ok"));
    assert_eq!(get(&routes, AWAY, "/livez").await, ok("ok"), "not one of its checks");
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
    let routes = failing();
    assert_eq!(get(&routes, HOME, "/livez/ping").await, ok("ok"));
    assert_eq!(
        get(&routes, HOME, "/readyz/informer-sync").await,
        (500, "internal server error: https://secret:6443\n".to_owned())
    );
    for absent in ["/livez/informer-sync", "/readyz/", "/readyz/no", "/ready/ping"] {
        assert_eq!(get(&routes, HOME, absent).await.0, 404, "{absent}");
    }
}

#[tokio::test]
async fn strangers_get_the_health_paths_and_nothing_else() {
    let routes = routes();
    for path in ["/metrics", "/metrics/slis", "/version", "/healthz/ping", "/healthz/", "/", "/x"] {
        for peer in [AWAY, "::ffff:10.1.2.3", "2001:db8::1"] {
            let answer = ask_as(&routes, peer, Method::GET, path).await;
            assert_eq!(answer.status, 403, "{path} from {peer}");
            assert_eq!(answer.headers["cache-control"], "no-cache, private");
        }
        for peer in [HOME, "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert_ne!(get(&routes, peer, path).await.0, 403, "{path} from {peer}");
        }
    }
}

#[tokio::test]
async fn a_refusal_is_a_kubernetes_status() {
    let answer = ask_as(&routes(), AWAY, Method::DELETE, "/metrics/slis").await;
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
        assert_eq!(get(&routes(), HOME, path).await, (404, "404 page not found\n".to_owned()));
    }
}

#[tokio::test]
async fn metrics_are_the_registry_in_text_with_the_process_start() {
    let routes = routes();
    crate::register_process_metrics(&routes.registry, &routes.version).unwrap();
    let answer = ask_as(&routes, HOME, Method::GET, "/metrics").await;
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
            r#"icm_build_info{commit="abc",k8s_compat="1.31-1.37",rustc="1.95.0",version="0.1.2"} 1"#
        ),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn live_tasks_are_counted_when_scraped() {
    let routes = routes();
    crate::register_process_metrics(&routes.registry, &routes.version).unwrap();
    let _tasks: Vec<_> = (0..5).map(|_| tokio::spawn(std::future::pending::<()>())).collect();
    let page = get(&routes, HOME, "/metrics").await.1;
    assert!(page.contains("\ngo_goroutines 5\n"), "{page}");
}

#[tokio::test]
async fn version_is_json_with_the_names_of_kubernetes() {
    let (status, body) = get(&routes(), HOME, "/version").await;
    let version: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200);
    assert_eq!(
        (&version["major"], &version["minor"], &version["gitVersion"], &version["gitCommit"]),
        (&"0".into(), &"1".into(), &"v0.1.2".into(), &"abc".into())
    );
}

#[tokio::test]
async fn slis_count_what_was_asked_until_reset() {
    let routes = failing();
    for path in ["/readyz", "/readyz", "/livez", "/livez/ping", "/readyz?exclude=informer-sync"] {
        get(&routes, AWAY, path).await;
    }
    let page = get(&routes, HOME, "/metrics/slis").await.1;
    let samples: Vec<_> = page.lines().filter(|line| !line.starts_with('#')).collect();
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
    let reset = ask_as(&routes, HOME, Method::DELETE, "/metrics/slis").await;
    assert_eq!((reset.status, reset.body.as_str()), (200, "metrics reset\n"));
    let page = get(&routes, HOME, "/metrics/slis").await.1;
    assert!(!page.contains("kubernetes_healthchecks_total{"), "{page}");
}
