mod lookup;

use super::*;
use std::fs;
use std::sync::Arc;

use api_server_double::{ApiServer, Reply};
use http::HeaderValue;
use log_capture::Capture;
use rustls::pki_types::CertificateDer;
use serde_json::json;

use crate::guard::tests::scene::{Authority, Chain, Folder, options};

fn speaking_for(user: &'static str) -> HeaderMap {
    let name = http::HeaderName::from_static("x-remote-user");
    [(name, HeaderValue::from_static(user))].into_iter().collect()
}

fn named(finding: Finding) -> Option<String> {
    match finding {
        Finding::Of(user) => Some(user.name),
        Finding::Bad | Finding::NoUser => None,
    }
}

/// Clients of one CA from a file, proxies of another.
struct Files {
    clients: Authority,
    proxies: Authority,
    folder: Folder,
}

impl Files {
    fn new(name: &str) -> Self {
        let (clients, proxies) = (Authority::new(), Authority::new());
        let folder = Folder::new(name);
        folder.write("clients.crt", &clients.pem);
        folder.write("proxies.crt", &proxies.pem);
        Self { clients, proxies, folder }
    }

    fn options(&self) -> DelegationOptions {
        let mut options = options();
        options.client_ca_file = Some(self.folder.join("clients.crt"));
        options.proxy_ca_file = Some(self.folder.join("proxies.crt"));
        options.proxy_headers.allowed_names = vec!["front".into()];
        options
    }
}

#[tokio::test]
async fn a_certificate_is_judged_by_the_ca_that_vouches_for_it() {
    let files = Files::new("judged");
    let trust = Trust::load(&files.options(), None).await.unwrap();
    let (none, ada) = (HeaderMap::new(), speaking_for("ada"));
    let user = async |chain: &[CertificateDer<'static>], headers| {
        trust.user(&ShownChain::new(chain.to_vec()), headers).await
    };
    let client = files.clients.client("eve", &["team"]);
    assert_eq!(named(user(&client, &none).await).as_deref(), Some("eve"));
    assert_eq!(named(user(&client, &ada).await).as_deref(), Some("eve"));
    let front = files.proxies.client("front", &[]);
    assert_eq!(named(user(&front, &ada).await).as_deref(), Some("ada"));
    assert_eq!(user(&front, &none).await, Finding::Bad, "it is no client");
    let other = files.proxies.client("other", &[]);
    assert_eq!(user(&other, &ada).await, Finding::Bad, "its name is not allowed");
    let stranger = Authority::new().client("eve", &["system:masters"]);
    assert_eq!(user(&stranger, &ada).await, Finding::Bad);
}

#[tokio::test]
async fn a_certificate_for_servers_is_no_credential() {
    let files = Files::new("servers");
    let trust = Trust::load(&files.options(), None).await.unwrap();
    assert_eq!(
        trust.user(&ShownChain::new(files.clients.server("eve")), &HeaderMap::new()).await,
        Finding::Bad
    );
}

#[tokio::test]
async fn without_a_ca_a_certificate_says_nothing() {
    let trust = Trust::load(&options(), None).await.unwrap();
    let chain = ShownChain::new(Authority::new().client("eve", &[]));
    assert_eq!(trust.user(&chain, &speaking_for("ada")).await, Finding::NoUser);
}

