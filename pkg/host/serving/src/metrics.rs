//! What the listeners count about themselves.

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

/// Metrics of all listeners of a process, told apart by the label `listener`. Clones share them.
#[derive(Clone, Debug)]
pub struct ServingMetrics {
    connections: IntGaugeVec,
    handshake_errors: IntCounterVec,
    rejected: IntCounterVec,
}

/// Metrics of one listener.
#[derive(Clone)]
pub(crate) struct ListenerMetrics {
    pub(crate) connections: IntGauge,
    pub(crate) handshake_errors: IntCounter,
    pub(crate) rejected: IntCounter,
}

impl ServingMetrics {
    /// Registers the metrics in `registry`.
    ///
    /// # Errors
    /// A metric of one of these names is registered already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let labels = &["listener"];
        let connections = IntGaugeVec::new(
            Opts::new("icm_serving_connections", "Open connections, by listener."),
            labels,
        )?;
        let counter = |name: &str, help: &str| IntCounterVec::new(Opts::new(name, help), labels);
        let handshake_errors = counter(
            "icm_serving_handshake_errors_total",
            "Connections that ended before TLS was agreed, by listener.",
        )?;
        let rejected = counter(
            "icm_serving_rejected_connections_total",
            "Connections that were closed since too many were open, by listener.",
        )?;
        registry.register(Box::new(connections.clone()))?;
        registry.register(Box::new(handshake_errors.clone()))?;
        registry.register(Box::new(rejected.clone()))?;
        Ok(Self { connections, handshake_errors, rejected })
    }

    pub(crate) fn of(&self, listener: &str) -> ListenerMetrics {
        let label = &[listener];
        ListenerMetrics {
            connections: self.connections.with_label_values(label),
            handshake_errors: self.handshake_errors.with_label_values(label),
            rejected: self.rejected.with_label_values(label),
        }
    }
}
