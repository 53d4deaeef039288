//! [`Guard`]: the seam between a listener and the code that knows the rights of its peers.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, Method};

use crate::client_ca::ShownChain;
use crate::reply::{self, Reply};

/// One request before it is answered, as its guard sees it.
#[derive(Clone, Copy)]
pub struct Visit<'a> {
    /// The peer of the request.
    pub peer: &'a Peer,
    /// The verb.
    pub method: &'a Method,
    /// The path without its query.
    pub path: &'a str,
    /// All headers, credentials included. They have no printed form here.
    pub headers: &'a HeaderMap,
}

/// The decision of a guard: nothing, or the refusal to answer with.
pub type Judgement<'a> = Pin<Box<dyn Future<Output = Result<(), Reply>> + Send + 'a>>;

/// Judges the requests for pages that need a right ([`crate::Access::Authorized`]), unknown paths
/// among them.
pub trait Guard: Send + Sync {
    /// Lets the request pass or refuses it.
    fn judge<'a>(&'a self, visit: Visit<'a>) -> Judgement<'a>;
}

/// The guard of a listener as its connections hold it. A type of its own: the compiler cannot
/// follow the lifetime that a bare trait object names into hyper's types.
#[derive(Clone)]
pub(crate) struct SharedGuard(Arc<dyn Guard>);

impl SharedGuard {
    pub(crate) fn new(guard: Arc<dyn Guard>) -> Self {
        Self(guard)
    }

    pub(crate) fn get(&self) -> &dyn Guard {
        self.0.as_ref()
    }
}

/// Lets everybody pass who shows no bad certificate: for a listener whose peers have no rights that
/// differ, as one for webhooks, whose pages ask for a certificate or for nothing.
#[derive(Clone, Copy, Debug)]
pub struct Everyone;

impl Guard for Everyone {
    fn judge<'a>(&'a self, visit: Visit<'a>) -> Judgement<'a> {
        let refused = visit.peer.certificate == PeerCertificate::Untrusted;
        let verdict = if refused { Err(reply::unauthorized()) } else { Ok(()) };
        Box::pin(std::future::ready(verdict))
    }
}

/// The peer of a connection, as pages see it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where it connects from. An IPv4 peer of a dual-stack socket has its IPv4 address here.
    pub address: IpAddr,
    /// The certificate that it showed in the TLS handshake.
    pub certificate: PeerCertificate,
}

/// A client's certificate, judged by the client CA of the listener where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerCertificate {
    /// The peer showed none, or the listener asked for none.
    Absent,
    /// The chain, leaf first, whose key the peer has: its issuer is not verified yet.
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

/// The access rule of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whatever the guard of the listener says.
    Authorized,
    /// A certificate of the listener's client CA.
    TrustedCertificate,
}
