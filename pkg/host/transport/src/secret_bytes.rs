//! Secrets in buffers of HTTP: headers that are overwritten when they are dropped, and bodies that
//! their reader overwrites. Best effort: copies in the buffers of a connection, of TLS and of a
//! parser belong to libraries, which do not overwrite them.

use bytes::Bytes;
use http::HeaderValue;
use zeroize::{Zeroize as _, Zeroizing};

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
