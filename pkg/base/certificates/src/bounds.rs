//! What a chain may have, and what its judgement may cost (rule:chains-are-bounded).

/// Certificates of a chain, its leaf included.
pub const MOST_CERTIFICATES: usize = 10;
/// Bytes of all certificates of a chain.
pub const MOST_BYTES: usize = 16 * 1024;
/// Signatures that one judgement checks: those of a path of four, and room for authorities of the
/// same name, of which only the key tells which one signed. The slowest kinds, P-384 and RSA with
/// 8192 bits, take a millisecond at most.
pub(crate) const MOST_SIGNATURES: usize = 8;
