//! [`Meters`]: connections and handshakes, counted.

use prometheus::{IntCounterVec, IntGauge, Opts, Registry};
use transport::DialError;

/// Counts the connections of all clients.
#[derive(Clone, Debug)]
pub struct Meters {
    connections: IntGauge,
    handshakes: IntCounterVec,
}

impl Meters {
    /// Registers them with `registry`.
    ///
    /// # Errors
    /// It has metrics of these names already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let connections = IntGauge::new(
            "clusterhealth_connections",
            "Connections to member clusters that are open.",
        )?;
        let handshakes = IntCounterVec::new(
            Opts::new(
                "clusterhealth_tls_handshakes_total",
                "Connections to member clusters that were opened, by whether that worked; own-limit when this process may open no more.",
            ),
            &["outcome"],
        )?;
        registry.register(Box::new(connections.clone()))?;
        registry.register(Box::new(handshakes.clone()))?;
        Ok(Self { connections, handshakes })
    }

    pub(crate) fn handshake<T>(&self, dialed: &Result<T, DialError>) {
        let outcome = match dialed {
            Ok(_) => "ok",
            Err(DialError::OwnLimit(_)) => "own-limit",
            Err(_) => "error",
        };
        self.handshakes.with_label_values(&[outcome]).inc();
    }

    pub(crate) fn open(&self) -> Open {
        self.connections.inc();
        Open(self.connections.clone())
    }
}

/// Counts as an open connection for as long as it lives.
pub(crate) struct Open(IntGauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
