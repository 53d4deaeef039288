//! What each step of a [`World`] may change: claim C8 (a).

use super::action::{Action, Found, Lease};
use super::world::World;
use crate::Health;

impl World {
    /// `before` is the state before the action.
    pub(super) fn check(&self, before: &Self, action: Action) -> Result<(), String> {
        let (was, is) = (before.health(), self.health());
        let wrong = |what: &str| Err(format!("{was:?} becomes {is:?} by {action:?}: {what}"));
        let is_probe = matches!(action, Action::End(..));
        if was != is && is == Some(Health::Unreachable) {
            let is_waited_for = self.bounds.guarded && !before.member.path_down;
            match action {
                _ if !(self.crossed || action == Action::Restart) => {
                    return wrong("too few failures");
                }
                Action::End(Found::Silent, _) if is_waited_for => return wrong("no guard said so"),
                Action::End(Found::Silent, Lease::Well | Lease::Unwell) => {
                    return wrong("its Lease is renewed");
                }
                Action::End(Found::Silent, _) | Action::Release => {}
                Action::Restart if before.object.map(|it| it.health) == is => {}
                _ => return wrong("no probe found that"),
            }
        }
        if was == Some(Health::Ready) && matches!(is, Some(Health::NotReady | Health::Malformed)) {
            let is_enough = self.failures >= self.policy().thresholds.failure || before.new_target;
            let is_check = matches!(action, Action::End(Found::Check, _));
            if is_probe && !is_check && !is_enough {
                return wrong("too few failures");
            }
        }
        let was_false =
            matches!(was, Some(Health::NotReady | Health::Unreachable | Health::Malformed));
        if was_false && is == Some(Health::Ready) && is_probe && !before.new_target {
            let damping = self.policy().damping;
            let recently = before.changed_at.is_some_and(|at| self.now - at <= damping.window);
            let is_damped = before.member.is_damped() && recently && damping.transitions > 0;
            let least = if is_damped { damping.min_success } else { 1 };
            if self.successes < self.policy().thresholds.success.max(least) {
                return wrong("too few successes");
            }
        }
        match action {
            Action::End(Found::Void, _) => {
                let run = |it: &Self| (it.member.failures(), it.member.successes());
                if was != is || run(self) != run(before) {
                    return wrong("nothing was asked");
                }
            }
            Action::End(found, lease) => {
                let is_known = was.is_some() && was != Some(Health::Unknown);
                let waits =
                    found == Found::Silent && (self.bounds.guarded || lease != Lease::Absent);
                let first = Health::from(found.finding().verdict());
                if !is_known && !waits && is != Some(first) {
                    return wrong("a first result is published at once");
                }
            }
            Action::Pause if is.is_some() => return wrong("a paused cluster has no state"),
            Action::Restart if is != before.object.map(|it| it.health) => {
                return wrong("a restart changes nothing");
            }
            Action::Sweep if is != Some(Health::Unknown) => return wrong("no probe is completed"),
            Action::Partition if was != is && !before.member.waits() => {
                return wrong("only members that wait are in doubt");
            }
            Action::Pause
            | Action::Restart
            | Action::Sweep
            | Action::Partition
            | Action::Release => {}
            _ if was != is => return wrong("no result says so"),
            _ => {}
        }
        Ok(())
    }
}
