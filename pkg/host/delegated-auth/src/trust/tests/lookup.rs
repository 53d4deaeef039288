use crate::trust::*;
use api_server_double::{ApiServer, Reply};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::{Value, json};

fn ca() -> String {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
}

async fn looked_up(data: Value) -> Result<Published, LookupError> {
    let map = json!({"kind": "ConfigMap", "data": data});
    let server = ApiServer::new(move |_| Reply::Json(200, map.clone()));
    let found = look_up(&server.client().into()).await;
    assert_eq!(server.asked()[0].head.uri.path(), PATH);
    found
}

#[tokio::test]
async fn a_whole_config_map_gives_both_cas_and_the_headers() {
    let published = looked_up(json!({
        "client-ca-file": ca(),
        "requestheader-client-ca-file": ca(),
        "requestheader-allowed-names": "[\"front\"]",
        "requestheader-username-headers": "[\"X-Remote-User\"]",
        "requestheader-group-headers": "[\"X-Remote-Group\"]",
        "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
    }))
    .await
    .unwrap();
    assert!(published.clients.is_some());
    let (_, headers) = published.proxies.unwrap();
    let expected = RequestHeaders {
        allowed_names: vec!["front".into()],
        user: vec!["X-Remote-User".into()],
        uid: Vec::new(),
        groups: vec!["X-Remote-Group".into()],
        extra_prefixes: vec!["X-Remote-Extra-".into()],
    };
    assert_eq!(headers, expected);
}

#[tokio::test]
async fn what_is_not_published_is_not_there() {
    for data in [json!(null), json!({}), json!({"client-ca-file": ""})] {
        let published = looked_up(data).await.unwrap();
        assert!(published.clients.is_none() && published.proxies.is_none());
    }
}

#[tokio::test]
async fn what_cannot_be_used_is_named_by_its_key_and_not_shown() {
    for (key, value) in [
        ("client-ca-file", "planted"),
        ("requestheader-client-ca-file", "planted"),
        ("requestheader-allowed-names", "planted"),
    ] {
        let mut data = json!({"client-ca-file": ca(), "requestheader-client-ca-file": ca()});
        data[key] = json!(value);
        let error = looked_up(data).await.err().unwrap();
        assert!(!error.may_pass());
        let message = error.to_string();
        assert!(message.contains(key) && !message.contains("planted"), "{message}");
    }
}

#[tokio::test]
async fn only_a_server_that_is_away_or_busy_is_worth_another_look() {
    for (code, may_pass) in [(403, false), (404, true), (401, false), (429, true), (503, true)] {
        let server = ApiServer::new(move |_| Reply::failure(code, "Some"));
        let error = look_up(&server.client().into()).await.err().unwrap();
        assert_eq!(error.may_pass(), may_pass, "{error}");
    }
    let server = ApiServer::new(|_| Reply::Refused);
    assert!(look_up(&server.client().into()).await.err().unwrap().may_pass());
    let server = ApiServer::new(|_| Reply::failure(403, "Forbidden"));
    let message = look_up(&server.client().into()).await.err().unwrap().to_string();
    assert!(message.contains("extension-apiserver-authentication-reader"), "{message}");
}
