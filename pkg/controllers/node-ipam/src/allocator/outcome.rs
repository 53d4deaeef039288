//! What may yet become of the PATCHes that were sent for a Node (`rule:unknown-outcome-ends`).

use tokio::time::Instant;

/// PATCHes whose outcome is not known, the one in flight included. Every moment in here is the one
/// from which on the server can no longer apply the PATCH.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    in_flight: Option<Instant>,
    unknown: Option<Instant>,
}

impl Outcome {
    /// A PATCH leaves that the server can apply until then.
    pub(super) fn sent(&mut self, until: Instant) {
        // Nothing was said of the one before it.
        self.unknown = self.until();
        self.in_flight = Some(until);
    }

    /// No answer says what became of the last PATCH; `until` is what the client knows of it, and may
    /// be sooner or later than what was said when it left.
    pub(super) fn lost(&mut self, until: Option<Instant>) {
        self.unknown = self.unknown.max(until.or(self.in_flight));
        self.in_flight = None;
    }

    /// The answer to the last PATCH says that it wrote nothing. It says nothing of those before.
    pub(super) fn refused(&mut self) {
        self.in_flight = None;
    }

    /// A consistent read that was begun at that moment shows the Node without CIDRs.
    pub(super) fn read_empty(&mut self, begun: Instant) {
        if self.until().is_some_and(|until| until <= begun) {
            *self = Self::default();
        }
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
