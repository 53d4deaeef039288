//! The way through a proxy.

use std::sync::OnceLock;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::certificates::{Authority, NOW, PAST};
use super::*;

const OK: Reply = Reply::Status(200, "ok");

/// A proxy that makes tunnels for whoever says the password.
struct Tunnels {
    url: String,
    seen: Arc<parking_lot::Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

impl Tunnels {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://user:open-sesame@{}", listener.local_addr().unwrap());
        let (seen, mut task) = (Arc::new(parking_lot::Mutex::default()), JoinSet::new());
        let heads = Arc::clone(&seen);
        task.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(tunnel(stream, Arc::clone(&heads)));
            }
        });
        Self { url, seen, _task: task }
    }
}

async fn tunnel(mut client: TcpStream, heads: Arc<parking_lot::Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = client.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.split(' ').nth(1).unwrap().to_owned();
    // user:open-sesame
    let welcome = head.contains("Basic dXNlcjpvcGVuLXNlc2FtZQ==");
    heads.lock().push(head);
    if !welcome {
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
        return drop(client.write_all(refusal).await);
    }
    let Ok(mut server) = TcpStream::connect(target).await else {
        return drop(client.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await);
    };
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
}

#[tokio::test]
async fn a_proxy_sees_the_address_and_no_credential_and_tls_options_count_behind_it() {
    let (ca, proxy) = (Authority::new(), Tunnels::open().await);
    let server = Server::start(Some(ca.server("127.0.0.1", PAST, None)), |_| OK).await;
    let inputs = Inputs {
        ca: ca.pem(),
        tls: WaivedChecks::from_names(["ValidityPeriod"]),
        proxy: Some(proxy.url.clone().into()),
        ..inputs(&[format!("https://{}", server.address)])
    };
    let probed = Bench::new(&inputs).probe().await;
    assert_eq!(conclusion(&probed), (Verdict::Ok, None), "{:?}", probed.attempts);
    assert!(probed.attempts[0].timings.proxy.is_some());
    let seen = proxy.seen.lock().join("");
    assert!(seen.starts_with(&format!("CONNECT {}", server.address)), "{seen}");
    assert!(!seen.contains(TOKEN) && !seen.contains("readyz"), "{seen}");

    let strict = Inputs { tls: WaivedChecks::default(), ..inputs };
    let probed = Bench::new(&strict).probe().await;
    assert_eq!(conclusion(&probed).1, Some(Code::TlsVerify));
}

#[tokio::test]
async fn a_proxy_that_does_not_help_is_named_as_what_failed() {
    let proxy = Tunnels::open().await;
    let dead = format!("http://{}", closed_port());
    let hanging = Server::plain(|_| Reply::Hang).await;
    let hole = BlackHole::open().await;
    let server = Server::plain(|_| OK).await;
    let stranger = proxy.url.replace("open-sesame", "guess");
    // (proxy, server)
    let rows = [
        (stranger, server.url()),
        (proxy.url.clone(), dead.clone()),
        (dead, server.url()),
        (hanging.url(), server.url()),
        (format!("http://{}", hole.address), server.url()),
        (hanging.url().replace("http", "socks5"), server.url()),
        ("http://proxy.example".into(), server.url()),
    ];
    let all = rows.map(|(proxy, url)| async move {
        let inputs = Inputs { proxy: Some(proxy.clone().into()), ..inputs(&[url]) };
        let names = Names::new(|_| Box::pin(std::future::ready(Err(std::io::Error::other("no")))));
        let bench = Bench::with(&inputs, ConnectionLimits::default(), names).within(SHORT);
        let probed = bench.probe().await;
        let failed = (Verdict::Unreachable, Some(Code::Proxy));
        assert_eq!(conclusion(&probed), failed, "{proxy}: {:?}", probed.attempts);
    });
    futures::future::join_all(all).await;
    assert!(server.heads().is_empty());
}

#[tokio::test]
async fn a_socks_proxy_makes_a_tunnel_too() {
    let server = Server::plain(|_| OK).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("socks5://{}", listener.local_addr().unwrap());
    let target = server.address;
    let proxy = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut greeting = [0; 3];
        client.read_exact(&mut greeting).await.unwrap();
        client.write_all(&[5, 0]).await.unwrap();
        let mut wanted = [0; 10];
        client.read_exact(&mut wanted).await.unwrap();
        assert_eq!(wanted[8..], target.port().to_be_bytes());
        client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let mut server = TcpStream::connect(target).await.unwrap();
        drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
    });
    let inputs = Inputs { proxy: Some(url.into()), ..inputs(&[server.url()]) };
    assert_eq!(conclusion(&Bench::new(&inputs).probe().await), (Verdict::Ok, None));
    proxy.await.unwrap();
}

#[tokio::test]
async fn a_proxy_that_speaks_tls_is_believed_by_the_same_authorities() {
    let ca = Authority::new();
    let proxy = Server::start(Some(ca.server("127.0.0.1", NOW, None)), |_| {
        Reply::Last("HTTP/1.1 403 Forbidden\r\n\r\n")
    })
    .await;
    let inputs = Inputs {
        ca: ca.pem(),
        tls: WaivedChecks::default(),
        proxy: Some(format!("https://{}", proxy.address).into()),
        ..inputs(&["http://api.example".into()])
    };
    let probed = Bench::new(&inputs).probe().await;
    assert_eq!(conclusion(&probed).1, Some(Code::Proxy));
    assert!(proxy.heads()[0].starts_with("CONNECT api.example:80 "), "{:?}", proxy.heads());
    let stranger = Inputs { ca: Authority::new().pem(), ..inputs };
    let probed = Bench::new(&stranger).probe().await;
    let detail = probed.report.detail.unwrap();
    assert!(detail.contains("trusted") && detail.contains("another authority"), "{detail}");
}

