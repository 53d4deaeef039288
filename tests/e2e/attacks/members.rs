//! Hostile members and hostile objects that stand for members: what a probe dials, and what it keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde_json::{Value, json};
use tests::kubectl::{FEDERATION, IDENTITY, Kubectl, hub};
use tests::poll::poll;
use tests::process::Process;
use tests::usage;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const MIB: u64 = 1 << 20;

/// cluster-health alone, for KubeFed's members.
pub(crate) fn start(hub: &Kubectl, flags: &[&str]) -> Process {
    let kubeconfig = hub.plane.kubeconfig(IDENTITY, &[]).unwrap();
    Process::with_kubeconfig(&kubeconfig)
        .args(["--controllers=cluster-health-controller", "--leader-elect=false", "-v=2"])
        .args(["--cluster-health-flavours=kubefed", "--allow-plaintext-endpoints"])
        .args(flags.iter().copied())
        .start()
}

pub(crate) fn secret() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"token": "of-everybody"},
        "metadata": {"name": "token", "namespace": FEDERATION}})
}

pub(crate) fn cluster(name: &str, endpoint: &str) -> Value {
    json!({"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": name, "namespace": FEDERATION},
        "spec": {"apiEndpoint": endpoint, "secretRef": {"name": "token"}}})
}

/// Status and message of the condition Ready; empty without this condition.
pub(crate) fn ready(hub: &Kubectl, name: &str) -> (String, String) {
    let status = &hub.object(&format!("kubefedclusters/{name} -n {FEDERATION}"))["status"];
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.into_iter().find(|it| it["type"] == "Ready").unwrap_or_default();
    let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

/// A user who writes an object cannot make the product dial the metadata service, this host or denied
/// ranges, neither as a member nor as the proxy of a member.
#[tokio::test(flavor = "multi_thread")]
async fn the_metadata_service_and_denied_hosts_are_dialled_neither_as_members_nor_as_proxies() {
    let hub = hub().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let dialled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&dialled);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let mut proxied = cluster("proxied", "https://10.0.0.1:6443");
    proxied["spec"]["proxyURL"] = json!(format!("http://127.0.0.1:{port}"));
    let metadata = ["metadata-v4", "metadata-v6", "metadata-nat64"];
    let local = ["local", "local-name", "local-mapped", "proxied"];
    hub.create_all(&[
        secret(),
        cluster(metadata[0], "https://169.254.169.254"),
        cluster(metadata[1], "https://[fd00:ec2::254]"),
        cluster(metadata[2], "https://[64:ff9b::a9fe:a9fe]"),
        cluster(local[0], &format!("https://127.0.0.1:{port}")),
        cluster(local[1], &format!("https://localhost:{port}")),
        cluster(local[2], &format!("https://[::ffff:127.0.0.1]:{port}")),
        proxied,
    ]);
    let period = "--cluster-health-period=1s";
    let denying = start(&hub, &[period, "--dial-deny-cidrs=127.0.0.0/8,::1/128"]);
    for name in metadata.into_iter().chain(local) {
        poll(&format!("{name} is denied"), async || {
            ready(&hub, name).1.contains("address-denied").then_some(())
        })
        .await;
    }
    assert_eq!(dialled.load(Ordering::SeqCst), 0, "connections to a denied host");
    drop(denying);

    let _allowing = start(&hub, &[period]);
    poll("the control: where it is not denied this host is dialled", async || {
        (dialled.load(Ordering::SeqCst) > local.len()).then_some(())
    })
    .await;
    for name in metadata {
        assert!(ready(&hub, name).1.contains("address-denied"), "{name}");
    }
    println!("dialled: 0 where it is denied, {} where not", dialled.load(Ordering::SeqCst));
}

/// Answers of a hostile member to a list of Nodes.
#[derive(Clone, Copy, Debug)]
enum Hostile {
    /// One object without an end.
    Object,
    /// Each Node has its own zone.
    Zones,
    /// Objects without an end, whatever was asked for.
    Page,
    /// Pages without an end, each with a huge token.
    Tokens,
}

