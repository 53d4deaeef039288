//! HTTP headers: `Retry-After`, and headers that hold secrets.

use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue};
use zeroize::{Zeroize as _, Zeroizing};

/// The longest time that is believed.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// `Retry-After` in whole seconds, the only form that the API server uses and client-go reads, cut
/// to [`RETRY_AFTER_MAX`]. `None` when the header is missing or written in another way.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Too many digits for a number are a very long time.
    Some(text.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs).min(RETRY_AFTER_MAX))
}

/// A header value of these parts, marked as sensitive, in one buffer of its final size. The buffer
/// is overwritten when the last clone of the value is dropped. `None` if a header cannot hold it.
pub fn sensitive_header(parts: &[&str]) -> Option<HeaderValue> {
    let text = Zeroizing::new(parts.concat().into_bytes());
    let mut value = HeaderValue::from_maybe_shared(Bytes::from_owner(text)).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Overwrites a body that has no other holder.
pub fn wipe(body: Bytes) {
    if let Ok(mut body) = body.try_into_mut() {
        body.as_mut().zeroize();
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn retry_after_is_read_in_whole_seconds_only_and_believed_for_a_minute() {
        for (text, expected) in [
            ("7", Some(Duration::from_secs(7))),
            (" 7 ", Some(Duration::from_secs(7))),
            ("0", Some(Duration::ZERO)),
            ("60", Some(RETRY_AFTER_MAX)),
            ("3600", Some(RETRY_AFTER_MAX)),
            ("99999999999999999999999", Some(RETRY_AFTER_MAX)),
            ("1.5", None),
            ("-1", None),
            ("+1", None),
            ("", None),
            ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            assert_eq!(retry_after(&headers), expected, "{text:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
