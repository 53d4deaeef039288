//! [`Guard`]: the interface between a listener and the code that knows the rights of its peers;
//! [`Peer`], which a guard judges, and how a listener treats a client's certificate: it ignores the
//! certificate, passes it to the guard unjudged (the secure port, see `delegated_auth::Delegation`),
//! or judges it by a CA of its own (the webhook).
//!
//! A listener that asks for certificates takes any in the handshake, so that a bad one gets an
//! answer in HTTP, which says more than a TLS alert.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, Method};
use parking_lot::RwLock;
use rustls::pki_types::CertificateDer;

use crate::client_ca::{ClientRoots, ShownChain};
use crate::reply::Reply;
use crate::{ClientCertificates, ServeError, reply};

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

/// The treatment of clients' certificates by one listener.
pub(crate) enum Clients {
    Ignored,
    /// Asked for; the guard judges.
    Asked,
    Judged(Arc<ClientCa>),
}

impl Clients {
    pub(crate) async fn of(wanted: &ClientCertificates) -> Result<Self, ServeError> {
        Ok(match wanted {
            ClientCertificates::Ignored => Self::Ignored,
            ClientCertificates::Asked => Self::Asked,
            ClientCertificates::Of(path) => Self::Judged(ClientCa::load(path).await?),
        })
    }

    pub(crate) fn are_asked(&self) -> bool {
        !matches!(self, Self::Ignored)
    }

    /// The file that has to be read again now and then.
    pub(crate) fn ca(&self) -> Option<Arc<ClientCa>> {
        match self {
            Self::Judged(ca) => Some(ca.clone()),
            Self::Ignored | Self::Asked => None,
        }
    }

    /// The state of a chain that the peer has shown and proved to own.
    pub(crate) async fn state_of(&self, chain: &[CertificateDer<'static>]) -> PeerCertificate {
        match self {
            _ if chain.is_empty() => PeerCertificate::Absent,
            Self::Ignored => PeerCertificate::Absent,
            Self::Asked => PeerCertificate::Shown(ShownChain::new(chain.to_vec())),
            Self::Judged(ca) => ca.judge(chain).await,
        }
    }
}

/// The certificates of a PEM file, each trusted as a root for clients.
#[derive(Debug)]
pub(crate) struct ClientCa {
    path: PathBuf,
    roots: RwLock<(Vec<u8>, ClientRoots)>,
}

impl ClientCa {
    pub(crate) async fn load(path: &Path) -> Result<Arc<Self>, ServeError> {
        let pem = read(path).await?;
        let roots = roots(path, &pem)?;
        Ok(Arc::new(Self { path: path.to_owned(), roots: RwLock::new((pem, roots)) }))
    }

    /// Reads the file again. Says whether it changed; an error leaves the old roots in use.
    pub(crate) async fn reload(&self) -> Result<bool, ServeError> {
        let pem = read(&self.path).await?;
        if pem == self.roots.read().0 {
            return Ok(false);
        }
        let roots = roots(&self.path, &pem)?;
        *self.roots.write() = (pem, roots);
        Ok(true)
    }

    /// The state of a chain that the peer has shown and proved to own.
    pub(crate) async fn judge(&self, chain: &[CertificateDer<'static>]) -> PeerCertificate {
        let roots = self.roots.read().1.clone();
        let shown = ShownChain::new(chain.to_vec());
        if shown.is_vouched_for_by(&roots).await {
            PeerCertificate::Trusted(shown)
        } else {
            PeerCertificate::Untrusted
        }
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, ServeError> {
    let failed = |why| ServeError::ReadFile { path: path.to_owned(), why };
    tokio::fs::read(path).await.map_err(failed)
}

fn roots(path: &Path, pem: &[u8]) -> Result<ClientRoots, ServeError> {
    let bad = |reason| ServeError::BadClientCa { path: path.to_owned(), reason };
    ClientRoots::from_pem(pem).map_err(bad)
}

#[cfg(test)]
mod tests;
