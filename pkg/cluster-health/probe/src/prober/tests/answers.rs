//! Verdicts for the answers of a server.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::*;

fn with_headers(length: usize) -> Reply {
    let padding = "x".repeat(length);
    Reply::Bytes(format!("HTTP/1.1 200 OK\r\nx: {padding}\r\nContent-Length: 2\r\n\r\nok").into())
}

#[tokio::test]
async fn every_answer_is_a_verdict_and_a_code() {
    use Verdict::{Ok, Unhealthy, Unreachable};
    let large =
        |size| format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n{}", "x".repeat(size));
    let bytes = |text: &str| Reply::Bytes(text.as_bytes().to_vec());
    // (what the server does, verdict, code, requests made)
    let rows = [
        (Reply::Status(200, "ok"), Ok, None, 1),
        (Reply::Status(200, " OK\r\n"), Ok, None, 1),
        (Reply::Status(200, "fine"), Unhealthy, Some(Code::Body), 1),
        (Reply::Status(204, ""), Unhealthy, Some(Code::Http(204)), 1),
        // Following it would send the token to a server that the redirect chooses.
        (Reply::Status(302, ""), Unhealthy, Some(Code::Http(302)), 1),
        (Reply::Status(307, ""), Unhealthy, Some(Code::Http(307)), 1),
        (Reply::Status(401, "no"), Unhealthy, Some(Code::Unauthorized), 1),
        (Reply::Status(403, "no"), Unhealthy, Some(Code::Forbidden), 2),
        (Reply::Status(404, "no"), Unhealthy, Some(Code::Http(404)), 2),
        (Reply::Status(429, "later"), Unhealthy, Some(Code::Http(429)), 1),
        (Reply::Status(500, "[-]etcd failed"), Unhealthy, Some(Code::Http(500)), 2),
        (Reply::Status(503, ""), Unhealthy, Some(Code::Http(503)), 2),
        // rule:answers-have-a-limit
        (Reply::Bytes(large(70_000).into_bytes()), Unhealthy, Some(Code::Body), 1),
        (with_headers(12_000), Ok, None, 1),
        (with_headers(20_000), Unreachable, Some(Code::Protocol), 3),
        (bytes("SSH-2.0-OpenSSH_9.6\r\n\r\n"), Unreachable, Some(Code::Protocol), 3),
        (Reply::Close, Unreachable, Some(Code::Reset), 3),
        (Reply::Reset, Unreachable, Some(Code::Reset), 3),
    ];
    let probes = rows.map(|(reply, verdict, code, requests)| async move {
        let answer = reply.clone();
        let (probed, server) = probe_plain(move |_| answer.clone()).await;
        assert_eq!(conclusion(&probed), (verdict, code), "{reply:?}");
        assert_eq!(server.paths().len(), requests, "{reply:?}");
        assert_eq!(probed.attempts.len(), requests, "{reply:?}");
        assert!(server.paths().iter().all(|path| path != "/stolen"));
    });
    futures::future::join_all(probes).await;
}

#[tokio::test]
async fn an_answer_whose_body_breaks_off_proves_that_the_server_is_there() {
    let (probed, _) =
        probe_plain(|_| Reply::Last("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")).await;
    assert_eq!(conclusion(&probed), (Verdict::Unhealthy, Some(Code::Reset)));
}

#[tokio::test]
async fn a_server_without_readyz_is_asked_for_healthz_on_the_same_connection_and_next_time_at_once()
{
    let server = Server::plain(|asked| match asked.path.as_str() {
        "/healthz" => Reply::Status(200, "ok"),
        _ => Reply::Status(404, ""),
    })
    .await;
    let bench = Bench::new(&inputs(&[server.url()]));
    assert_eq!(conclusion(&bench.probe().await), (Verdict::Ok, None));
    assert_eq!(
        (server.paths(), server.connections()),
        (vec!["/readyz".into(), "/healthz".into()], 1)
    );
    bench.probe().await;
    assert_eq!(server.paths()[2..], ["/healthz"]);
}

