//! Client tokens: what makes a repeated create the same create.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::LogicalId;

/// The client token of a create: equal for the same place and attempt, whoever asks
/// (`rule:token-changes-after-an-end`).
///
/// EC2 takes up to 64 ASCII characters; these are 32 of hexadecimal.
pub fn client_token(owner_id: &str, logical: &LogicalId, attempt: u32) -> String {
    let text = format!("{owner_id}\n{logical}\n{attempt}");
    Sha256::digest(text.as_bytes()).iter().take(16).fold(String::new(), |mut token, byte| {
        let _infallible = write!(token, "{byte:02x}");
        token
    })
}
