//! The blocks that Nodes are measured with.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

/// The size of each Node's block.
pub(crate) const MASK_SIZE: u8 = 26;

/// 262,144 blocks: no case comes near its end.
pub(crate) fn pool() -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), 8)
}
