//! The standard pages to the byte, and how a path finds its page.

mod dispatch;
mod metrics;

use super::*;
use std::future::ready;

use bytes::Bytes;
use http::{Method, Request, request};
use http_body_util::{BodyExt, Empty};

use crate::{Endpoints, Everyone, Guard, Judgement, Peer, PeerCertificate, Reply, Visit};

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
    ask(guard, standard, Request::builder().method(method).uri(uri)).await
}

async fn ask(guard: &dyn Guard, standard: &Standard, request: request::Builder) -> Answer {
    let peer = Peer::new([10, 1, 2, 3].into(), PeerCertificate::Absent);
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let reply: Reply = answer(&standard.pages, guard, peer, request).await;
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
struct DenyAll;

impl Guard for DenyAll {
    fn judge<'a>(&'a self, visit: Visit<'a>) -> Judgement<'a> {
        let refusal = reply::forbidden("system:anonymous", visit.method, visit.path);
        Box::pin(ready(Err(refusal)))
    }
}

#[tokio::test]
async fn every_page_and_every_unknown_path_asks_the_guard() {
    let paths = ["/metrics", "/metrics/slis", "/version", "/healthz/ping", "/livez", "/", "/x"];
    for path in paths {
        let answer = ask_guarded(&DenyAll, &standard(), Method::GET, path).await;
        assert_eq!(answer.status, 403, "{path}");
        assert_eq!(answer.headers["cache-control"], "no-cache, private");
    }
}

#[tokio::test]
async fn a_refusal_is_a_kubernetes_status_to_the_byte() {
    let answer = ask_guarded(&DenyAll, &standard(), Method::DELETE, "/metrics/slis?a=b").await;
    assert_eq!(answer.headers["content-type"], "application/json");
    let forbidden = concat!(
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"forbidden: User \"system:anonymous\" cannot delete path \"/metrics/slis\"","reason":"Forbidden","details":{},"code":403}"#,
        "\n"
    );
    assert_eq!(answer.body, forbidden);
    let body = reply::unauthorized().into_body().collect().await.unwrap().to_bytes();
    let unauthorized = concat!(
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#,
        "\n"
    );
    assert_eq!(body, unauthorized);
}

#[tokio::test]
async fn unknown_paths_are_not_found() {
    for path in ["/", "/metricsx", "/metrics/", "/configz", "/healthz//ping", "*"] {
        assert_eq!(get(&standard(), path).await, (404, "404 page not found\n".to_owned()));
    }
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
