//! [`Authorities`] as the data of a Secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::webhook_registration::authorities::Authorities;
use crate::webhook_registration::authority::{Authority, AuthorityError, facts};

const CERTIFICATE: &str = "ca.crt";
const KEY: &str = "ca.key";
const NEXT_CERTIFICATE: &str = "next-ca.crt";
const NEXT_KEY: &str = "next-ca.key";
const PREVIOUS: &str = "previous-ca.crt";
const END: &str = "-----END CERTIFICATE-----";

/// Content of a Secret, without its metadata.
pub(crate) fn body(authorities: &Authorities) -> Map<String, Value> {
    let mut data = Map::new();
    let mut put = |key: &str, text: &str| {
        data.insert(key.to_owned(), STANDARD.encode(text).into());
    };
    put(CERTIFICATE, &authorities.current.certificate);
    put(KEY, &authorities.current.key);
    if let Some(next) = &authorities.next {
        put(NEXT_CERTIFICATE, &next.certificate);
        put(NEXT_KEY, &next.key);
    }
    if !authorities.previous.is_empty() {
        put(PREVIOUS, &authorities.previous.iter().map(|(pem, _)| &**pem).collect::<String>());
    }
    [("type".to_owned(), "Opaque".into()), ("data".to_owned(), data.into())].into_iter().collect()
}

/// Whether a Secret has no data, as the shipped manifest makes it.
pub(crate) fn is_empty(body: &Map<String, Value>) -> bool {
    body.get("data").and_then(Value::as_object).is_none_or(Map::is_empty)
}

/// Reads it.
///
/// # Errors
/// It holds no authority that can sign. Others than that one are left out when they cannot be read.
pub(crate) fn read(body: &Map<String, Value>) -> Result<Authorities, AuthorityError> {
    let text = |key: &str| {
        let text = body.get("data")?.get(key)?.as_str()?;
        String::from_utf8(STANDARD.decode(text).ok()?).ok().map(Zeroizing::new)
    };
    let missing = || AuthorityError::Stored("the Secret needs both ca.crt and ca.key");
    let authority = |certificate: &str, key: &str| Some((text(certificate)?, text(key)?));
    let (certificate, key) = authority(CERTIFICATE, KEY).ok_or_else(missing)?;
    let current = Authority::read(&certificate, &key)?;
    let next = authority(NEXT_CERTIFICATE, NEXT_KEY)
        .and_then(|(certificate, key)| Authority::read(&certificate, &key).ok());
    let previous = text(PREVIOUS).map(|text| {
        let parts = text.split_inclusive(END).filter(|part| part.contains(END));
        let dated = |part: &str| {
            let pem = format!("{}\n", part.trim());
            let (_, until, _) = facts(&pem).ok()?;
            Some((pem, until))
        };
        parts.filter_map(dated).collect()
    });
    Ok(Authorities { current, next, previous: previous.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::webhook_registration::authorities::Lives;

    #[test]
    fn what_is_written_is_read_again() {
        let lives = Lives { authority: Duration::from_secs(30), ..Lives::default() };
        let now = SystemTime::now();
        let one = Authorities::make(now, &lives).unwrap();
        let at = |seconds| now + Duration::from_secs(seconds);
        let two = one.step(at(25), &lives, true).unwrap().unwrap();
        let quick = Lives { notice: Duration::ZERO, ..lives };
        let three = two.step(at(26), &quick, true).unwrap().unwrap();
        assert!(two.next.is_some() && three.previous.len() == 1);
        for authorities in [one, two, three] {
            let read = read(&body(&authorities)).unwrap();
            assert!(read.bundle() == authorities.bundle());
            assert!(read.current == authorities.current && read.next == authorities.next);
            assert_eq!(read.previous.len(), authorities.previous.len());
            assert!(read.step(at(0), &lives, false).unwrap().is_none(), "nothing is left to do");
        }
    }

    #[test]
    fn a_secret_without_a_whole_authority_is_refused_without_what_it_holds() {
        let (one, other) = (
            Authorities::make(SystemTime::now(), &Lives::default()).unwrap(),
            Authorities::make(SystemTime::now(), &Lives::default()).unwrap(),
        );
        let whole = body(&one);
        let with = |key: &str, value: Value| {
            let mut body = whole.clone();
            body["data"][key] = value;
            read(&body).err().map(|error| error.to_string())
        };
        assert_eq!(with("other", "eA==".into()), None);
        let refused = [
            with(KEY, Value::Null),
            with(KEY, "cGxhbnRlZA==".into()),
            with(KEY, STANDARD.encode(&*other.current.key).into()),
            with(CERTIFICATE, "not base64".into()),
            with(CERTIFICATE, "cGxhbnRlZA==".into()),
            read(&Map::new()).err().map(|error| error.to_string()),
        ];
        for message in refused {
            let message = message.expect("it is refused");
            assert!(!message.contains("planted") && !message.contains("PRIVATE"), "{message}");
        }
    }
}
