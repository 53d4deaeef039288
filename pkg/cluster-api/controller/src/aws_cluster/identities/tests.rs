use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;

mod fields;

fn found(data: &Value) -> Result<Credentials, Denial> {
    let encoded = data.as_object().unwrap().iter();
    let encoded = encoded.map(|(key, text)| (key, STANDARD.encode(text.as_str().unwrap())));
    let secret = json!({"metadata": {"name": "s", "namespace": "ns", "uid": "u",
        "resourceVersion": "1"}, "data": encoded.collect::<HashMap<_, _>>()});
    let link = Link { kind: IdentityKind::Static, name: "keys".to_owned(), object: None };
    keys(&link, &Object::read(secret).unwrap())
}

#[test]
fn keys_are_read_under_upstreams_names_and_never_printed() {
    let keys = json!({ACCESS_KEY: "AKIA\n", SECRET_KEY: "planted-secret"});
    let read = found(&keys).unwrap();
    assert_eq!((read.access_key_id(), read.secret_access_key()), ("AKIA", "planted-secret"));
    assert_eq!(read.session_token(), None);
    assert!(!format!("{read:?}").contains("planted"));
    let with_token = json!({ACCESS_KEY: "A", SECRET_KEY: "s", SESSION_TOKEN: "t"});
    assert_eq!(found(&with_token).unwrap().session_token(), Some("t"));
    let denied = found(&json!({ACCESS_KEY: "A"})).unwrap_err();
    assert!(denied.message.ends_with("Secret ns/s has no SecretAccessKey"), "{denied:?}");
}
