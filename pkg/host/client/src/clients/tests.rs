//! Identities over TLS, the shared connection, and the metrics page.

use super::*;
use std::time::Duration;

use http::Method;
use prometheus::Registry;
use rustls::pki_types::pem::PemObject as _;

use crate::testing::{
    Authority, Conduct, Seen, Server, TempFile, kubeconfig, load, page, profile, reply,
    reply_after, request,
};
use crate::{CallError, answer};

const LONG: Duration = Duration::from_secs(30);

/// Files of a kubeconfig with a client certificate.
struct Root {
    authority: Authority,
    _files: Vec<TempFile>,
    options: ClientOptions,
}

/// A TLS server that hands out tokens, and a root identity with a certificate, impersonating
/// `admin`.
async fn root_with_certificate() -> (Root, Server) {
    let authority = Authority::new();
    let (certificate, key) = authority.client("root");
    let server = Server::tls(&authority, |seen| Conduct::Answer(token_reply(seen))).await;
    let files = [authority.pem(), certificate, key].map(|pem| TempFile::new(&pem));
    let [ca, certificate, key] = [0, 1, 2].map(|i| files[i].path().display().to_string());
    let kubeconfig = kubeconfig(
        &format!("server: 'https://{}', certificate-authority: '{ca}'", server.address),
        &format!("client-certificate: '{certificate}', client-key: '{key}', as: admin"),
    );
    let options = ClientOptions {
        kubeconfig: Some(kubeconfig.path().to_owned()),
        ..crate::testing::options()
    };
    let mut files: Vec<_> = files.into();
    files.push(kubeconfig);
    (Root { authority, _files: files, options }, server)
}

fn token_reply(seen: &Seen) -> crate::testing::Reply {
    if !seen.path().ends_with("/token") {
        return reply(200);
    }
    let status =
        serde_json::json!({"token": "sa-token", "expirationTimestamp": "2020-01-01T00:00:00Z"});
    let mut reply = reply(201);
    *reply.body_mut() = serde_json::json!({"status": status}).to_string().into();
    reply
}

fn node_controller() -> Identity {
    Identity::ServiceAccount {
        namespace: "kube-system".to_owned(),
        name: "node-controller".to_owned(),
    }
}

#[tokio::test]
async fn a_service_accounts_client_sends_its_token_and_nothing_of_the_root_identity() {
    let (root, server) = root_with_certificate().await;
    let clients = load(&root.options, &Registry::new()).await.unwrap();
    let client = clients.build(Profile { identity: node_controller(), ..profile() }).unwrap();
    answer(&client, request(Method::PATCH, "/work"), LONG).await.unwrap();

    let seen = server.seen();
    let work = seen.iter().find(|s| s.path() == "/work").unwrap();
    assert_eq!(work.header("authorization"), Some("Bearer sa-token"));
    assert_eq!(work.header("impersonate-user"), None);
    assert_eq!(work.certificate, None);

    let account = "/api/v1/namespaces/kube-system/serviceaccounts/node-controller";
    for call in seen.iter().filter(|s| s.path().starts_with(account)) {
        assert!(call.certificate.is_some(), "{}", call.path());
        assert_eq!(call.header("authorization"), None);
        assert_eq!(call.header("impersonate-user"), Some("admin"));
    }
    let token = seen.iter().find(|s| s.path().ends_with("/token")).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&token.body).unwrap();
    assert_eq!(body["spec"]["expirationSeconds"], 3600);
}

#[tokio::test]
async fn a_401_makes_the_next_request_bring_a_new_token() {
    let authority = Authority::new();
    let server = Server::tls(&authority, |seen| {
        Conduct::Answer(if seen.path() == "/work" { reply(401) } else { token_reply(seen) })
    })
    .await;
    let (root, _other) = root_with_certificate().await;
    let ca = TempFile::new(&authority.pem());
    let cluster = format!(
        "server: 'https://{}', certificate-authority: '{}'",
        server.address,
        ca.path().display()
    );
    let file = kubeconfig(&cluster, "");
    let options = ClientOptions { kubeconfig: Some(file.path().to_owned()), ..root.options };
    let clients = load(&options, &Registry::new()).await.unwrap();
    let client = clients.build(Profile { identity: node_controller(), ..profile() }).unwrap();
    for _ in 0..2 {
        let answer = answer(&client, request(Method::GET, "/work"), LONG).await.unwrap();
        assert_eq!(answer.status, 401);
    }
    let tokens = server.seen().iter().filter(|s| s.path().ends_with("/token")).count();
    assert_eq!(tokens, 2);
    drop(root.authority);
}

