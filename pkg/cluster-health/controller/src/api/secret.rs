//! Secrets in memory: they cannot be printed, and are wiped when they are dropped
//! (`rule:secrets-are-never-shown`). Each is decoded straight into a buffer of its final size, so
//! that growing leaves no second copy behind. [`wipe_json`] wipes objects that hold secrets as JSON.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use zeroize::Zeroize as _;

/// Reads text, such as a token; `None` for `null` and the empty text.
pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SecretString>, D::Error> {
    let read = from.deserialize_option(Reader(|text: &str| Some(SecretString::from(text))))?;
    Ok(read.filter(|text| !text.expose_secret().is_empty()))
}

/// Reads base64, as JSON carries bytes; `None` for `null` and the empty text.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<SecretSlice<u8>>, D::Error> {
    Ok(bytes_or_empty(from)?.filter(|bytes| !bytes.expose_secret().is_empty()))
}

/// Reads base64, as JSON carries bytes; `None` for `null`, and no bytes for the empty text: an empty
/// key is another mistake than a missing one.
pub(crate) fn bytes_or_empty<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<SecretSlice<u8>>, D::Error> {
    from.deserialize_option(Reader(decode))
}

/// The bytes at this path of an object, such as `data.token` of a Secret; no other value is copied.
/// `None` when there are none.
///
/// # Errors
/// The text is not JSON, or the value not base64.
pub(crate) fn bytes_at(
    json: &[u8],
    path: &[&str],
) -> Result<Option<SecretSlice<u8>>, serde_json::Error> {
    At(path).deserialize(&mut serde_json::Deserializer::from_slice(json))
}

/// Reads the value at a path, and skips all others.
struct At<'a>(&'a [&'a str]);

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Option<SecretSlice<u8>>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() { bytes(from) } else { from.deserialize_any(self) }
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Option<SecretSlice<u8>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            if self.0.first().is_some_and(|wanted| *wanted == key) {
                found = map.next_value_seed(Self(&self.0[1..]))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Decodes base64; `None` when the text is not base64.
pub(crate) fn decode(text: &str) -> Option<SecretSlice<u8>> {
    let text = text.trim_end();
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    let mut buffer = vec![0; (text.len() / 4 * 3).checked_sub(padding)?];
    match STANDARD.decode_slice(text, &mut buffer) {
        Ok(length) if length == buffer.len() => Some(SecretSlice::from(buffer)),
        _ => {
            // What was decoded up to the fault is wiped too.
            drop(SecretSlice::from(buffer));
            None
        }
    }
}

/// Hands the text to its function, which returns `None` for text of another form.
struct Reader<F>(F);

impl<'de, T, F: Fn(&str) -> Option<T>> Visitor<'de> for Reader<F> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Option<T>, D::Error> {
        from.deserialize_str(self)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<T>, E> {
        // Without the value, unlike serde's own errors.
        (self.0)(text).map(Some).ok_or_else(|| E::custom("is not of the expected form"))
    }
}

/// Overwrites every text of a value.
pub(crate) fn wipe_json(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe_json),
        Value::Object(fields) => fields.values_mut().for_each(wipe_json),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The text of a value, for `transport::wipe` when it was read. It is written into one buffer of
/// its final size: a buffer that grows leaves copies behind.
pub(crate) fn json_text(value: &Value) -> Bytes {
    let mut length = Length(0);
    serde_json::to_writer(&mut length, value).ok();
    let mut text = Vec::with_capacity(length.0);
    serde_json::to_writer(&mut text, value).ok();
    text.into()
}

/// Counts what is written.
struct Length(usize);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn one_value_of_a_secret_is_read_and_no_other_is_looked_at() {
        let at = |json: &str| bytes_at(json.as_bytes(), &["data", "value"]);
        let found = at(r#"{"kind": "Secret", "data": {"other": "!", "value": "YWI="}}"#);
        assert_eq!(found.unwrap().unwrap().expose_secret(), b"ab");
        for none in ["{}", r#"{"data": null}"#, r#"{"data": {"other": "!"}}"#] {
            assert!(at(none).unwrap().is_none(), "{none}");
        }
        for unusable in [r#"{"data": {"value": "!"}}"#, r#"{"data": {"value": {}}}"#, "{"] {
            assert!(at(unusable).is_err(), "{unusable}");
        }
    }

    #[test]
    fn base64_is_decoded_to_the_byte_and_anything_else_is_refused() {
        for (text, bytes) in
            [("", &b""[..]), ("YQ==", b"a"), ("YWI=", b"ab"), ("YWJj", b"abc"), ("YWJj\n", b"abc")]
        {
            assert_eq!(decode(text).unwrap().expose_secret(), bytes, "{text:?}");
        }
        for text in ["=", "==", "YQ", "YQ=", "Y===", "a b=", "YWJj!", "YR=="] {
            assert!(decode(text).is_none(), "{text:?}");
        }
    }
}
