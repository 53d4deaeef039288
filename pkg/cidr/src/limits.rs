//! What the arithmetic of blocks can take.

/// The most bits of block index a pool takes, whatever the caller allows
/// (`rule:ipv6-split-is-limited`).
pub(crate) const MAX_BITS: u8 = 64;
