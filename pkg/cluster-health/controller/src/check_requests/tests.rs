//! Checks against a server whose answers are scripted.

use std::sync::atomic::{AtomicUsize, Ordering};

use health::Thresholds;
use probe::{Address, ConnectionLimits, DialPolicy, Inputs, Meters, Names, Resolver};
use prometheus::Registry;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

const S: fn(u64) -> Duration = Duration::from_secs;

/// Status and body of the answer to a path; `None` for no answer.
type Script = fn(&str) -> Option<(u16, String)>;

struct Bench {
    prober: Prober,
    client: Arc<Client>,
    requests: Arc<AtomicUsize>,
}

impl Bench {
    async fn new(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<AtomicUsize>::default();
        let counter = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let counter = Arc::clone(&counter);
                tokio::spawn(async move {
                    loop {
                        let mut asked = Vec::new();
                        while !asked.ends_with(b"\r\n\r\n") {
                            let Ok(byte) = stream.read_u8().await else { return };
                            asked.push(byte);
                        }
                        counter.fetch_add(1, Ordering::Relaxed);
                        let asked = String::from_utf8(asked).unwrap();
                        let path = asked.split(' ').nth(1).unwrap();
                        let Some((status, body)) = script(path) else { continue };
                        let length = body.len();
                        let head = format!(
                            "HTTP/1.1 {status} x\r\ndate: Tue, 24 Nov 2026 12:00:00 GMT\r\ncontent-length: {length}\r\n\r\n"
                        );
                        if stream.write_all((head + &body).as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let limits = ConnectionLimits { max_age: S(60), idle_max: S(60) };
        let resolver = Resolver::new(Names::default(), DialPolicy::default());
        let prober = Prober::new(Meters::new(&Registry::new()).unwrap(), limits, resolver);
        let addresses = vec![Address::parse(&address).unwrap()];
        let client = prober
            .client(&Inputs { addresses, allow_plaintext: true, ..Inputs::default() })
            .unwrap();
        Self { prober, client: Arc::new(client), requests }
    }

    async fn run(&self, kind: &CheckKind, timeout: Duration) -> CheckEvidence {
        let check = Check {
            name: "One".into(),
            kind: kind.clone(),
            interval: S(60),
            timeout,
            thresholds: Thresholds { failure: 3, success: 1 },
            gates_ready: false,
        };
        examine(&self.prober, &self.client, &check, None).await
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is an answer of a script")]
fn ok(body: &Value) -> Option<(u16, String)> {
    Some((200, body.to_string()))
}

fn conditions(status: &str, message: &str) -> Value {
    json!({"status": {"conditions": [
        {"type": "Other", "status": "True"},
        {"type": "Available", "status": status, "message": message},
    ]}})
}

fn node(status: &str) -> Value {
    json!({"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": status}]}})
}

fn workload_of(kind: Workload, name: &str) -> CheckKind {
    CheckKind::Available { kind, namespace: "ns".into(), name: name.into() }
}

fn answer(path: &str) -> Option<(u16, String)> {
    let missing =
        json!({"kind": "Status", "code": 404, "details": {"name": "gone", "kind": "deployments"}});
    match path {
        "/api/v1/nodes?limit=500" => {
            ok(&json!({"metadata": {}, "items": [node("True"), node("Unknown"), {}]}))
        }
        LEASES => ok(&json!({"items": [
            {"metadata": {"name": "a"}, "spec": {"renewTime": "2026-11-24T11:59:50.000000Z"}},
            {"metadata": {"name": "b"}},
        ]})),
        "/apis/apiregistration.k8s.io/v1/apiservices/v1.good" => {
            ok(&conditions("True", "all checks passed"))
        }
        "/apis/apiregistration.k8s.io/v1/apiservices/v1.bad" => {
            ok(&conditions("False", "no endpoints"))
        }
        "/apis/apps/v1/namespaces/ns/deployments/good" => ok(&conditions("True", "")),
        "/apis/apps/v1/namespaces/ns/deployments/bad" => ok(&json!({"status": {}})),
        "/apis/apps/v1/namespaces/ns/deployments/gone" => Some((404, missing.to_string())),
        "/apis/apps/v1/namespaces/ns/deployments/forbidden" => Some((403, "{}".to_owned())),
        "/apis/apps/v1/namespaces/ns/deployments/odd" => ok(&json!([1])),
        "/apis/apps/v1/namespaces/ns/deployments/long" => Some((200, " ".repeat(ANSWER_MAX + 1))),
        "/apis/apps/v1/namespaces/ns/deployments/silent" => None,
        "/apis/apps/v1/namespaces/ns/statefulsets/good" => {
            ok(&json!({"spec": {"replicas": 2}, "status": {"availableReplicas": 2}}))
        }
        "/apis/apps/v1/namespaces/ns/statefulsets/bad" => {
            ok(&json!({"spec": {"replicas": 2}, "status": {}}))
        }
        "/apis/apps/v1/namespaces/ns/daemonsets/good" => {
            ok(&json!({"status": {"desiredNumberScheduled": 0}}))
        }
        "/apis/apps/v1/namespaces/ns/daemonsets/bad" => {
            ok(&json!({"status": {"desiredNumberScheduled": 3, "numberAvailable": 2}}))
        }
        _ => Some((404, "404 page not found\n".to_owned())),
    }
}

#[tokio::test]
async fn each_kind_is_read_and_judged() {
    let bench = Bench::new(answer).await;
    let nodes = bench.run(&CheckKind::NodesReady { min_ratio: 0.5 }, S(20)).await;
    assert_eq!(nodes, CheckEvidence::Nodes { ready: 1, total: 3 });
    let leases = bench.run(&CheckKind::NodeLeases { min_fresh: 0.5, max_age: S(40) }, S(20)).await;
    let time = |text: &str| Some(text.parse::<Timestamp>().unwrap());
    let expected = CheckEvidence::Leases {
        leases: vec![
            SeenLease { name: health::hash("a"), renewed: time("2026-11-24T11:59:50Z") },
            SeenLease { name: health::hash("b"), renewed: None },
        ],
        date: time("2026-11-24T12:00:00Z"),
    };
    assert_eq!(leases, expected);
    let api_service = |name: &str| CheckKind::ApiService { name: name.into() };
    let rows = [
        (api_service("v1.good"), true, "APIService v1.good is available"),
        (api_service("v1.bad"), false, "APIService v1.bad is not available: no endpoints"),
        (workload_of(Workload::Deployment, "good"), true, "Deployment ns/good is available"),
        (workload_of(Workload::Deployment, "bad"), false, "Deployment ns/bad is not available"),
        (workload_of(Workload::Deployment, "gone"), false, "Deployment ns/gone does not exist"),
        (
            workload_of(Workload::StatefulSet, "good"),
            true,
            "2 of 2 Pods of StatefulSet ns/good are available",
        ),
        (
            workload_of(Workload::StatefulSet, "bad"),
            false,
            "0 of 2 Pods of StatefulSet ns/bad are available",
        ),
        (
            workload_of(Workload::DaemonSet, "good"),
            true,
            "0 of 0 Pods of DaemonSet ns/good are available",
        ),
        (
            workload_of(Workload::DaemonSet, "bad"),
            false,
            "2 of 3 Pods of DaemonSet ns/bad are available",
        ),
    ];
    for (kind, available, about) in rows {
        let expected = CheckEvidence::Object { available, about: about.into() };
        assert_eq!(bench.run(&kind, S(20)).await, expected);
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_no_failure() {
    let bench = Bench::new(answer).await;
    let rows = [
        ("forbidden", "the right to get or list it is missing"),
        ("other", "the cluster does not serve its kind"),
        ("odd", "the answer is not of the expected form"),
        ("long", "the answer is longer than 1 MiB"),
    ];
    for (name, why) in rows {
        let found = bench.run(&workload_of(Workload::Deployment, name), S(20)).await;
        let expected = format!("cannot read Deployment ns/{name}: {why}");
        assert_eq!(found, CheckEvidence::Nothing(expected.into()));
    }
    let silent =
        bench.run(&workload_of(Workload::Deployment, "silent"), Duration::from_millis(200)).await;
    assert!(matches!(silent, CheckEvidence::Nothing(_)), "{silent:?}");
}

/// rule:lists-of-members-are-bounded
#[tokio::test]
async fn a_list_that_does_not_end_is_given_up_after_four_requests() {
    fn endless(path: &str) -> Option<(u16, String)> {
        ok(&json!({"metadata": {"continue": "x".repeat(path.len())}, "items": [node("True")]}))
    }
    let bench = Bench::new(endless).await;
    let found = bench.run(&CheckKind::NodesReady { min_ratio: 0.5 }, S(20)).await;
    let why = "cannot list the Nodes: the list takes more than 4 requests";
    assert_eq!(found, CheckEvidence::Nothing(why.into()));
    assert_eq!(bench.requests.load(Ordering::Relaxed), 4);
}
