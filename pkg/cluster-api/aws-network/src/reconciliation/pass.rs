//! State of the present [`Pass`] of a reconciliation, and [`Rejection`]s, which outlast it.

use std::collections::{BTreeMap, BTreeSet};

use crate::action::Action;
use crate::memory::{LATE, LogicalId, Record, Timestamp};
use crate::observed::Observed;
use crate::outcome::{Offer, Refusal, Refused, offer};
use crate::plan::{Planned, Problem, Reason};
use crate::query::Query;

/// The writes that may still be sent in a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum MaySend {
    #[default]
    Everything,
    /// The status cannot be written.
    WithoutMemory,
    /// The fence is closed, or an intent was too old.
    Nothing,
}

/// A write that AWS refused. It is tried again when its own time has come, whatever else the
/// reconciliation does meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Rejection {
    pub(super) action: Action,
    pub(super) problem: Problem,
    pub(super) until: Timestamp,
    pub(super) times: u32,
    /// When it was refused first with this message.
    pub(super) since: Timestamp,
}

impl Rejection {
    /// Whether `action` is the rejected write, or another create with the same logical id.
    pub(super) fn is_about(&self, action: &Action) -> bool {
        let logical = |action: &Action| action.creates().map(|(logical, _)| logical);
        self.action == *action
            || logical(action).is_some_and(|wanted| logical(&self.action) == Some(wanted))
    }

    fn message(action: &Action, why: &str) -> String {
        format!("AWS refuses {action}: {why}")
    }

    /// The problem to report. Refused tags may be the cause why a regional NAT gateway is refused.
    pub(super) fn report(&self, are_tags_refused: bool) -> Problem {
        let mut problem = self.problem.clone();
        let is_regional = matches!(self.action, Action::CreateRegionalNatGateway { .. });
        if is_regional && are_tags_refused {
            problem.message.push_str(
                "; the cause may be additionalTags: AWS refuses them on other resources, and this does not \
                 count as a refusal of Regional until it accepts them",
            );
        }
        problem
    }

    /// Notes a refusal, and when the write is worth another try: later each time.
    pub(super) fn note(
        all: &mut Vec<Self>,
        planned: &Planned,
        refusal: Refusal,
        why: &str,
        now: Timestamp,
    ) {
        let (part, action) = (planned.part, planned.action.clone());
        let earlier = all.iter().position(|rejection| rejection.is_about(&action));
        let earlier = earlier.map(|index| all.remove(index));
        let times = earlier.as_ref().map_or(0, |rejection| rejection.times) + 1;
        let message = Self::message(&action, why);
        // How long another code was answered says nothing about this one.
        let same = earlier.filter(|rejection| rejection.problem.message == message);
        let since = same.map_or(now, |rejection| rejection.since);
        let reason = match refusal {
            // Nothing that we made is late for so long: the spec names what does not exist.
            Refusal::NotVisibleYet if since.age(now) >= LATE => Reason::NotFound,
            _ => refusal.reason(),
        };
        all.push(Self {
            action,
            problem: Problem { part, reason, message },
            until: now.plus(lengthened(refusal.pause(), refusal.longest_pause(), times)),
            times,
            since,
        });
    }
}

/// Whether AWS refuses tags as such: a missing permission, say, is not about the tags.
pub(super) fn are_tags_refused(all: &[Rejection]) -> bool {
    all.iter().any(|it| {
        matches!(it.action, Action::CreateTags { .. })
            && it.problem.reason == Reason::InvalidConfiguration
    })
}

/// Whether AWS refuses a regional NAT gateway as such. A code for any wrong parameter counts when AWS
/// repeats it after the time for which the VPC and its internet gateway may be late, a read has shown
/// both since they were last written, and AWS does not refuse the tags on other resources as invalid.
pub(super) fn is_not_offered(
    seen: &Observed,
    earlier: &[Rejection],
    planned: &Planned,
    refused: &Refused,
    now: Timestamp,
) -> bool {
    let action = &planned.action;
    let is_repeated = |it: &Rejection| {
        it.is_about(action)
            && it.problem.message == Rejection::message(action, &refused.to_string())
            && it.since.age(now) >= LATE
    };
    match offer(refused, action) {
        Offer::Missing => true,
        Offer::Unknown => false,
        Offer::Doubtful => {
            seen.vpcs.is_as_read()
                && seen.internet_gateways.is_as_read()
                && !are_tags_refused(earlier)
                && earlier.iter().any(is_repeated)
        }
    }
}

/// A create that is known after a crash only when it was noted before.
pub(super) fn needs_memory(action: &Action) -> bool {
    action.creates().is_some_and(|(logical, _)| !logical.is_protected())
}

/// A pause that doubles each time that nothing has come of it, up to `longest`.
pub(super) fn lengthened(pause: u64, longest: u64, times: u32) -> u64 {
    let doubled = pause.saturating_mul(2_u64.saturating_pow(times.saturating_sub(1)));
    doubled.min(longest.max(pause))
}

/// Events since the reconciliation began or was resumed.
#[derive(Clone, Debug, Default)]
pub(super) struct Pass {
    /// Queries that were answered since the last write.
    pub(super) asked: BTreeSet<Query>,
    /// Reads that a rest was waiting for.
    pub(super) due: Vec<Query>,
    /// Writes that were sent, or failed: none is sent twice in a pass.
    pub(super) held: Vec<Action>,
    /// The record of each logical id before its last create was intended.
    pub(super) before: BTreeMap<LogicalId, Option<Record>>,
    /// Reads and status patches that failed.
    pub(super) failed: Vec<(Problem, Refusal)>,
    /// Refused because they did not fit what there is; read again, they may not be wanted any more.
    pub(super) outdated: Vec<(Planned, String)>,
    /// Something was written since what is awaited was last read.
    pub(super) is_unpolled: bool,
    pub(super) progressed: bool,
    /// AWS said of something to be removed that it is not there, which it may say of what it does
    /// not show everywhere yet.
    pub(super) was_reported_gone: bool,
    pub(super) may_send: MaySend,
}
