//! A [`Member`] whose silence has crossed the threshold: its Lease, if it renews one, decides what is published
//! (`rule:our-outage-is-not-theirs`).

use std::time::Instant;

use super::Member;
use crate::published::{Change, Published};
use crate::{Beat, Code, Finding, Health, Report};

impl Member {
    /// Takes in what the Lease of the cluster says, for the probe that ends next.
    pub fn hear(&mut self, beat: Beat) {
        self.beat = beat;
    }

    /// Whether probes do not reach the cluster, which still renews its Lease.
    pub fn is_path_down(&self) -> bool {
        self.path_down
    }

    /// What its Lease said at the last probe.
    pub fn beat(&self) -> Beat {
        self.beat
    }

    /// An answer, or the end of the beats, ends the state of a path that is down; whether it was down before.
    pub(super) fn begin_to_cross(&mut self, is_unreachable: bool) -> bool {
        let before = self.path_down;
        self.path_down &= is_unreachable && self.beat == Beat::Well;
        if before && !self.path_down && self.health() != Some(Health::Unreachable) {
            self.unreachable_since = None;
        }
        before
    }

    /// Whether the path has gone down since. Its message is written when that begins and when it ends.
    pub(super) fn path_has_gone_down(&mut self, before: bool) -> bool {
        if before != self.path_down {
            self.gate.outdate();
        }
        self.path_down && !before
    }

    /// Publishes silence, unless the Lease says otherwise.
    pub(super) fn cross(&mut self, report: &Report, now: Instant) -> (Change, bool) {
        // It waits for no guard any more.
        self.held = None;
        match self.beat {
            Beat::Absent | Beat::Silent => self.publish(report, now),
            Beat::Unwell => {
                let finding = Finding::failed(Code::Beat, report.finding.path());
                self.publish(&Report { finding, ..report.clone() }, now)
            }
            Beat::Well => {
                self.path_down = true;
                // For the guard its silence is explained.
                self.unreachable_since.get_or_insert(now);
                self.keep(report);
                let is_unknown = match &self.published {
                    // No answer says how it is.
                    None => true,
                    Some(published) => match published.health {
                        Health::HubPartition => true,
                        // The Lease takes back what it alone said.
                        Health::NotReady => {
                            published.finding.and_then(Finding::code) == Some(Code::Beat)
                        }
                        _ => false,
                    },
                };
                let change = if is_unknown {
                    Published::withdraw(&mut self.published, Health::Unknown, report.started)
                } else {
                    Change::Nothing
                };
                (change, false)
            }
        }
    }
}
