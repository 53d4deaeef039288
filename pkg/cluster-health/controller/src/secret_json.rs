//! Objects with secrets as JSON values, for `probe` and the webhook
//! (`rule:secrets-are-never-shown`).

use std::io::{self, Write};

use bytes::Bytes;
use serde_json::Value;
use zeroize::Zeroize as _;

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
pub(crate) fn text(value: &Value) -> Bytes {
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
