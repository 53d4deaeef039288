//! What may yet become of the PATCHes that were sent for a Node (`rule:unknown-outcome-ends`).

use std::time::Duration;

use tokio::time::Instant;

/// Between the first two of the reads that settle an outcome: a store that stood still carries out
/// what it held beside the first read that it answers, and has begun with it by then.
const AFTERMATH: Duration = Duration::from_secs(1);
/// How many reads settle it. The first may come to the store together with the PATCH, and the
/// second while the PATCH is on its way to the disk: it is then answered by what was committed
/// before.
const READS: u8 = 3;

/// PATCHes whose outcome is not known, the one in flight included. Every moment in here is the one
/// from which on the server can no longer apply the PATCH.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    in_flight: Option<Instant>,
    unknown: Option<Instant>,
    /// So many of the [`READS`] have shown the Node without CIDRs.
    empty_reads: u8,
}

impl Outcome {
    /// A PATCH leaves that the server can apply until then.
    pub(crate) fn sent(&mut self, until: Instant) {
        // Nothing was said of the one before it.
        *self = Self { in_flight: Some(until), unknown: self.until(), empty_reads: 0 };
    }

    /// No answer says what became of the last PATCH; `until` is what the client knows of it, and
    /// may be sooner or later than what was said when it left.
    pub(crate) fn lost(&mut self, until: Option<Instant>) {
        let lost = until.or(self.in_flight);
        if lost.is_some() {
            self.empty_reads = 0;
        }
        self.unknown = self.unknown.max(lost);
        self.in_flight = None;
    }

    /// The answer to the last PATCH says that it wrote nothing. It says nothing of those before.
    pub(crate) fn refused(&mut self) {
        self.in_flight = None;
    }

    /// A consistent read that was begun and answered at those moments shows the Node without CIDRs.
    pub(crate) fn read_empty(&mut self, begun: Instant, answered: Instant) {
        if self.until().is_none_or(|until| begun < until) {
            return;
        }
        let empty_reads = self.empty_reads + 1;
        let wait = if empty_reads == 1 { AFTERMATH } else { Duration::ZERO };
        *self = if empty_reads == READS {
            Self::default()
        } else {
            Self { in_flight: None, unknown: Some(answered + wait), empty_reads }
        };
    }

    /// The moment after which the next read counts; `None` when nothing is open.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.unknown.max(self.in_flight)
    }

    /// Whether the server may yet apply something.
    pub(crate) fn is_open(&self) -> bool {
        self.until().is_some()
    }
}
