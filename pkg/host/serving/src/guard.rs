//! Who may ask for what: the seam between a listener and whoever knows the rights of its peers.

use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, Method};

use crate::reply::{self, Reply};
use crate::{Peer, PeerCertificate};

/// One request before it is answered, as its guard sees it.
#[derive(Clone, Copy)]
pub struct Visit<'a> {
    /// Who asks.
    pub peer: &'a Peer,
    /// The verb.
    pub method: &'a Method,
    /// The path without its query.
    pub path: &'a str,
    /// All headers, credentials included. They have no printed form here.
    pub headers: &'a HeaderMap,
}

/// What a guard says: nothing, or the refusal to answer with.
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
        // rule:bad-credentials-are-refused
        let refused = visit.peer.certificate == PeerCertificate::Untrusted;
        let verdict = if refused { Err(reply::unauthorized()) } else { Ok(()) };
        Box::pin(std::future::ready(verdict))
    }
}