#[tokio::test]
async fn a_file_that_cannot_be_used_ends_the_start_and_is_named() {
    let files = Files::new("start");
    for text in ["", "garbage", "-----BEGIN CERTIFICATE-----\nplanted"] {
        files.folder.write("clients.crt", text);
        let message = Trust::load(&files.options(), None).await.err().unwrap().to_string();
        assert!(message.contains("clients.crt") && !message.contains("planted"), "{message}");
    }
    fs::remove_file(files.folder.join("clients.crt")).unwrap();
    assert!(Trust::load(&files.options(), None).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn files_that_change_are_taken_over_and_bad_ones_are_not() {
    let files = Files::new("changed");
    let trust = Arc::new(Trust::load(&files.options(), None).await.unwrap());
    let captured = Capture::begin();
    let following = Arc::clone(&trust);
    let _following = tokio::spawn(async move { following.follow().await });
    let next = Authority::new();
    let (old, new) = (files.clients.client("old", &[]), next.client("new", &[]));
    let knows = async |chain: &Chain| {
        named(trust.user(&ShownChain::new(chain.clone()), &HeaderMap::new()).await).is_some()
    };
    files.folder.write("clients.crt", "garbage");
    until(async || !captured.with("the previous CAs stay in use").is_empty()).await;
    assert!(knows(&old).await && !knows(&new).await);
    files.folder.write("clients.crt", &next.pem);
    until(async || knows(&new).await).await;
    assert!(!knows(&old).await);
}

/// Lets the clock run until the condition holds; files are read meanwhile.
async fn until(reached: impl AsyncFn() -> bool) {
    for _ in 0..10_000 {
        if reached().await {
            return;
        }
        sleep(Duration::from_secs(1)).await;
        std::thread::yield_now();
    }
    panic!("it is not reached");
}

#[tokio::test(start_paused = true)]
async fn what_the_cluster_publishes_fills_what_no_file_gives() {
    let (clients, published) = (Authority::new(), Authority::new());
    let folder = Folder::new("published");
    let file = folder.write("clients.crt", &clients.pem);
    let data = json!({
        "client-ca-file": published.pem,
        "requestheader-client-ca-file": published.pem,
        "requestheader-username-headers": "[\"X-Remote-User\"]",
    });
    let server = ApiServer::new(move |_| Reply::Json(200, json!({"data": data})));
    let of_file = DelegationOptions { client_ca_file: Some(file), ..options() };
    for (options, from_cluster) in [(options(), true), (of_file, false)] {
        let trust = Arc::new(Trust::load(&options, Some(server.client().into())).await.unwrap());
        let asked = server.asked().len();
        let following = Arc::clone(&trust);
        let _following = tokio::spawn(async move { following.follow().await });
        server.until_asked(asked + 1).await;
        sleep(Duration::from_secs(1)).await;
        let none = HeaderMap::new();
        let own = trust.user(&ShownChain::new(clients.client("own", &[])), &none).await;
        let theirs = trust.user(&ShownChain::new(published.client("theirs", &[])), &none).await;
        assert_eq!((named(own).is_some(), named(theirs).is_some()), (!from_cluster, from_cluster));
        let front = trust
            .user(&ShownChain::new(published.client("front", &[])), &speaking_for("ada"))
            .await;
        assert_eq!(named(front).as_deref(), Some("ada"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_look_ends_the_process_unless_it_is_tolerated() {
    let server = ApiServer::new(|_| Reply::failure(403, "Forbidden"));
    let trust = Trust::load(&options(), Some(server.client().into())).await.unwrap();
    let refused = trust.follow().await.to_string();
    assert!(refused.contains("--authentication-tolerate-lookup-failure"), "{refused}");

    let tolerant = DelegationOptions { tolerate_lookup_failure: true, ..options() };
    let trust = Trust::load(&tolerant, Some(server.client().into())).await.unwrap();
    let goes_on = tokio::time::timeout(Duration::from_secs(600), trust.follow()).await;
    assert!(goes_on.is_err());
    assert!(server.asked().len() > 10);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_waited_for() {
    let server = ApiServer::new(|asked| match asked.number {
        0..3 => Reply::Refused,
        3 => Reply::Json(200, json!({"data": {}})),
        // Not the first look any more: what is known stays.
        _ => Reply::failure(403, "Forbidden"),
    });
    let trust = Trust::load(&options(), Some(server.client().into())).await.unwrap();
    let goes_on = tokio::time::timeout(Duration::from_secs(600), trust.follow()).await;
    assert!(goes_on.is_err());
    assert!(server.asked().len() > 5);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_looked_up_when_it_is_not_wanted_or_not_needed() {
    let files = Files::new("not-needed");
    let skipping = DelegationOptions { skip_lookup: true, ..options() };
    for options in [skipping, files.options()] {
        let server = ApiServer::new(|_| Reply::failure(403, "Forbidden"));
        let trust = Trust::load(&options, Some(server.client().into())).await.unwrap();
        let goes_on = tokio::time::timeout(Duration::from_secs(100), trust.follow()).await;
        assert!(goes_on.is_err());
        assert_eq!(server.asked().len(), 0);
    }
}
