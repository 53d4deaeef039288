//! [`Memory`]: what must be known after a crash and cannot be read from AWS. It is stored in the
//! status of the object, and all of it may be lost: then resources are found by their tags, only
//! more slowly.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{LogicalId, Timestamp};

/// After so many seconds a read of AWS shows every create that was sent. EC2 gives no number; reads
/// lag by seconds.
pub const READS_CATCH_UP: u64 = 30;

/// For so long a resource whose id we were told, and which no read shows, is late rather than gone.
pub const LATE: u64 = 60;

/// A create is sent within so many seconds of its intent or not at all, so that [`READS_CATCH_UP`],
/// counted from the intent, covers the call too.
pub const SEND_WITHIN: u64 = 10;

/// What is known of one create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// When the create was last intended.
    pub since: Timestamp,
    /// What AWS answered; none while the answer is awaited, or lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How many resources of this place ended before: part of the client token.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(attempt: &u32) -> bool {
    *attempt == 0
}

/// What the reads of a resource that is not seen mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// There is none: it may be created.
    Certain,
    /// It may exist without being visible yet; look again after so many seconds.
    Settling(u64),
}

/// What survives a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memory {
    /// Creates that were intended, and what came of them.
    pub records: BTreeMap<LogicalId, Record>,
    /// When attributes that only extra calls show were last found right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deep_checked: Option<Timestamp>,
    /// Since when the deletion goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleting_since: Option<Timestamp>,
    /// Since when a delete is refused because something is still in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_since: Option<Timestamp>,
}

impl Memory {
    /// The id that AWS gave this place, as far as it was told.
    pub fn id(&self, logical: &LogicalId) -> Option<&str> {
        self.records.get(logical)?.id.as_deref()
    }

    /// Whether AWS answered one of our creates with this id.
    pub fn has_recorded(&self, id: &str) -> bool {
        self.records.values().any(|record| record.id.as_deref() == Some(id))
    }

    /// What it means that no read shows a resource (`rule:intent-before-unprotected-create`).
    pub fn absence(&self, logical: &LogicalId, now: Timestamp) -> Absence {
        let wait = match self.records.get(logical) {
            Some(Record { id: Some(_), since, .. }) => since.plus(LATE).left(now),
            Some(record) if !logical.is_protected() => record.since.plus(READS_CATCH_UP).left(now),
            _ => 0,
        };
        if wait == 0 { Absence::Certain } else { Absence::Settling(wait) }
    }

    /// The attempt that a create of this place has to carry in its client token, when `ended` is
    /// the highest attempt seen on a resource that has ended (`rule:token-changes-after-an-end`).
    pub fn attempt(&self, logical: &LogicalId, ended: Option<u32>, now: Timestamp) -> u32 {
        let recorded = self.records.get(logical).map_or(0, |record| {
            let gone = record.id.is_some() && record.since.age(now) >= LATE;
            record.attempt + u32::from(gone)
        });
        recorded.max(ended.map_or(0, |attempt| attempt + 1))
    }

    /// From when on a read shows everything that was ever created.
    pub fn reads_are_complete_from(&self) -> Timestamp {
        let newest = self.records.values().map(|record| record.since).max();
        newest.or(self.deleting_since).unwrap_or_default().plus(READS_CATCH_UP)
    }
}

#[cfg(test)]
mod tests;
