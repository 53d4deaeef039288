pub(crate) mod scene;

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_server_double::{ApiServer, Asked, Reply};
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method};
use serde_json::{Value, json};
use tokio::time::{advance, sleep};

use crate::guard::tests::scene::{Ask, Authority, Folder, Scene, get, options};

/// Knows the token `good`, of `ada`, who may read `/metrics`; `away` ends all answers.
fn server(away: &Arc<AtomicBool>) -> ApiServer {
    let away = Arc::clone(away);
    ApiServer::new(
        move |asked| {
            if away.load(Ordering::Relaxed) { Reply::Silence } else { review(asked) }
        },
    )
}

fn review(asked: &Asked) -> Reply {
    let spec = asked.json()["spec"].clone();
    let status = match asked.path() {
        path if path.ends_with("tokenreviews") => match spec["token"].as_str() {
            Some("good") => json!({"authenticated": true, "user": {"username": "ada"}}),
            Some("nameless") => json!({"authenticated": true, "user": {}}),
            _ => json!({"authenticated": false, "error": "[invalid bearer token]"}),
        },
        path if path.ends_with("subjectaccessreviews") => {
            let attributes = json!({"path": "/metrics", "verb": "get"});
            let allowed = spec["user"] == "ada" && spec["nonResourceAttributes"] == attributes;
            json!({"allowed": allowed})
        }
        _ => Value::Null,
    };
    Reply::Json(201, json!({"status": status}))
}

async fn scene() -> Scene {
    Scene::new(&options(), server(&Arc::default())).await
}

#[tokio::test]
async fn a_token_with_the_right_reads_metrics_and_nothing_else() {
    let scene = scene().await;
    for (ask, expected) in [
        (get("/metrics").token("good"), 200),
        (get("/version").token("good"), 403),
        (get("/metrics").method(Method::POST).token("good"), 403),
        (get("/metrics").token("bad"), 401),
        (get("/metrics").token("nameless"), 401),
        (get("/metrics"), 403),
        (get("/healthz"), 200),
        (get("/healthz").token("good"), 200),
        (get("/healthz/ping"), 403),
    ] {
        assert_eq!(scene.status(&ask).await, expected);
    }
}

#[tokio::test]
async fn bad_credentials_are_refused_on_every_path() {
    let folder = Folder::new("bad");
    let file = folder.write("ca.crt", &Authority::new().pem);
    let with_ca = DelegationOptions { client_ca_file: Some(file), ..options() };
    let scene = Scene::new(&with_ca, server(&Arc::default())).await;
    let stranger = Authority::new().client("system:admin", &["system:masters"]);
    for path in ["/healthz", "/metrics", "/nothing"] {
        assert_eq!(scene.status(&get(path).token("bad")).await, 401, "{path}");
        assert_eq!(scene.status(&get(path).chain(stranger.clone())).await, 401, "{path}");
    }
    let mut no_text = get("/metrics");
    no_text.headers.insert(AUTHORIZATION, HeaderValue::from_bytes(b"Bearer \xff").unwrap());
    assert_eq!(scene.status(&no_text).await, 401);
    assert_eq!(scene.status(&get("/metrics").token("g\u{f6}\u{f6}d")).await, 401);
    // One that is good is enough.
    let both = get("/metrics").chain(stranger).token("good");
    assert_eq!(scene.status(&both).await, 200);
    assert_eq!(scene.metric("authentication_attempts", "failure"), 8);
}

