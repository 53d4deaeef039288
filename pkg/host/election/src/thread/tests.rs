use std::sync::{Mutex, mpsc};
use std::time::Duration;

use api_server_double::{ApiServer, Asked, Reply};
use client::{ClientOptions, RequestMetrics};
use prometheus::Registry;
use resilience::BootInstant;
use serde_json::Value;
use tokio::net::TcpListener;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// A server that keeps one Lease.
fn lease_server() -> ApiServer {
    let lease = Mutex::new(None);
    ApiServer::new(move |asked| act(asked, &mut lease.lock().unwrap()))
}

fn act(asked: &Asked, lease: &mut Option<Value>) -> Reply {
    if *asked.method() == "GET" {
        let missing = || Reply::failure(404, "NotFound");
        return lease.clone().map_or_else(missing, |lease| Reply::Json(200, lease));
    }
    let mut stored = asked.json();
    let version = lease.as_ref().map_or(0, |l| version_of(l) + 1);
    stored["metadata"]["resourceVersion"] = version.to_string().into();
    *lease = Some(stored.clone());
    Reply::Json(200, stored)
}

fn version_of(lease: &Value) -> u64 {
    lease["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

fn config() -> ElectionConfig {
    ElectionConfig {
        namespace: "kube-system".into(),
        name: "icm".into(),
        identity: "host_1".into(),
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_millis(50),
    }
}

async fn start(config: ElectionConfig, master: String) -> (Result<Elector, ElectionError>, Fence) {
    let registry = Registry::new();
    let options = ClientOptions {
        kubeconfig: None,
        master: Some(master),
        product: "infra-controller-manager".into(),
        version: "v1".into(),
        commit: "abc".into(),
    };
    let clients = Clients::load(&options, &RequestMetrics::new(&registry).unwrap()).await.unwrap();
    let metrics = ElectionMetrics::new(&registry).unwrap();
    let fence = Fence::closed();
    let election = Election {
        config,
        clients,
        metrics,
        fence: fence.clone(),
        on_event: Box::new(|_| {}),
        may_have_predecessor: Box::new(|| Box::pin(async { Ok(false) })),
        place: Place::Threads,
    };
    (spawn(election), fence)
}

#[tokio::test]
async fn an_elector_leads_renews_and_releases_with_get_post_and_put_only() {
    let server = lease_server();
    let loopback = server.listen().await;
    let (elector, fence) = start(config(), loopback.url.clone()).await;
    let elector = elector.unwrap();
    let mut status = elector.leadership();
    let leads = status.wait_for(|s| *s == Leadership::Leading);
    tokio::time::timeout(PATIENCE, leads).await.unwrap().unwrap();
    assert!(fence.check().is_ok());
    assert_eq!(elector.health_check()(), Ok(()));
    server.until_asked(5).await;
    assert_eq!(elector.release().await, Released::Freed);
    assert!(fence.check().is_err());
    let seen = server.asked();
    let line = |asked: &Asked| format!("{} {}", asked.method(), asked.head.uri);
    let lines: Vec<_> = seen.iter().map(line).collect();
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    assert_eq!(lines[0], format!("GET {path}/icm"));
    assert!(lines[1].starts_with(&format!("POST {path}")), "{lines:?}");
    // A release that meets a renewal under way reads first.
    let one =
        |l: &String| ["GET ", "PUT "].iter().any(|v| l.starts_with(&format!("{v}{path}/icm")));
    assert!(lines[2..].iter().all(one), "{lines:?}");
    assert!(lines[2..5].iter().all(|l| l.starts_with("PUT")), "{lines:?}");
    assert!(seen.iter().all(|r| r.header("user-agent").ends_with("/leader-election")), "{seen:?}");
}

#[tokio::test]
async fn a_server_that_is_down_leaves_a_healthy_standby() {
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (elector, fence) = start(config(), format!("http://{}", dead.local_addr().unwrap())).await;
    let elector = elector.unwrap();
    // Whoever asks again has failed before.
    for _ in 0..3 {
        drop(tokio::time::timeout(PATIENCE, dead.accept()).await.unwrap().unwrap());
    }
    assert_eq!(elector.health_check()(), Ok(()));
    assert!(fence.check().is_err());
    assert_eq!(*elector.leadership().borrow(), Leadership::Standby { holder: None });
    assert_eq!(elector.release().await, Released::NotHeld);
}

#[tokio::test]
async fn timings_that_cannot_work_start_nothing() {
    let config = ElectionConfig { renew_deadline: Duration::from_secs(15), ..config() };
    let (elector, _) = start(config, "http://127.0.0.1:1".into()).await;
    let Err(ElectionError::Config(problems)) = elector else { panic!("it started") };
    assert!(problems[0].starts_with("--leader-elect-lease-duration: "), "{problems:?}");
}

#[test]
fn only_a_leader_whose_lease_ran_out_long_ago_is_unhealthy() {
    let limit = Duration::from_secs(35);
    let term = Term::new(&Fence::closed());
    assert_eq!(check(&term, limit), Ok(()), "a standby");
    let boot = BootInstant::now().as_nanos();
    let before = |d: Duration| {
        resilience::BootInstant::from_nanos(
            boot.saturating_sub(u64::try_from(d.as_nanos()).unwrap()),
        )
    };
    term.renew(before(Duration::from_secs(1)), limit);
    assert_eq!(check(&term, limit), Ok(()));
    term.renew(before(Duration::from_secs(36)), limit);
    assert!(check(&term, limit).unwrap_err().contains("last renewed 36."));
    term.lose(Duration::ZERO);
    assert_eq!(check(&term, limit), Ok(()), "a loser is on its way out, not unhealthy");
}

fn watched(term: &Arc<Term>) -> (mpsc::Receiver<i32>, JoinHandle<()>) {
    let (exits, seen) = mpsc::channel();
    let exit: Exit = Arc::new(move |code| exits.send(code).unwrap());
    (seen, start_watchdog(Arc::clone(term), exit).unwrap())
}

#[test]
fn a_leader_that_stops_renewing_is_ended_with_code_1_and_not_before_its_limit() {
    let term = Arc::new(Term::new(&Fence::closed()));
    let start = BootInstant::now();
    term.renew(start, Duration::from_millis(250));
    let (exits, _thread) = watched(&term);
    assert_eq!(exits.recv_timeout(PATIENCE), Ok(1));
    assert!(start.elapsed() >= Duration::from_millis(250));
}

#[test]
fn a_lost_lease_ends_the_process_even_when_the_elector_is_gone() {
    let term = Arc::new(Term::new(&Fence::closed()));
    term.renew(BootInstant::now(), PATIENCE);
    term.lose(Duration::from_millis(50));
    let (exits, _thread) = watched(&term);
    drop(term);
    assert_eq!(exits.recv_timeout(PATIENCE), Ok(1));
}

#[test]
fn standbys_and_released_leaders_are_let_live_and_the_thread_ends_with_them() {
    let term = Arc::new(Term::new(&Fence::closed()));
    let (exits, thread) = watched(&term);
    term.renew(BootInstant::now(), PATIENCE);
    term.end();
    drop(term);
    thread.join().unwrap();
    assert!(exits.try_recv().is_err());
}