/// `rule:waivers-are-for-the-member`
#[tokio::test]
async fn what_is_waived_for_the_member_is_asked_of_its_proxy() {
    let ca = Authority::new();
    let refuse = |_: &Asked| Reply::Last("HTTP/1.1 403 Forbidden\r\n\r\n");
    let expired = Server::start(Some(ca.server("127.0.0.1", PAST, None)), refuse).await;
    let misnamed = Server::start(Some(ca.server("proxy.example", NOW, None)), refuse).await;
    let stranger =
        Server::start(Some(Authority::new().server("127.0.0.1", NOW, None)), refuse).await;
    let waived = [(&expired, "ValidityPeriod"), (&misnamed, "SubjectName"), (&stranger, "*")];
    for (proxy, waiver) in waived {
        let inputs = Inputs {
            ca: ca.pem(),
            tls: WaivedChecks::from_names([waiver]),
            proxy: Some(format!("https://{}", proxy.address).into()),
            ..inputs(&["https://api.example".into()])
        };
        let probed = Bench::new(&inputs).probe().await;
        assert_eq!(conclusion(&probed).1, Some(Code::Proxy), "{waiver}");
        assert!(proxy.heads().is_empty(), "{waiver}: {:?}", proxy.heads());
    }
}

static ENVIRONMENT: OnceLock<String> = OnceLock::new();

#[tokio::test]
async fn members_are_reached_through_the_proxy_of_the_environment_unless_it_excepts_them() {
    let refuse = || Server::plain(|_| Reply::Last("HTTP/1.1 403 Forbidden\r\n\r\n"));
    let (proxy, own) = (refuse().await, refuse().await);
    ENVIRONMENT.set(proxy.url()).unwrap();
    let environment = |name: &str| match name {
        "HTTPS_PROXY" => ENVIRONMENT.get().cloned(),
        "NO_PROXY" => Some("excepted.example,127.0.0.1".to_owned()),
        _ => None,
    };
    let probe = async |inputs: &Inputs| {
        let names =
            Names::new(|_| Box::pin(std::future::ready(Ok(vec!["127.0.0.1".parse().unwrap()]))));
        let bench = Bench::in_environment(inputs, names, environment).within(SHORT);
        let probed = bench.probe().await;
        conclusion(&probed).1
    };
    let at = |url: &str| Inputs { allow_plaintext: false, ..inputs(&[url.to_owned()]) };
    assert_eq!(probe(&at("https://api.example:6443")).await, Some(Code::Proxy));
    assert!(proxy.heads()[0].starts_with("CONNECT api.example:6443 "), "{:?}", proxy.heads());

    let proxied = proxy.heads().len();
    let closed = closed_port().port();
    for excepted in ["api.excepted.example", "127.0.0.1"] {
        let found = probe(&at(&format!("https://{excepted}:{closed}"))).await;
        assert_eq!(found, Some(Code::ConnectRefused), "{excepted}");
    }
    assert_eq!(proxy.heads().len(), proxied, "they are dialled directly");

    let own_proxy = Inputs { proxy: Some(own.url().into()), ..at("https://api.example:6443") };
    assert_eq!(probe(&own_proxy).await, Some(Code::Proxy));
    assert!(own.heads()[0].starts_with("CONNECT api.example:6443 "), "{:?}", own.heads());
    assert_eq!(proxy.heads().len(), proxied, "the one of the object wins");
}

/// rule:foreign-addresses-are-judged-when-they-are-dialled
#[tokio::test]
async fn neither_a_member_nor_its_proxy_is_dialled_where_that_is_denied() {
    let server = Server::plain(|_| OK).await;
    let port = server.address.port();
    let denied = DialPolicy::new(&["127.0.0.0/8".to_owned()], &[]).unwrap();
    let names =
        || Names::new(|_| Box::pin(std::future::ready(Ok(vec!["127.0.0.1".parse().unwrap()]))));
    let through = |proxy: String, url: &str| Inputs {
        proxy: Some(proxy.into()),
        ..inputs(&[url.to_owned()])
    };
    let rows = [
        inputs(&[server.url()]),
        inputs(&[format!("http://[::ffff:127.0.0.1]:{port}")]),
        inputs(&[format!("http://rebound.example:{port}")]),
        through(server.url(), "http://10.0.0.1:6443"),
        through(format!("socks5://rebound.example:{port}"), "http://10.0.0.1:6443"),
        // The proxy would dial it for us.
        through(server.url(), "http://169.254.169.254"),
        inputs(&["http://169.254.169.254".to_owned()]),
    ];
    for inputs in &rows {
        let resolver = Resolver::new(names(), denied.clone());
        let bench = Bench::with(inputs, ConnectionLimits::default(), resolver);
        let probed = bench.probe().await;
        let found = conclusion(&probed);
        assert_eq!(found, (Verdict::Config, Some(Code::AddressDenied)), "{inputs:?}");
        let detail = probed.report.detail.unwrap();
        assert!(detail.contains("--dial-allow-cidrs"), "{detail}");
        let read = bench.prober.reader(&bench.client).get("/version", 100, SHORT).await;
        assert_eq!(read.unwrap_err().code, Code::AddressDenied);
    }
    assert_eq!(server.connections(), 0);
    let allowed = Resolver::new(names(), DialPolicy::default());
    let bench = Bench::with(&rows[2], ConnectionLimits::default(), allowed);
    assert_eq!(conclusion(&bench.probe().await), (Verdict::Ok, None), "the control");
}
