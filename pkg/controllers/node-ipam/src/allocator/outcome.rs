//! What may yet become of the PATCHes that were sent for a Node (`rule:unknown-outcome-ends`).

use std::time::Duration;

use tokio::time::Instant;

/// Between the two reads that settle an outcome: a store that stood still carries out what it held
/// beside the first read that it answers, and needs less than this for it.
const AFTERMATH: Duration = Duration::from_secs(1);

/// PATCHes whose outcome is not known, the one in flight included. Every moment in here is the one
/// from which on the server can no longer apply the PATCH.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    in_flight: Option<Instant>,
    unknown: Option<Instant>,
    /// The first of the two reads has shown the Node without CIDRs.
    seen_empty: bool,
}

impl Outcome {
    /// A PATCH leaves that the server can apply until then.
    pub(super) fn sent(&mut self, until: Instant) {
        // Nothing was said of the one before it.
        *self = Self { in_flight: Some(until), unknown: self.until(), seen_empty: false };
    }

    /// No answer says what became of the last PATCH; `until` is what the client knows of it, and may
    /// be sooner or later than what was said when it left.
    pub(super) fn lost(&mut self, until: Option<Instant>) {
        let lost = until.or(self.in_flight);
        self.seen_empty &= lost.is_none();
        self.unknown = self.unknown.max(lost);
        self.in_flight = None;
    }

    /// The answer to the last PATCH says that it wrote nothing. It says nothing of those before.
    pub(super) fn refused(&mut self) {
        self.in_flight = None;
    }

    /// A consistent read that was begun and answered at those moments shows the Node without CIDRs.
    pub(super) fn read_empty(&mut self, begun: Instant, answered: Instant) {
        if self.until().is_none_or(|until| begun < until) {
            return;
        }
        *self = if self.seen_empty {
            Self::default()
        } else {
            Self { in_flight: None, unknown: Some(answered + AFTERMATH), seen_empty: true }
        };
    }

    /// The moment after which a read settles it; `None` when nothing is open.
    pub(super) fn until(&self) -> Option<Instant> {
        self.unknown.max(self.in_flight)
    }

    /// Whether the server may yet apply something.
    pub(super) fn is_open(&self) -> bool {
        self.until().is_some()
    }
}
