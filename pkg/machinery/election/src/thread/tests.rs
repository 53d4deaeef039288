//! The whole of it over real sockets: thread, client, requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

use client::{ClientOptions, RequestMetrics};
use prometheus::Registry;
use serde_json::{Value, json};

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

type Requests = Arc<Mutex<Vec<String>>>;

/// Answers requests for one Lease on a free port; keeps their first lines and user agents.
fn lease_server() -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Requests::default();
    let (log, lease) = (Arc::clone(&requests), Arc::new(Mutex::new(None)));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (log, lease) = (Arc::clone(&log), Arc::clone(&lease));
            thread::spawn(move || while answer(&stream, &log, &lease).is_some() {});
        }
    });
    (address, requests)
}

fn answer(mut stream: &TcpStream, log: &Requests, lease: &Mutex<Option<Value>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let lower = line.trim_end().to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length: ") {
            length = value.parse().ok()?;
        }
        if lower.is_empty() {
            break;
        }
        if head.is_empty() || lower.starts_with("user-agent") {
            head.push_str(line.trim_end());
            head.push(' ');
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (status, reply) = act(&head, &body, &mut lease.lock().unwrap());
    log.lock().unwrap().push(head);
    let reply = reply.to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
    write!(stream, "{head}content-length: {}\r\n\r\n{reply}", reply.len()).ok()
}

fn act(head: &str, body: &[u8], lease: &mut Option<Value>) -> (&'static str, Value) {
    if head.starts_with("GET") {
        let missing = json!({"kind": "Status", "code": 404, "reason": "NotFound"});
        return lease.clone().map_or(("404 Not Found", missing), |lease| ("200 OK", lease));
    }
    let mut stored: Value = serde_json::from_slice(body).unwrap();
    let version = lease.as_ref().map_or(0, |l| version_of(l) + 1);
    stored["metadata"]["resourceVersion"] = version.to_string().into();
    *lease = Some(stored.clone());
    ("200 OK", stored)
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
    };
    (spawn(election), fence)
}

#[tokio::test]
async fn an_elector_leads_renews_and_releases_with_get_post_and_put_only() {
    let (address, requests) = lease_server();
    let (elector, fence) = start(config(), address).await;
    let elector = elector.unwrap();
    let mut status = elector.leadership();
    let leads = status.wait_for(|s| *s == Leadership::Leading);
    tokio::time::timeout(PATIENCE, leads).await.unwrap().unwrap();
    assert!(fence.check().is_ok());
    assert_eq!(elector.health_check()(), Ok(()));
    while requests.lock().unwrap().len() < 5 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(elector.release().await, Released::Freed);
    assert!(fence.check().is_err());
    let seen = requests.lock().unwrap();
    let lines: Vec<_> = seen.iter().map(|r| r.split(" HTTP").next().unwrap()).collect();
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    assert_eq!(lines[0], format!("GET {path}/icm"));
    assert!(lines[1].starts_with(&format!("POST {path}")), "{lines:?}");
    // A release that meets a renewal under way reads first.
    let one = |l: &&str| ["GET ", "PUT "].iter().any(|v| l.starts_with(&format!("{v}{path}/icm")));
    assert!(lines[2..].iter().all(one), "{lines:?}");
    assert!(lines[2..5].iter().all(|l| l.starts_with("PUT")), "{lines:?}");
    assert!(seen.iter().all(|r| r.trim_end().ends_with("/leader-election")), "{seen:?}");
}

#[tokio::test]
async fn a_server_that_is_down_leaves_a_healthy_standby() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (elector, fence) = start(config(), format!("http://{closed}")).await;
    let elector = elector.unwrap();
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
    let term = Term::new();
    assert_eq!(check(&term, limit), Ok(()), "a standby");
    let boot = fence::BootInstant::now().as_nanos();
    let before = |d: Duration| {
        fence::BootInstant::from_nanos(boot.saturating_sub(u64::try_from(d.as_nanos()).unwrap()))
    };
    term.renew(before(Duration::from_secs(30)), limit);
    assert_eq!(check(&term, limit), Ok(()));
    term.renew(before(Duration::from_secs(36)), limit);
    assert!(check(&term, limit).unwrap_err().contains("last renewed 36."));
    term.lose(Duration::ZERO);
    assert_eq!(check(&term, limit), Ok(()), "a loser is on its way out, not unhealthy");
}