const HOSTILE: [Hostile; 4] = [Hostile::Object, Hostile::Zones, Hostile::Page, Hostile::Tokens];
/// A hostile member sends no more of one answer.
const ANSWER: usize = 64 << 20;

/// Serves `/readyz`, and lists of Nodes as `hostile` says; well without it. Its URL.
async fn member(hostile: Option<Hostile>, sent: &Arc<AtomicU64>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let sent = Arc::clone(sent);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sent = Arc::clone(&sent);
            // Who asks hangs up when it has had enough.
            tokio::spawn(async move { drop(serve(stream, hostile, &sent).await) });
        }
    });
    url
}

async fn serve(
    mut stream: TcpStream,
    hostile: Option<Hostile>,
    sent: &AtomicU64,
) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head);
        let path = head.split(' ').nth(1).unwrap_or_default();
        let node = |zone: &str| {
            let labels = json!({"topology.kubernetes.io/zone": zone});
            json!({"metadata": {"name": "n", "labels": labels}}).to_string()
        };
        match hostile.filter(|_| path.starts_with("/api/v1/nodes")) {
            None if path.starts_with("/api/v1/nodes") => {
                whole(&mut stream, &format!(r#"{{"items":[{}]}}"#, node("good"))).await?;
            }
            None if path.starts_with("/api/") => whole(&mut stream, r#"{"items":[]}"#).await?,
            None => whole(&mut stream, "ok").await?,
            Some(hostile) => {
                let begin = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
                stream.write_all(begin.as_bytes()).await?;
                let begin = match hostile {
                    Hostile::Object => r#"{"items":[{"metadata":{"labels":{"a":""#,
                    Hostile::Tokens => r#"{"metadata":{"continue":""#,
                    Hostile::Zones | Hostile::Page => r#"{"items":["#,
                };
                stream.write_all(begin.as_bytes()).await?;
                let (mut written, mut number) = (0, 0_u64);
                while written < ANSWER {
                    number += 1;
                    let piece = match hostile {
                        Hostile::Object | Hostile::Tokens => "x".repeat(1 << 16),
                        Hostile::Zones => format!("{},", node(&format!("zone-{number}"))),
                        Hostile::Page => format!("{},", node("one")).repeat(500),
                    };
                    stream.write_all(piece.as_bytes()).await?;
                    written += piece.len();
                    sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
                }
                return Ok(());
            }
        }
    }
}

async fn whole(stream: &mut TcpStream, body: &str) -> std::io::Result<()> {
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await
}

/// Forty members send lists without an end; the memory stays small, and the others go on.
#[tokio::test(flavor = "multi_thread")]
async fn forty_members_that_send_lists_without_an_end_take_little_memory_and_others_go_on() {
    let hub = hub().await;
    let sent = Arc::new(AtomicU64::new(0));
    let mut objects = vec![secret(), cluster("good", &member(None, &sent).await)];
    for number in 0..40 {
        let hostile = HOSTILE[number % HOSTILE.len()];
        let url = member(Some(hostile), &sent).await;
        objects.push(cluster(&format!("hostile-{number}"), &url));
    }
    hub.create_all(&objects);
    let process = start(&hub, &[]);
    poll("the lists of all hostile members are given up", async || {
        let events = hub.run(&format!("get events -n {FEDERATION}"));
        let reported = events.lines().filter(|line| line.contains("ListTooLarge")).count();
        (reported >= 40).then_some(())
    })
    .await;
    poll("the zone of the good member is there", async || {
        let status = hub.object(&format!("kubefedclusters/good -n {FEDERATION}"));
        (status["status"]["zones"] == json!(["good"])).then_some(())
    })
    .await;
    let peak = usage::of(process.pid()).unwrap().peak_rss_bytes / MIB;
    let sent = sent.load(Ordering::Relaxed) / MIB;
    println!("40 hostile members sent {sent} MiB, the process had {peak} MiB at most");
    assert!(sent >= 30, "the control: the members sent {sent} MiB");
    assert!(peak < 256, "{peak} MiB");
}
