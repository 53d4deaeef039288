//! The metric of events: what never reached the server.

use prometheus::{IntCounterVec, Registry};

/// Why an event was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum DropReason {
    /// 1000 events were waiting already.
    QueueFull,
    /// Too many of the same source, object, type and reason.
    Spam,
    /// The server refused it for good.
    Rejected,
    /// The server did not take it within the tries and the time an event gets.
    Unreachable,
    /// Code under the recorder panicked while writing it.
    Panicked,
    /// The process ended first.
    Shutdown,
}

impl DropReason {
    const ALL: [Self; 6] = [
        Self::QueueFull,
        Self::Spam,
        Self::Rejected,
        Self::Unreachable,
        Self::Panicked,
        Self::Shutdown,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Spam => "spam",
            Self::Rejected => "rejected",
            Self::Unreachable => "unreachable",
            Self::Panicked => "panicked",
            Self::Shutdown => "shutdown",
        }
    }
}

/// Metrics of all recorders of a process; cheap to clone.
#[derive(Clone)]
pub struct EventMetrics {
    dropped: IntCounterVec,
}

impl EventMetrics {
    /// Registers the metrics in `registry`, every series at 0.
    ///
    /// # Errors
    /// When a metric of this name is registered already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let help = "Events that were never written, by reason.";
        let dropped = metrics::counter(registry, "icm_event_dropped_total", help, &["reason"])?;
        for reason in DropReason::ALL {
            dropped.with_label_values(&[reason.label()]);
        }
        Ok(Self { dropped })
    }

    pub(crate) fn drop_one(&self, reason: DropReason) {
        self.drop_many(reason, 1);
    }

    pub(crate) fn drop_many(&self, reason: DropReason, count: u64) {
        self.dropped.with_label_values(&[reason.label()]).inc_by(count);
    }

    #[cfg(test)]
    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.with_label_values(&[reason.label()]).get()
    }
}
