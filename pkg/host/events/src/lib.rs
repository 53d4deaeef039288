//! Kubernetes Events: recorded by controllers without waiting, written by workers in the
//! background.
//!
//! `cmd` calls [`start`] once per component and passes the [`Recorder`] on; at shutdown it calls
//! [`Broadcaster::flush`]. The contract is client-go's, with two
//! differences: equal events are one Event under every leader, so `kubectl describe` shows the true
//! count and first time; and the spam filter counts each reason for itself, so a frequent reason does
//! not silence a rare one.
//!
//! - [`Recorder::event`] never blocks. At most 1000 events wait; more are dropped and counted in
//!   `icm_event_dropped_total{reason}`, as is every other event that is not written.
//! - Equal events are one Event with a count, whoever leads; ten or more similar ones within ten minutes are
//!   folded into one; a source gets 25 at once and one per five minutes for each object, type and
//!   reason.
//! - Events of one object are written in order. One that cannot be written delays those of a
//!   quarter of the objects, for a minute at most.
//! - Every event is logged as well, before any of this.
//!
//! The files, pure ones first: `object` (identity), `correlate` (counts, folding, spam), `deliver`
//! (workers, I/O and retries), `recorder`. The metric is below.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod correlate;
mod deliver;
mod object;
mod recorder;

use prometheus::{IntCounterVec, Registry};

pub use object::{EventType, ObjectRef};
pub use recorder::{Broadcaster, Recorder, start};

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