#[tokio::test]
async fn refusals_are_in_the_words_of_kubernetes() {
    let scene = scene().await;
    let (_, anonymous) = scene.answer(&get("/metrics")).await;
    let message = r#"forbidden: User \"system:anonymous\" cannot get path \"/metrics\""#;
    assert!(anonymous.contains(message), "{anonymous}");
    let (_, known) = scene.answer(&get("/x").method(Method::DELETE).token("good")).await;
    assert!(known.contains(r#"forbidden: User \"ada\" cannot delete path \"/x\""#), "{known}");
    let (_, bad) = scene.answer(&get("/metrics").token("bad")).await;
    assert!(bad.contains(r#""message":"Unauthorized""#), "{bad}");
}

#[tokio::test]
async fn certificates_need_no_review_of_who_they_are_of() {
    let (clients, folder) = (Authority::new(), Folder::new("certificates"));
    let file = folder.write("ca.crt", &clients.pem);
    let with_ca = DelegationOptions { client_ca_file: Some(file), ..options() };
    let scene = Scene::new(&with_ca, server(&Arc::default())).await;
    let as_client = |user: &str, group| get("/metrics").chain(clients.client(user, &[group]));
    assert_eq!(scene.status(&as_client("eve", "system:masters")).await, 200);
    assert_eq!(scene.server.asked().len(), 0, "members of system:masters may do everything");
    assert_eq!(scene.status(&as_client("ada", "team")).await, 200);
    assert_eq!(scene.status(&as_client("eve", "team")).await, 403);
    let asked: Vec<_> = scene.server.asked().iter().map(|asked| asked.path().to_owned()).collect();
    assert!(asked.iter().all(|path| path.ends_with("subjectaccessreviews")), "{asked:?}");
    let spec = scene.server.asked()[0].json()["spec"].clone();
    assert_eq!(spec["groups"], json!(["team", "system:authenticated"]));
}

#[tokio::test]
async fn named_readers_of_metrics_need_no_review_of_access() {
    let metrics_readers = vec!["ada".to_owned(), "group:system:unauthenticated".to_owned()];
    let scene =
        Scene::new(&DelegationOptions { metrics_readers, ..options() }, server(&Arc::default()))
            .await;
    for (ask, expected) in [
        (get("/metrics/slis").token("good"), 200),
        (get("/metrics"), 200),
        (get("/metrics").method(Method::DELETE), 403),
        (get("/version"), 403),
        (get("/metrics").token("bad"), 401),
    ] {
        assert_eq!(scene.status(&ask).await, expected);
    }
}

#[tokio::test]
async fn nothing_is_asked_twice_within_its_time() {
    let scene = scene().await;
    for _ in 0..3 {
        assert_eq!(scene.status(&get("/metrics").token("good")).await, 200);
        assert_eq!(scene.status(&get("/metrics").token("bad")).await, 401);
        assert_eq!(scene.status(&get("/metrics")).await, 403);
    }
    assert_eq!(scene.server.asked().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_known_reader_is_served_within_a_second_while_the_server_is_away() {
    let away = Arc::default();
    let scene = Scene::new(&options(), server(&away)).await;
    let reader = get("/metrics").token("good");
    assert_eq!(scene.status(&reader).await, 200);
    away.store(true, Ordering::Relaxed);
    let frozen = Instant::now();
    sleep(Duration::from_secs(15)).await;
    while frozen.elapsed() < Duration::from_secs(285) {
        let begun = Instant::now();
        assert_eq!(scene.status(&reader).await, 200);
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        sleep(Duration::from_secs(15)).await;
    }
    assert!(scene.metric("icm_delegated_auth_stale_total", "authn") > 10);
    assert!(scene.metric("icm_delegated_auth_stale_total", "authz") > 10);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(scene.status(&reader).await, 401, "the grace is over");

    away.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(15)).await;
    assert_eq!(scene.status(&reader).await, 200);
}

#[tokio::test(start_paused = true)]
async fn while_the_server_is_away_a_known_reader_keeps_metrics_and_nothing_else() {
    let away: Arc<AtomicBool> = Arc::default();
    let script = Arc::clone(&away);
    let server = ApiServer::new(move |asked| {
        if AtomicBool::load(&script, Ordering::Relaxed) {
            return Reply::Silence;
        }
        if asked.path().ends_with("tokenreviews") {
            return review(asked);
        }
        Reply::Json(201, json!({"status": {"allowed": true}}))
    });
    let scene = Scene::new(&options(), server).await;
    let paths = ["/metrics", "/metrics/slis", "/configz", "/debug/controllers", "/version"];
    for path in paths {
        assert_eq!(scene.status(&get(path).token("good")).await, 200, "{path}");
    }
    away.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(15)).await;
    for path in paths {
        let expected = if path.starts_with("/metrics") { 200 } else { 401 };
        assert_eq!(scene.status(&get(path).token("good")).await, expected, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_our_own_identity_gives_no_reader_any_grace() {
    let refuses: Arc<AtomicBool> = Arc::default();
    let script = Arc::clone(&refuses);
    let server = ApiServer::new(move |asked| {
        if AtomicBool::load(&script, Ordering::Relaxed) {
            return Reply::failure(403, "Forbidden");
        }
        review(asked)
    });
    let scene = Scene::new(&options(), server).await;
    let reader = get("/metrics").token("good");
    assert_eq!(scene.status(&reader).await, 200);
    refuses.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(15)).await;
    assert_eq!(scene.status(&reader).await, 401);
}

#[tokio::test(start_paused = true)]
async fn while_the_server_is_away_others_are_refused_and_health_is_answered() {
    let (away, folder) = (Arc::new(AtomicBool::new(true)), Folder::new("away"));
    let clients = Authority::new();
    let file = folder.write("ca.crt", &clients.pem);
    let with_ca = DelegationOptions { client_ca_file: Some(file), ..options() };
    let scene = Scene::new(&with_ca, server(&away)).await;
    assert_eq!(scene.status(&get("/livez")).await, 200);
    assert_eq!(scene.server.asked().len(), 0);
    let begun = Instant::now();
    assert_eq!(scene.status(&get("/livez").token("good")).await, 200);
    assert_eq!(begun.elapsed(), BRIEF, "it depends on no answer");
    assert_eq!(scene.status(&get("/metrics").token("good")).await, 401);
    let known = clients.client("ada", &["team"]);
    let (status, body) = scene.answer(&get("/metrics").chain(known)).await;
    assert_eq!(status, 503);
    assert!(!body.contains("http") && !body.contains("127.0.0.1"), "{body}");
    let master = clients.client("eve", &["system:masters"]);
    assert_eq!(scene.status(&get("/metrics").chain(master)).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_never_let_through_by_an_earlier_answer() {
    let away = Arc::default();
    let script = Arc::clone(&away);
    let server = ApiServer::new(move |asked| {
        if AtomicBool::load(&script, Ordering::Relaxed) {
            return Reply::Silence;
        }
        if asked.path().ends_with("tokenreviews") {
            return review(asked);
        }
        Reply::Json(201, json!({"status": {"allowed": true}}))
    });
    let scene = Scene::new(&options(), server).await;
    let change = get("/debug/flags/v").method(Method::PUT).token("good");
    assert_eq!(scene.status(&change).await, 200);
    away.store(true, Ordering::Relaxed);
    advance(Duration::from_secs(10)).await;
    assert_eq!(scene.status(&change).await, 401);
}

#[tokio::test]
async fn without_reviewers_tokens_and_rights_are_refused_and_health_is_answered() {
    let scene = Scene::with(&options(), server(&Arc::default()), Reviewers::default()).await;
    let asks: [(Ask, u16); 4] = [
        (get("/metrics").token("good"), 401),
        (get("/metrics"), 403),
        (get("/livez"), 200),
        (get("/livez").token("good"), 200),
    ];
    for (ask, expected) in asks {
        assert_eq!(scene.status(&ask).await, expected);
    }
}
