//! Credentials that were read and dropped leave nothing in memory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use memory_search::Mark;
use zeroize::Zeroizing;

use super::*;
use crate::api::tke::ClusterCredential;

/// A secret and its form in base64.
struct Planted {
    plain: Mark,
    encoded: Mark,
}

impl Planted {
    fn new() -> Self {
        let plain = Mark::random();
        let secret = plain.secret();
        let mut encoded = Zeroizing::new(vec![0; secret.len() * 2]);
        let length = STANDARD.encode_slice(secret.as_bytes(), &mut encoded).unwrap();
        let encoded = Mark::of(std::str::from_utf8(&encoded[..length]).unwrap());
        Self { plain, encoded }
    }

    fn is_in_memory(&self) -> bool {
        self.plain.is_in_memory() || self.encoded.is_in_memory()
    }
}

/// An answer, as it comes from the wire: each `Ok` is text, each `Err` is secret.
fn answer(parts: &[Result<&str, &Mark>]) -> Bytes {
    let mut body = Vec::with_capacity(1024);
    for part in parts {
        match part {
            Ok(text) => body.extend_from_slice(text.as_bytes()),
            Err(mark) => body.extend_from_slice(mark.secret().as_bytes()),
        }
    }
    Bytes::from(body)
}

/// rule:secrets-are-never-shown
#[test]
fn a_secret_that_was_read_and_dropped_is_nowhere_in_memory() {
    let (token, key) = (Planted::new(), Planted::new());
    let body = answer(&[
        Ok(r#"{"kind":"Secret","data":{"other":"b3RoZXI=","token":""#),
        Err(&token.encoded),
        Ok(r#"","tls.key":""#),
        Err(&key.encoded),
        Ok(r#""}}"#),
    ]);
    let read = SecretData::decode(&body).unwrap();
    wipe(body);
    let text = read.token().unwrap();
    assert!(token.plain.is_in_memory() && key.plain.is_in_memory(), "they were read");
    assert!(!token.encoded.is_in_memory(), "the answer was wiped");
    drop((read, text));
    assert!(!token.is_in_memory() && !key.is_in_memory());
}

/// rule:secrets-are-never-shown
#[test]
fn a_credential_that_was_read_and_dropped_is_nowhere_in_memory_and_neither_is_what_no_probe_needs()
{
    let (token, key, authority) = (Planted::new(), Planted::new(), Planted::new());
    let body = answer(&[
        Ok(r#"{"metadata":{"name":"cc-1"},"clusterName":"cls-1","caKey":""#),
        Err(&authority.encoded),
        Ok(r#"","token":""#),
        Err(&token.plain),
        Ok(r#"","clientKey":""#),
        Err(&key.encoded),
        Ok(r#""}"#),
    ]);
    let read = ClusterCredential::read(&body).unwrap();
    wipe(body);
    assert!(token.plain.is_in_memory() && key.plain.is_in_memory(), "they were read");
    assert!(!authority.is_in_memory(), "the key of the authority is not decoded");
    drop(read);
    assert!(!token.is_in_memory() && !key.is_in_memory());
}
