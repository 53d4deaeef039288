//! [`Record`]: what is remembered of one Machine, and what each list does to it. Pure.

use std::time::{Duration, Instant};

use health::{Decision, Moment, Status, Tally, Thresholds, Urgency, WriteGate, hash};
use jiff::Timestamp;

use super::standing::{Cause, Found, Standing};
use crate::api::tke::MachineInfo;

/// One Machine, by its UID.
#[derive(Debug)]
pub(crate) struct Record {
    ip: Box<str>,
    published: Option<Published>,
    tally: Tally,
    /// Lists in a row that could not be had, and when the last of them was counted.
    unlisted: u32,
    unlisted_at: Option<Instant>,
    gate: WriteGate,
}

/// What its object says, or will say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) standing: Standing,
    pub(crate) message: String,
    /// When the status of the condition last changed.
    pub(crate) since: Timestamp,
    /// When a list last told of it.
    pub(crate) probed: Option<Timestamp>,
    /// What its Node said of itself; `None` keeps what is there.
    pub(crate) info: Option<MachineInfo>,
}

/// What was published about a Machine that is another word than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// `None` for the first word of all.
    pub(crate) from: Option<Status>,
    pub(crate) to: Status,
}

impl Record {
    /// Takes a Machine in: `published` and `written` are what its object says, and a fingerprint of
    /// it.
    pub(crate) fn new(
        uid: &str,
        ip: &str,
        published: Option<Published>,
        written: u64,
        heartbeat: Duration,
        now: Instant,
    ) -> Self {
        let written = published.as_ref().map(|_| written);
        Self {
            ip: ip.into(),
            published,
            tally: Tally::default(),
            unlisted: 0,
            unlisted_at: None,
            gate: WriteGate::new(written, now, heartbeat, hash(uid)),
        }
    }

    /// The Machine has this address now; what the next list says of another one is published at
    /// once.
    pub(crate) fn at(&mut self, ip: &str) {
        if *self.ip != *ip {
            self.ip = ip.into();
            self.tally.new_target();
        }
    }

    /// Takes in what a list says of it. A failure counts only `spacing` after the one before it:
    /// lists are made for other Machines as well (`rule:machines-fail-as-clusters-do`).
    pub(crate) fn observe(
        &mut self,
        found: Found,
        thresholds: Thresholds,
        spacing: Duration,
        now: Moment,
    ) -> Option<Turn> {
        self.unlisted = 0;
        let well = found.standing == Standing::Well;
        let spaced = |at| now.monotonic.saturating_duration_since(at) >= spacing;
        let counted = self.tally.counted_at().is_none_or(spaced).then_some(now.monotonic);
        match (self.tally.decide(self.status(), well, counted, thresholds), &mut self.published) {
            (Decision::Keep, Some(published)) => {
                published.probed = Some(now.wall);
                None
            }
            _ => self.publish(found, Some(now.wall), now),
        }
    }

    /// Takes in that its Cluster did not show its Nodes. Once is no reason to know nothing.
    pub(crate) fn not_listed(
        &mut self,
        why: &str,
        thresholds: Thresholds,
        spacing: Duration,
        now: Moment,
    ) -> Option<Turn> {
        let spaced = |at| now.monotonic.saturating_duration_since(at) >= spacing;
        if self.unlisted == 0 || self.unlisted_at.is_none_or(spaced) {
            self.unlisted = self.unlisted.saturating_add(1);
            self.unlisted_at = Some(now.monotonic);
        }
        let message = format!("the nodes of its cluster cannot be listed: {why}");
        let enough = self.unlisted >= thresholds.failure.max(1);
        enough.then(|| self.expire(Cause::NodesNotListed, &message, now)).flatten()
    }

    /// Publishes that nobody knows. What comes next is published at once.
    pub(crate) fn unknown(&mut self, cause: Cause, message: &str, now: Moment) -> Option<Turn> {
        self.unlisted = 0;
        self.expire(cause, message, now)
    }

    fn expire(&mut self, cause: Cause, message: &str, now: Moment) -> Option<Turn> {
        self.tally = Tally::default();
        let probed = self.published.as_ref().and_then(|published| published.probed);
        let message = health::one_line(message);
        self.publish(Found { standing: Standing::Unknown(cause), message, info: None }, probed, now)
    }

    fn publish(&mut self, found: Found, probed: Option<Timestamp>, now: Moment) -> Option<Turn> {
        let Found { standing, message, info } = found;
        let (from, to) = (self.status(), standing.status());
        let before = self.published.take();
        let since = before.as_ref().filter(|_| from == Some(to)).map_or(now.wall, |it| it.since);
        let info = info.or(before.and_then(|before| before.info));
        self.published = Some(Published { standing, message, since, probed, info });
        (from != Some(to)).then_some(Turn { from, to })
    }

    pub(crate) fn published(&self) -> Option<&Published> {
        self.published.as_ref()
    }

    fn status(&self) -> Option<Status> {
        self.published.as_ref().map(|published| published.standing.status())
    }

    /// Whether no list was seen yet that told of it, or what one said is to be confirmed soon.
    pub(crate) fn wants(&self) -> Want {
        let standing = self.published.as_ref().map(|published| published.standing);
        match standing {
            Some(Standing::Unknown(Cause::NodesNotListed)) => Want::NothingNew,
            _ if self.unlisted > 0 => Want::Confirmation,
            None | Some(Standing::Unknown(_)) => Want::Anything,
            Some(_) if self.tally.contradicts(self.status()) => Want::Confirmation,
            Some(_) => Want::NothingNew,
        }
    }

    /// Whether the state with this fingerprint is to be written; if so it has to be. `shown` is the
    /// fingerprint of the object, unless a write is under way.
    pub(crate) fn write_due(
        &mut self,
        fingerprint: u64,
        shown: Option<u64>,
        heartbeat: Duration,
        now: Instant,
    ) -> Option<Urgency> {
        if shown.is_some() {
            self.gate.shows(shown);
        }
        let urgency = self.gate.due(fingerprint, now, heartbeat)?;
        self.gate.handed_over(fingerprint, now);
        Some(urgency)
    }
}

/// What a Machine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Want {
    NothingNew,
    /// Another list that says the same.
    Confirmation,
    /// A list, at once.
    Anything,
}

#[cfg(test)]
mod tests;