#[tokio::test]
async fn clients_share_one_http2_connection_and_the_lease_has_its_own() {
    let (root, server) = root_with_certificate().await;
    let clients = load(&root.options, &Registry::new()).await.unwrap();
    let own = Profile { own_connection: true, ..profile() };
    for profile in [profile(), profile(), own] {
        let client = clients.build(profile).unwrap();
        answer(&client, request(Method::GET, "/work"), LONG).await.unwrap();
    }
    let seen = server.seen();
    assert!(seen.iter().all(|s| s.certificate.is_some()));
    assert_eq!(seen[0].head.version, http::Version::HTTP_2);
    assert_eq!(seen[0].connection, seen[1].connection);
    assert_eq!(seen[2].head.version, http::Version::HTTP_11);
    assert_ne!(seen[1].connection, seen[2].connection);
}

#[tokio::test]
async fn over_http2_too_a_fence_that_closes_during_the_handshake_stops_the_write() {
    let (root, server) = root_with_certificate().await;
    let clients = load(&root.options, &Registry::new()).await.unwrap();
    let fence = resilience::Fence::closed();
    fence.open_for(fence.read_clocks(), LONG);
    let client = clients.build(Profile { fence: Some(fence.clone()), ..profile() }).unwrap();
    let bare = || http::Request::delete("/work").body(kube::client::Body::empty()).unwrap();
    for request in [request(Method::PATCH, "/work"), bare()] {
        fence.open_for(fence.read_clocks(), LONG);
        let client = load(&root.options, &Registry::new()).await.unwrap();
        let client = client.build(Profile { fence: Some(fence.clone()), ..profile() }).unwrap();
        let mut writing = Box::pin(answer(&client, request, LONG));
        // Past the first look at the fence, into a handshake that cannot be over within two polls.
        assert!(futures::poll!(&mut writing).is_pending());
        tokio::task::yield_now().await;
        assert!(futures::poll!(&mut writing).is_pending());
        fence.close();
        let error = writing.await.unwrap_err();
        assert!(matches!(error, CallError::Fenced), "{error}");
    }
    assert!(server.seen().is_empty());
    fence.open_for(fence.read_clocks(), LONG);
    answer(&client, bare(), LONG).await.unwrap();
    assert_eq!(server.seen()[0].body.len(), 0);
}

