//! The connections of a client, made anew when the credentials change. Shared by all clients but
//! the lease's, which has its own.

use std::sync::Arc;

use parking_lot::Mutex;
use transport::{Endpoint, Protocol, TlsError, Wire};

use crate::identity::credentials::Credentials;
use crate::identity::snapshot::{Shown, Snapshot};

/// One pool of connections that follows the credentials. What is under way on an old connection
/// goes on there to its end.
pub(crate) struct Link {
    credentials: Arc<Credentials>,
    shown: Shown,
    protocol: Protocol,
    pool: Mutex<Pool>,
}

struct Pool {
    generation: u64,
    endpoint: Endpoint,
    wire: Wire,
}

impl Link {
    /// No network until the first request.
    pub(crate) fn new(
        credentials: Arc<Credentials>,
        shown: Shown,
        protocol: Protocol,
    ) -> Result<Self, TlsError> {
        let snapshot = credentials.current();
        let endpoint = snapshot.endpoint(&credentials.tls, shown, protocol)?;
        let wire = transport::open(&endpoint);
        let pool = Mutex::new(Pool { generation: snapshot.generation, endpoint, wire });
        Ok(Self { credentials, shown, protocol, pool })
    }

    /// Another pool with the same credentials.
    pub(crate) fn another(&self, protocol: Protocol) -> Result<Self, TlsError> {
        Self::new(Arc::clone(&self.credentials), self.shown, protocol)
    }

    /// The pool for these credentials. A request that took them just before they changed gets a
    /// connection of its own: it must show nobody the new ones (`rule:one-reading-per-request`).
    pub(crate) fn wire(&self, snapshot: &Snapshot) -> Result<Wire, TlsError> {
        let mut pool = self.pool.lock();
        if snapshot.generation < pool.generation {
            let endpoint = snapshot.endpoint(&self.credentials.tls, self.shown, self.protocol)?;
            return Ok(transport::open(&endpoint));
        }
        if snapshot.generation > pool.generation {
            self.renew(&mut pool, snapshot)?;
        }
        Ok(pool.wire.clone())
    }

    /// A new token alone needs no new connection.
    fn renew(&self, pool: &mut Pool, snapshot: &Snapshot) -> Result<(), TlsError> {
        let endpoint = snapshot.endpoint(&self.credentials.tls, self.shown, self.protocol)?;
        if !endpoint.shares_connections_with(&pool.endpoint) {
            pool.wire = transport::open(&endpoint);
        }
        pool.endpoint = endpoint;
        pool.generation = snapshot.generation;
        Ok(())
    }
}
