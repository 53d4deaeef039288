//! The conditions of this program in a status that it shares with other programs: written from the published health,
//! and read back. Pure.

use std::fmt::Debug;

use health::{CheckReport, Health, Published, Record, Status};
use jiff::Timestamp;

use crate::api::{Condition, ConditionStatus};
use crate::engine::{OWN_PREFIX, Statement};

const HEALTHY: &str = "infra-controller-manager/Healthy";
const REACHABLE: &str = "infra-controller-manager/Reachable";
pub(crate) const WITHIN_OBJECTIVE: &str = "infra-controller-manager/WithinObjective";
/// Reason of a cluster that is not probed on purpose.
const PAUSED: &str = "ClusterPaused";
/// Before the time of the probe: these conditions have no field for it.
const PROBED: &str = "; probed ";

/// A condition about readiness, with the time of the probe at the end of its message.
pub(crate) fn condition(
    kind: &str,
    status: Status,
    since: Timestamp,
    reason: &str,
    (message, probed): (&str, Option<Timestamp>),
) -> Condition {
    let message = match probed {
        Some(probed) => format!("{message}{PROBED}{}", rfc3339(probed)),
        None => message.to_owned(),
    };
    Condition::new(kind, (status, since), None, (reason, &message))
}

fn rfc3339(time: Timestamp) -> impl std::fmt::Display {
    time.strftime("%Y-%m-%dT%H:%M:%SZ")
}

/// The conditions about a cluster; `stored` are those of its object.
pub(crate) fn conditions(
    published: &Published,
    statement: &Statement<'_>,
    stored: &[Condition],
) -> Vec<Condition> {
    let Statement { message, within, checks, now, .. } = *statement;
    let Published { health, ready, offline, probed, .. } = published;
    let reachable = reachable(*health);
    let about = match reachable {
        Status::True => "the cluster is reachable",
        Status::False => "the cluster is not reachable",
        Status::Unknown => message,
    };
    let (ready_reason, reason) = (health.ready_reason(), health.offline_reason());
    let mut conditions = vec![
        condition(HEALTHY, ready.status, ready.since, ready_reason, (message, *probed)),
        condition(REACHABLE, reachable, offline.since, reason, (about, *probed)),
    ];
    if let Some(within) = within {
        // The record is at the end of the message.
        let texts = (within.reason, &*within.message);
        let new = Condition::new(WITHIN_OBJECTIVE, (within.status, now.wall), None, texts);
        conditions.push(new.kept_since(Condition::find(stored, WITHIN_OBJECTIVE)));
    }
    match checks {
        Some(checks) => conditions.extend(checks.iter().filter_map(|it| of_check(it, stored))),
        None => conditions.extend(of_checks(stored).cloned()),
    }
    conditions
}

/// The condition about a check: that of the object until this process has a status.
fn of_check(check: &CheckReport, stored: &[Condition]) -> Option<Condition> {
    let kind = type_of(&check.name);
    let stored = Condition::find(stored, &kind);
    let Some(status) = check.status else { return stored.cloned() };
    let said = (&*check.message, check.probed);
    let new = condition(&kind, status.status(), check.since, status.reason(), said);
    Some(new.kept_since(stored))
}

/// The conditions of an object that are about checks.
fn of_checks(stored: &[Condition]) -> impl Iterator<Item = &Condition> {
    let is_other = |kind: &str| [HEALTHY, REACHABLE, WITHIN_OBJECTIVE].contains(&kind);
    stored.iter().filter(move |it| it.kind.starts_with(OWN_PREFIX) && !is_other(&it.kind))
}

/// The type of the condition about a check.
fn type_of(check: &str) -> String {
    format!("{OWN_PREFIX}{check}")
}

/// The status that the condition about a check has.
pub(crate) fn stored_check(stored: &[Condition], check: &str) -> Option<Status> {
    Condition::find(stored, &type_of(check))?.status.known()
}

/// The conditions about a cluster that is not probed on purpose, because of `why`.
pub(crate) fn paused(why: &str, statement: &Statement<'_>, stored: &[Condition]) -> Vec<Condition> {
    let now = statement.now.wall;
    let unknown = |kind: &str| {
        let new = condition(kind, Status::Unknown, now, PAUSED, (why, None));
        new.kept_since(Condition::find(stored, kind))
    };
    let record = Condition::find(stored, WITHIN_OBJECTIVE).cloned();
    let checks: Vec<_> = match statement.checks {
        Some(checks) => checks.iter().map(|check| unknown(&type_of(&check.name))).collect(),
        None => of_checks(stored).map(|it| unknown(&it.kind)).collect(),
    };
    [HEALTHY, REACHABLE].map(unknown).into_iter().chain(record).chain(checks).collect()
}

fn reachable(health: Health) -> Status {
    match health.offline() {
        Status::True => Status::False,
        Status::False => Status::True,
        Status::Unknown => Status::Unknown,
    }
}

/// A hash of what matters in the status of a cluster with this health, `None` for a paused one, and of what the flavour
/// adds.
pub(crate) fn fingerprint(health: Option<Health>, more: &impl Debug) -> u64 {
    let Some(health) = health else {
        let unknown = (ConditionStatus::Unknown, PAUSED);
        return hash(&unknown, &unknown, more);
    };
    let ready = (ConditionStatus::from(health.ready()), health.ready_reason());
    let reachable = (ConditionStatus::from(reachable(health)), health.offline_reason());
    hash(&ready, &reachable, more)
}

/// The fingerprint of what an object shows; `None` when it is not all that is published. What another field
/// manager may own is not looked at: it could differ without end, and would be written as often. It comes back
/// with the next heartbeat.
pub(crate) fn shown(stored: &[Condition], more: &impl Debug) -> Option<u64> {
    let find = |kind: &str| {
        let found = Condition::find(stored, kind)?;
        Some((found.status.clone(), &*found.reason))
    };
    Some(hash(&find(HEALTHY)?, &find(REACHABLE)?, more))
}

type State<'a> = (ConditionStatus, &'a str);

fn hash(ready: &State<'_>, reachable: &State<'_>, more: &impl Debug) -> u64 {
    health::hash(&format!("{ready:?} {reachable:?} {more:?}"))
}

/// The health that an object shows; `None` when it shows none.
pub(crate) fn seed(stored: &[Condition], now: Timestamp) -> Option<Published> {
    let healthy = Condition::find(stored, HEALTHY)?;
    let reachable = Condition::find(stored, REACHABLE);
    let ready = healthy.status.known()?;
    let by_reason = Health::from_ready_reason(&healthy.reason);
    let health = by_reason.filter(|it| it.ready() == ready).unwrap_or(Health::from_ready(ready));
    // The clocks of others may be ahead.
    let since = |condition: Option<&Condition>| {
        condition.and_then(|it| it.last_transition_time).unwrap_or(now).min(now)
    };
    let probed = healthy.message.rsplit_once(PROBED).and_then(|(_, time)| time.parse().ok());
    let probed = probed.map(|time: Timestamp| time.min(now));
    Some(Published::seed(health, since(Some(healthy)), since(reachable), probed))
}

/// The record of the availability that a status keeps.
pub(crate) fn record(stored: &[Condition]) -> Option<&str> {
    let within = Condition::find(stored, WITHIN_OBJECTIVE)?;
    Some(Record::at_end_of(&within.message))
}

/// Whether a status has conditions of ours.
pub(crate) fn has_ours(stored: &[Condition]) -> bool {
    stored.iter().any(|it| it.kind.starts_with(OWN_PREFIX))
}