#[tokio::test]
async fn a_server_that_our_authority_did_not_sign_gets_nothing() {
    let (root, _server) = root_with_certificate().await;
    let impostor = Server::tls(&Authority::new(), |_| Conduct::Answer(reply(200))).await;
    let options =
        ClientOptions { master: Some(format!("https://{}", impostor.address)), ..root.options };
    let clients = load(&options, &Registry::new()).await.unwrap();
    let client = clients.build(profile()).unwrap();
    let error = answer(&client, request(Method::PATCH, "/work"), LONG).await.unwrap_err();
    assert!(matches!(error, CallError::NotSent(_)), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(impostor.seen().is_empty());
}

#[tokio::test]
async fn a_token_that_cannot_be_had_means_nothing_was_sent_and_says_why() {
    let server = Server::plain(|_| Conduct::Answer(reply(403))).await;
    let (clients, _) = crate::testing::clients(&server.url()).await;
    let client = clients.build(Profile { identity: node_controller(), ..profile() }).unwrap();
    let error = answer(&client, request(Method::PATCH, "/work"), LONG).await.unwrap_err();
    assert!(matches!(error, CallError::NotSent(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("service account kube-system/node-controller"), "{text}");
    assert!(text.contains("get serviceaccounts"), "{text}");
}

#[tokio::test]
async fn a_server_that_refuses_most_stops_every_client_but_the_leases() {
    let server = Server::plain(|seen| {
        Conduct::Answer(if seen.path() == "/busy" { reply_after(429, "7") } else { reply(200) })
    })
    .await;
    let (clients, _) = crate::testing::clients(&server.url()).await;
    for (own_connection, stopped) in [(false, true), (true, false)] {
        let client = clients.build(Profile { own_connection, ..profile() }).unwrap();
        for _ in 0..33 {
            answer(&client, request(Method::PUT, "/busy"), LONG).await.unwrap();
        }
        let started = tokio::time::Instant::now();
        answer(&client, request(Method::PUT, "/work"), LONG).await.unwrap();
        // Far from both: a machine that stands still for three seconds changes neither.
        let took = started.elapsed();
        assert_eq!(took > Duration::from_millis(3_500), stopped, "{own_connection}: {took:?}");
    }
}

#[tokio::test]
async fn the_metrics_page_has_stocks_names_and_labels() {
    let server = Server::plain(|_| Conduct::Answer(reply(200))).await;
    let (clients, registry) = crate::testing::clients(&server.url()).await;
    let client = clients.build(profile()).unwrap();
    answer(&client, request(Method::PATCH, "/work"), LONG).await.unwrap();
    let page = page(&registry);
    let host = server.address;
    for series in [
        format!("rest_client_requests_total{{code=\"200\",host=\"{host}\",method=\"PATCH\"}} 1"),
        format!(
            "rest_client_request_duration_seconds_bucket{{host=\"{host}\",verb=\"PATCH\",le=\"0.005\"}}"
        ),
        format!(
            "rest_client_request_duration_seconds_bucket{{host=\"{host}\",verb=\"PATCH\",le=\"60\"}} 1"
        ),
        format!(
            "rest_client_rate_limiter_duration_seconds_count{{host=\"{host}\",verb=\"PATCH\"}} 1"
        ),
        format!(
            "rest_client_request_size_bytes_bucket{{host=\"{host}\",verb=\"PATCH\",le=\"64\"}} 1"
        ),
        format!(
            "rest_client_response_size_bytes_bucket{{host=\"{host}\",verb=\"PATCH\",le=\"16777216\"}} 1"
        ),
        "icm_server_request_duration_seconds_count{client=\"work\",verb=\"PATCH\"} 1".to_owned(),
        "icm_fenced_requests_total 0".to_owned(),
    ] {
        assert!(page.contains(&series), "no {series} in\n{page}");
    }
}

#[tokio::test]
async fn the_series_of_a_host_end_with_its_last_client() {
    let server = Server::plain(|_| Conduct::Answer(reply(200))).await;
    let (clients, registry) = crate::testing::clients(&server.url()).await;
    let (one, other) = (clients.build(profile()).unwrap(), clients.build(profile()).unwrap());
    answer(&one, request(Method::PATCH, "/a"), LONG).await.unwrap();
    answer(&other, request(Method::GET, "/a"), LONG).await.unwrap();
    let host = format!("host=\"{}\"", server.address);
    drop(one);
    assert!(crate::testing::page(&registry).contains(&host));
    drop(other);
    // kube's buffer ends the layers of a client in a task of its own.
    let gone = async {
        while crate::testing::page(&registry).contains(&host) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, gone).await.expect("no client writes these series any more");
}

#[test]
fn building_outside_of_a_runtime_is_an_error_and_not_a_panic() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (clients, _) = runtime.block_on(crate::testing::clients("http://127.0.0.1:1"));
    assert!(matches!(clients.build(profile()), Err(ConfigError::NoRuntime)));
}

#[tokio::test]
async fn after_a_rotation_of_its_files_the_next_request_shows_the_new_certificate() {
    let authority = Authority::new();
    let server = Server::tls(&authority, |_| Conduct::Answer(reply(200))).await;
    let (old_chain, key) = authority.client("one");
    let files = [authority.pem(), old_chain.clone(), key].map(|pem| TempFile::new(&pem));
    let [ca, chain, key] = [0, 1, 2].map(|i| files[i].path().display().to_string());
    let file = kubeconfig(
        &format!("server: 'https://{}', certificate-authority: '{ca}'", server.address),
        &format!("client-certificate: '{chain}', client-key: '{key}'"),
    );
    let options =
        ClientOptions { kubeconfig: Some(file.path().to_owned()), ..crate::testing::options() };
    let clients = load(&options, &Registry::new()).await.unwrap();
    let shared = clients.build(profile()).unwrap();
    let own = clients.build(Profile { own_connection: true, ..profile() }).unwrap();
    for client in [&shared, &own] {
        answer(client, request(Method::GET, "/work"), LONG).await.unwrap();
    }
    let (new_chain, new_key) = authority.client("two");
    std::fs::write(files[1].path(), &new_chain).unwrap();
    std::fs::write(files[2].path(), new_key).unwrap();
    // As after a 401, so that the test need not wait for the next poll.
    clients.0.credentials.refused(0);
    while clients.0.credentials.current().generation == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for client in [&shared, &own] {
        answer(client, request(Method::GET, "/work"), LONG).await.unwrap();
    }
    let shown: Vec<_> = server.seen().into_iter().map(|seen| seen.certificate).collect();
    let [old, new] = [old_chain, new_chain].map(|pem| {
        Some(rustls::pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec())
    });
    assert_eq!(shown, [old.clone(), old, new.clone(), new]);
}

#[tokio::test]
async fn a_401_makes_the_credentials_be_read_again_for_the_next_request() {
    // On a machine that stands still for long the poll may be what reads them: then once more.
    for _ in 0..10 {
        if read_again_after_a_401().await < Duration::from_secs(4) {
            return;
        }
    }
    panic!("the credentials were never read before the next poll");
}

/// How long it took until the new credentials were there.
async fn read_again_after_a_401() -> Duration {
    let server = Server::plain(|seen| {
        let known = seen.header("authorization") == Some("Bearer new");
        Conduct::Answer(reply(if known { 200 } else { 401 }))
    })
    .await;
    let token = TempFile::new("old");
    let file = kubeconfig(
        &format!("server: '{}'", server.url()),
        &format!("tokenFile: '{}'", token.path().display()),
    );
    let options =
        ClientOptions { kubeconfig: Some(file.path().to_owned()), ..crate::testing::options() };
    let clients = load(&options, &Registry::new()).await.unwrap();
    let client = clients.build(profile()).unwrap();
    std::fs::write(token.path(), "new").unwrap();
    let started = std::time::Instant::now();
    let first = answer(&client, request(Method::GET, "/work"), LONG).await.unwrap();
    assert_eq!(first.status, 401);
    while clients.0.credentials.current().generation == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = started.elapsed();
    let second = answer(&client, request(Method::GET, "/work"), LONG).await.unwrap();
    assert_eq!(second.status, 200);
    took
}

mod user_agent {
    use super::super::*;

    fn options(version: &str) -> ClientOptions {
        ClientOptions {
            kubeconfig: None,
            master: None,
            product: "infra-controller-manager".to_owned(),
            version: version.to_owned(),
            commit: "0123456789abcdef".to_owned(),
        }
    }

    #[test]
    fn the_user_agent_has_stocks_form() {
        let agent = user_agent(&options("v1.2.3-rc.1+dirty"), "leader-election").unwrap();
        let agent = agent.to_str().unwrap();
        let (head, tail) = agent.split_once(" (").unwrap();
        assert_eq!(head, "infra-controller-manager/v1.2.3");
        assert!(tail.ends_with(") kubernetes/0123456/leader-election"), "{tail}");
    }

    #[test]
    fn a_suffix_that_no_header_may_hold_is_an_error_and_not_a_panic() {
        let error = user_agent(&options("v1"), "new\nline").unwrap_err();
        assert!(matches!(error, ConfigError::UserAgent(_)), "{error}");
    }
}
