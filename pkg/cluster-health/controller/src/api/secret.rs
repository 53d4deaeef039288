//! Secrets in memory: they cannot be printed, and are wiped when they are dropped
//! (`rule:secrets-are-never-shown`). Each is decoded straight into a buffer of its final size, so
//! that no second copy of ours is left behind by growing.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use serde::Deserializer;
use serde::de::{Error, Visitor};

/// Reads text, such as a token; `null` and the empty text are none.
pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SecretString>, D::Error> {
    let read = from.deserialize_option(Reader(|text: &str| Some(SecretString::from(text))))?;
    Ok(read.filter(|text| !text.expose_secret().is_empty()))
}

/// Reads base64, as JSON carries bytes; `null` and the empty text are none.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<SecretSlice<u8>>, D::Error> {
    Ok(bytes_or_empty(from)?.filter(|bytes| !bytes.expose_secret().is_empty()))
}

/// Reads base64, as JSON carries bytes; `null` is none, and the empty text is no bytes. A key that
/// is there and empty is another mistake than one that is missing.
pub(crate) fn bytes_or_empty<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<SecretSlice<u8>>, D::Error> {
    from.deserialize_option(Reader(decode))
}

/// Decodes base64; `None` when the text is not base64.
pub fn decode(text: &str) -> Option<SecretSlice<u8>> {
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

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

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
