//! The blocks that Nodes are measured with.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

/// The size of each Node's block.
pub(crate) const MASK_SIZE: u8 = 26;

/// 262,144 blocks: no case comes near its end.
pub(crate) fn pool() -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), 8)
}

/// The block of this number.
#[allow(clippy::cast_possible_truncation, reason = "the pool has fewer blocks than 2^32")]
pub(crate) fn block(number: usize) -> Ipv4Net {
    let start = u32::from(pool().network()) + ((number as u32) << (32 - MASK_SIZE));
    Ipv4Net::new_assert(start.into(), MASK_SIZE)
}
