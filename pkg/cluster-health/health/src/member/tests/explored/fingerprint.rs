//! What the future of a [`Member`] depends on, with all times relative to now: a state set can be closed only so.

use std::hash::{DefaultHasher, Hash as _};
use std::time::{Duration, Instant};

use super::super::super::Member;
use crate::schedule::Cause;
use crate::{Finding, Health, Policy, Published, Verdict};

/// How long ago that was; all that is longer ago than `most` is the same.
pub(super) fn age(at: Option<Instant>, now: Instant, most: Duration) -> Option<Duration> {
    at.map(|at| now.saturating_duration_since(at).min(most))
}

impl Member {
    /// Adds all that its future depends on. What is only shown or counted is left out.
    pub(super) fn hash_into(
        &self,
        policies: &[Policy; 2],
        now: Instant,
        hasher: &mut DefaultHasher,
    ) {
        let Self {
            published,
            tally,
            flaps,
            causes: _,
            schedule,
            availability: _,
            gate: _,
            hash: _,
            judged_from,
            completed,
            task_began,
            cause,
            last,
            obstacle: _,
            guarded: _,
            held,
            unreachable_since: _,
            beat,
            lost,
            path_down,
            by_lease: _,
            checks: _,
        } = self;
        if let Some(published) = published {
            let Published {
                health,
                ready: _,
                offline: _,
                probed: _,
                finding,
                endpoints: _,
                detail: _,
            } = published;
            // Of a failure it matters whether a check, or the Lease, or nothing known made it not ready.
            let code = finding.map(Finding::code).filter(|_| *health == Health::NotReady);
            (health, code).hash(hasher);
        }
        let longest =
            |of: fn(&Policy) -> Duration| policies.iter().map(of).max().unwrap_or_default();
        tally.relative(now, longest(Policy::failure_spacing)).hash(hasher);
        flaps.relative(now, longest(|it| it.damping.window)).hash(hasher);
        schedule.relative(now, longest(|it| it.cadence.period)).hash(hasher);
        // Before the first publication the time since it came counts, and after that the time since the last probe.
        // An unknown member can only get younger.
        let silent_since = completed.map_or(*judged_from, |at| at.max(*judged_from));
        match published.as_ref().map(|it| it.health) {
            Some(Health::Unknown) => [None; 2],
            known => {
                let came = known.is_none().then_some(*judged_from);
                let silent = age(Some(silent_since), now, longest(Policy::stale_after));
                [silent, age(came, now, longest(Policy::first_grace))]
            }
        }
        .hash(hasher);
        if schedule.is_probing() {
            let alive = completed.map_or(*task_began, |at| at.max(*task_began));
            age(Some(alive), now, longest(Policy::stuck_after)).hash(hasher);
            (*cause == Cause::Regular).hash(hasher);
        }
        last.is_some_and(|it| it.finding.verdict() == Verdict::Unreachable).hash(hasher);
        held.as_ref().map(|it| it.report.finding).hash(hasher);
        let most = policies.iter().map(|it| it.thresholds.failure).max().unwrap_or_default();
        (format!("{beat:?}"), (*lost).min(most), path_down).hash(hasher);
    }
}
