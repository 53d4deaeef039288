//! Members whose names no name server answers for.

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use tests::Stopwatch;
use tests::kubectl::{FEDERATION, IDENTITY, hub};
use tests::poll::poll;
use tests::process::Process;
use tests::temp_dir::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};

use crate::members::{cluster, ready, secret};

/// Members whose names are not answered for.
const SLOW: usize = 150;
/// Longest time from the object of a new member to its first result.
const LIMIT: Duration = Duration::from_secs(8);

/// A name server at a loopback address of its own that answers 127.0.0.1 for names that begin with
/// `quick`, and nothing for all others.
async fn name_server() -> Ipv4Addr {
    let [a, b] = rand::random::<[u8; 2]>();
    let address = Ipv4Addr::new(127, 53, a, b.clamp(1, 254));
    let socket = UdpSocket::bind((address, 53)).await.expect("root may bind port 53");
    // Room for all repeated queries of the slow names at once, or those of other names are dropped.
    let room = 4 << 20;
    set_socket_recv_buffer_size_force(&socket, room)
        .or_else(|_no_right| set_socket_recv_buffer_size(&socket, room))
        .unwrap();
    tokio::spawn(async move {
        let mut query = [0; 512];
        while let Ok((length, peer)) = socket.recv_from(&mut query).await {
            if let Some(answer) = answer(&query[..length]) {
                drop(socket.send_to(&answer, peer).await);
            }
        }
    });
    address
}

/// RFC 1035, 4.1: the question again, and one A record where an A record is asked for.
fn answer(query: &[u8]) -> Option<Vec<u8>> {
    let question = query.get(12..)?;
    if !question.get(1..)?.starts_with(b"quick") {
        return None;
    }
    let end = question.iter().position(|byte| *byte == 0)? + 5;
    let is_a = question.get(end - 3) == Some(&1);
    let mut answer = query.get(..2)?.to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
    answer.extend(question.get(..end)?);
    if is_a {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
    }
    Some(answer)
}

/// A program that runs the product with this name server, in a mount namespace of its own.
fn with_name_server(folder: &Path, server: Ipv4Addr) -> PathBuf {
    let (conf, script) = (folder.join("resolv.conf"), folder.join("run"));
    let text = format!("nameserver {server}\noptions timeout:5 attempts:4\n");
    std::fs::write(&conf, text).unwrap();
    let program = tests::programs::product();
    let inner = format!(
        "mount --bind {} /etc/resolv.conf && exec {} \"$@\"",
        conf.display(),
        program.display()
    );
    let text = format!("#!/bin/sh\nexec unshare -m sh -c '{inner}' sh \"$@\"\n");
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

/// A member that is well. Its port.
async fn member() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 4096];
                while stream.read(&mut head).await.is_ok_and(|length| length > 0) {
                    let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    drop(stream.write_all(ok).await);
                }
            });
        }
    });
    port
}

/// 150 members in a dead zone hold 150 lookups for 20 s each; a new member is probed at once.
#[tokio::test(flavor = "multi_thread")]
async fn new_members_are_probed_at_once_with_150_unresolvable_members() {
    if !rustix::process::geteuid().is_root() {
        println!("left out: only root may give the program a name server of its own");
        return;
    }
    let (hub, folder, port) = (hub().await, TempDir::new("names").unwrap(), member().await);
    let program = with_name_server(&folder, name_server().await);
    let mut objects = vec![secret()];
    let slow = (0..SLOW).map(|number| format!("slow-{number}"));
    objects.extend(slow.map(|name| cluster(&name, &format!("http://{name}.dead.example:{port}"))));
    hub.create_all(&objects);
    let kubeconfig = hub.plane.kubeconfig(IDENTITY, &[]).unwrap();
    let _process = Process::with_kubeconfig(&kubeconfig)
        .program(&program)
        .args(["--controllers=cluster-health-controller", "--leader-elect=false", "-v=2"])
        .args(["--cluster-health-flavours=kubefed", "--allow-plaintext-endpoints"])
        // Without the guard: members of which none answers are a partition to it.
        .args(["--cluster-health-zones=false", "--cluster-health-guard=false"])
        .start();
    poll("the control: names without a name server fail", async || {
        let all = hub.run(&format!("get kubefedclusters -n {FEDERATION} -o yaml"));
        (all.matches("message: 'cluster is not reachable: dns").count() >= SLOW).then_some(())
    })
    .await;
    let mut worst = Duration::ZERO;
    for number in 0..5 {
        let (name, watch) = (format!("new-{number}"), Stopwatch::start());
        hub.create(&cluster(&name, &format!("http://quick-{number}.example:{port}")));
        poll(&format!("{name} is ready"), async || (ready(&hub, &name).0 == "True").then_some(()))
            .await;
        worst = worst.max(watch.elapsed());
    }
    println!("with {SLOW} slow names a new member was published after {worst:?} at most");
    assert!(worst < LIMIT, "{worst:?}");
    let (status, message) = ready(&hub, "slow-0");
    assert!(status == "False" && message.contains("dns"), "{status} {message} in {FEDERATION}");
}
