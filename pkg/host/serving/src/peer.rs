//! Who is at the other end of a connection.

use std::net::IpAddr;

use crate::client_ca::ShownChain;

/// The other end, as pages see it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where it connects from. An IPv4 peer of a dual-stack socket has its IPv4 address here.
    pub address: IpAddr,
    /// What it showed in the TLS handshake.
    pub certificate: PeerCertificate,
}

/// A client's certificate, judged by the client CA of the listener where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerCertificate {
    /// The peer showed none, or the listener asked for none.
    Absent,
    /// The chain, leaf first, whose key the peer has: nobody has judged yet who signed it.
    Shown(ShownChain),
    /// The chain, leaf first: it leads to the client CA, is valid now, and is for clients.
    Trusted(ShownChain),
    /// The peer showed one that the client CA does not vouch for. Its contents mean nothing.
    Untrusted,
}

impl Peer {
    /// A peer at `address`.
    pub fn new(address: IpAddr, certificate: PeerCertificate) -> Self {
        Self { address: address.to_canonical(), certificate }
    }
}