#[tokio::test]
async fn a_server_error_is_repeated_once_on_a_new_connection() {
    let (probed, server) = probe_plain(|asked| match asked.connection {
        0 => Reply::Status(500, "[-]shutdown failed"),
        _ => Reply::Status(200, "ok"),
    })
    .await;
    assert_eq!(conclusion(&probed), (Verdict::Ok, None));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn the_authenticated_read_follows_on_the_same_connection_and_is_judged_by_its_status() {
    let long = format!("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{}", "x".repeat(100_000));
    let rows = [
        (Reply::Status(200, "{}"), Verdict::Ok, None),
        (Reply::Bytes(long.into_bytes()), Verdict::Ok, None),
        (Reply::Status(401, ""), Verdict::Unhealthy, Some(Code::Unauthorized)),
        (Reply::Status(403, ""), Verdict::Unhealthy, Some(Code::Forbidden)),
        (Reply::Status(404, ""), Verdict::Unhealthy, Some(Code::Http(404))),
    ];
    for (reply, verdict, code) in rows {
        let server = Server::plain(move |asked| match asked.path.as_str() {
            "/readyz" => Reply::Status(200, "ok"),
            _ => reply.clone(),
        })
        .await;
        let probed = Bench::new(&inputs(&[server.url()])).reading().probe().await;
        assert_eq!(conclusion(&probed), (verdict, code));
        assert_eq!(server.paths(), ["/readyz", "/api/v1/namespaces?limit=1"]);
        assert_eq!(server.connections(), 1);
    }
}

#[tokio::test]
async fn a_request_says_who_asks_and_for_which_host() {
    let server = Server::plain(|_| Reply::Status(200, "ok")).await;
    Bench::new(&inputs(&[format!("{}/k8s/c-1", server.url())])).probe().await;
    let head = &server.heads()[0].to_ascii_lowercase();
    assert!(head.starts_with("get /k8s/c-1/readyz http/1.1\r\n"), "{head}");
    for line in [
        format!("host: {}", server.address),
        format!("authorization: bearer {TOKEN}"),
        "user-agent: test/1".to_owned(),
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{head}");
    }
}

#[tokio::test]
async fn a_credential_that_is_refused_and_was_replaced_meanwhile_is_tried_anew() {
    let server = Server::plain(|_| Reply::Status(401, "")).await;
    let bench = Bench::new(&inputs(&[server.url()]));
    assert_eq!(conclusion(&bench.probe().await).1, Some(Code::Unauthorized));
    let same = Arc::clone(&bench.client);
    bench.probe_beside(move || Some(Arc::clone(&same))).await;
    assert_eq!(server.heads().len(), 2, "the same one is not tried twice");

    let server = Server::plain(|asked| match asked.connection {
        0 => Reply::Status(401, ""),
        _ => Reply::Status(200, "ok"),
    })
    .await;
    let old = inputs(&[server.url()]);
    let bench = Bench::new(&old);
    let new = Inputs { token: Some("the-new-token".into()), ..old };
    let new = Arc::new(bench.prober.client(&new).unwrap());
    let probed = bench.probe_beside(move || Some(Arc::clone(&new))).await;
    assert_eq!(conclusion(&probed), (Verdict::Ok, None));
    let heads = server.heads();
    assert!(heads[0].contains(TOKEN) && heads[1].contains("the-new-token"), "{heads:?}");
}

/// Source from which a credential is read again.
struct Source {
    reads: AtomicUsize,
    read: Option<Arc<Client>>,
    is_silent: bool,
}

impl Reread for Source {
    fn reread(&self) -> BoxFuture<'_, Option<Arc<Client>>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        if self.is_silent {
            return std::future::pending().boxed();
        }
        std::future::ready(self.read.clone()).boxed()
    }
}

#[tokio::test]
async fn a_credential_that_is_refused_is_read_anew_once_and_tried_when_it_changed() {
    let server = Server::plain(|asked| {
        let is_new = asked.head.contains("the-new-token");
        if is_new { Reply::Status(200, "ok") } else { Reply::Status(401, "") }
    })
    .await;
    let old = inputs(&[server.url()]);
    let bench = Bench::new(&old);
    let client = |token: &str| {
        let inputs = Inputs { token: Some(token.into()), ..old.clone() };
        Arc::new(bench.prober.client(&inputs).unwrap())
    };
    for (read, expected) in [
        (Some(client("the-new-token")), None),
        (Some(client(TOKEN)), Some(Code::Unauthorized)),
        (Some(client("another-that-is-refused")), Some(Code::Unauthorized)),
        (None, Some(Code::Unauthorized)),
    ] {
        let source = Source { reads: AtomicUsize::new(0), read, is_silent: false };
        let probed = bench.probe_by(&|| None, Some(&source)).await;
        let reads = source.reads.into_inner();
        assert_eq!((conclusion(&probed).1, reads), (expected, 1), "{:?}", source.read);
    }
}

#[tokio::test]
async fn a_credential_that_cannot_be_read_in_time_leaves_the_answer_as_it_was() {
    let server = Server::plain(|_| Reply::Status(401, "")).await;
    let bench = Bench::new(&inputs(&[server.url()])).within(SHORT);
    let source = Source { reads: AtomicUsize::new(0), read: None, is_silent: true };
    let probed = bench.probe_by(&|| None, Some(&source)).await;
    assert_eq!(conclusion(&probed), (Verdict::Unhealthy, Some(Code::Unauthorized)));
    assert!(probed.report.took < SHORT, "half of the time is for it: {:?}", probed.report.took);
}
