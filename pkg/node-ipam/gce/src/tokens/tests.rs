//! Tokens of every source, on the stub of Google.

use gce_stub::{GceStub, SERVICE_ACCOUNT_KEY};
use prometheus::Registry;
use resilience::Fence;
use serde_json::json;

use super::*;
use crate::{Client, Config, ProviderId};

fn tokens(stub: &GceStub, config: &str, file: Option<String>) -> Tokens {
    let config = Config::parse(&format!("[global]\n{config}")).unwrap();
    let path = std::env::temp_dir().join(format!("gce-tokens-{}", uuid::Uuid::new_v4()));
    if let Some(file) = &file {
        std::fs::write(&path, file).unwrap();
    }
    let (host, named) = (stub.host.clone(), path.display().to_string());
    let env = |name: &str| match name {
        "GCE_METADATA_HOST" => Some(host.clone()),
        "GOOGLE_APPLICATION_CREDENTIALS" if file.is_some() => Some(named.clone()),
        _ => None,
    };
    let metrics = Metrics::new(&Registry::new()).unwrap();
    let tokens = Tokens::from(&config.tokens, &env, metrics).unwrap();
    if file.is_some() {
        std::fs::remove_file(path).unwrap();
    }
    tokens
}

#[tokio::test]
async fn a_token_comes_from_wherever_the_file_says() {
    let stub = GceStub::start().await;
    let token_uri = format!("http://{}/token", stub.host);
    let account = json!({
        "type": "service_account", "client_email": "a@p", "private_key_id": "1",
        "private_key": SERVICE_ACCOUNT_KEY, "token_uri": token_uri,
    });
    let user = json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        "token_uri": token_uri,
    });
    let alternate =
        format!("token-url = http://{}/alternate\ntoken-body = \"the body\"", stub.host);
    for (config, file, asked) in [
        ("", None, 1),
        ("token-url = nil", None, 1),
        ("token-url = nil", Some(account.to_string()), 1),
        ("token-url = nil", Some(user.to_string()), 1),
        // One of the metadata server, to show it.
        (alternate.as_str(), None, 2),
    ] {
        let (before, tokens) = (stub.tokens_given(), tokens(&stub, config, file));
        assert_eq!(tokens.bearer().await.unwrap(), "Bearer hidden-token-0", "{config}");
        assert_eq!(tokens.bearer().await.unwrap(), "Bearer hidden-token-0", "{config}");
        assert_eq!(stub.tokens_given() - before, asked, "{config}");
    }
}

#[tokio::test]
async fn many_who_need_a_token_ask_for_one() {
    let stub = GceStub::start().await;
    let tokens = std::sync::Arc::new(tokens(&stub, "", None));
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let tokens = std::sync::Arc::clone(&tokens);
        all.spawn(async move { tokens.bearer().await.is_ok() });
    }
    assert_eq!(all.join_all().await, [true; 50]);
    assert_eq!(stub.tokens_given(), 1);
}

#[tokio::test]
async fn a_server_that_gives_none_is_asked_once_by_all_who_wait() {
    let stub = GceStub::start().await;
    let host = stub.host.clone();
    let metrics = Metrics::new(&Registry::new()).unwrap();
    let url = format!("http://{host}/nothing").parse().unwrap();
    let from = TokensFrom::Alternate { url, body: String::new().into() };
    let env = |name: &str| (name == "GCE_METADATA_HOST").then(|| host.clone());
    let tokens = Tokens::from(&from, &env, metrics.clone()).unwrap();
    for _ in 0..3 {
        let error = tokens.bearer().await.unwrap_err().to_string();
        assert!(error.contains("404"), "{error}");
    }
    assert!(stub.tokens_given() < 3, "each has asked for one of its own");
}

#[tokio::test]
async fn a_token_that_expired_in_between_is_replaced_and_the_call_made_again() {
    let stub = GceStub::start().await;
    stub.add_vm("z", "a", &[]);
    let host = stub.host.clone();
    let env = move |name: &str| (name == "GCE_METADATA_HOST").then(|| host.clone());
    let config = Config::parse(&stub.config()).unwrap();
    let metrics = Metrics::new(&Registry::new()).unwrap();
    let client = Client::new(config, metrics, Fence::always_open(), false, &env).unwrap();
    let vm = ProviderId::parse(&GceStub::provider_id("z", "a")).unwrap();
    for given in 1..3 {
        client.instance(&vm).await.unwrap();
        assert_eq!(stub.tokens_given(), given);
        stub.expire_tokens();
    }
}

/// A moment that far in the future cannot be computed.
#[test]
fn a_token_is_held_for_a_day_at_the_most() {
    let body = format!(r#"{{"access_token": "hidden", "expires_in": {}}}"#, u64::MAX);
    let body = Bytes::from(body);
    let answer = Answer { status: http::StatusCode::OK, retry_after: None, body };
    let token = of_oauth(&answer).unwrap();
    assert_eq!(token.lasts, LONGEST);
    assert!(Instant::now().checked_add(token.lasts).is_some());
}

#[test]
fn nothing_that_is_printed_holds_a_token() {
    let token = Token { text: "hidden".to_owned().into(), lasts: LIMIT };
    let bearer = bearer(&token).unwrap();
    assert!(!format!("{bearer:?}").contains("hidden"));
    let body = Bytes::from_static(b"{\"access_token\": \"hidden\", \"expires_in\": \"x\"}");
    let answer = Answer { status: http::StatusCode::OK, retry_after: None, body };
    let error = of_oauth(&answer).err().unwrap();
    assert!(!format!("{error} {error:?}").contains("hidden"), "{error}");
}
