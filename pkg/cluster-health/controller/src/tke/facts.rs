//! [`Facts`]: version, summary, Nodes and credential of a cluster, and the conditions about them. Pure.

use http::StatusCode;
use jiff::Timestamp;

use super::summary::Gathered;
use crate::api::tke::{NodeCounts, ResourceSummary};
use crate::api::{Condition, ConditionStatus};
use crate::paging::Abort;

pub(crate) const SYNC_VERSION: &str = "SyncVersion";
pub(crate) const NODES_READY: &str = "NodesReady";
pub(crate) const RESOURCE_SYNCED: &str = "ResourceSynced";
pub(crate) const CREDENTIAL_VALID: &str = "CredentialValid";
/// The reason of `CredentialValid` while the credential, or the certificate of the server, ends soon.
pub(crate) const EXPIRING_SOON: &str = "ExpiringSoon";

/// A sum that changed by more than this share is worth a write.
const MUCH: f64 = 0.01;

/// The facts about one cluster. They do not change its health, unless a flag says so.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The facts that have a condition.
    conditions: Vec<Fact>,
    /// `major.minor.patch`.
    pub(crate) version: Option<String>,
    /// The newest.
    pub(crate) summary: Option<ResourceSummary>,
    /// The last one that differed by much from the one before.
    pub(crate) notable: Option<ResourceSummary>,
    /// Whether enough of its Nodes are ready: by the newest list, or, before this process has one,
    /// by what the object says.
    pub(crate) enough_nodes: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fact {
    kind: &'static str,
    holds: bool,
    reason: &'static str,
    message: String,
    at: Timestamp,
}

impl Facts {
    /// Takes in what `/version` says; `None` for what is no version, which keeps the old one.
    pub(crate) fn versioned(&mut self, version: Option<String>, at: Timestamp) {
        match version {
            Some(version) => {
                self.set(SYNC_VERSION, true, "VersionSynced", String::new(), at);
                self.version = Some(version);
            }
            None => {
                let message = "the API server returned no version that can be parsed".to_owned();
                self.set(SYNC_VERSION, false, "VersionParseFail", message, at);
            }
        }
    }

    /// Takes in that the cluster refused to return its version, which keeps the old one.
    pub(crate) fn version_refused(&mut self, status: StatusCode, at: Timestamp) {
        let message = format!("the API server answered {} to /version", status.as_u16());
        self.set(SYNC_VERSION, false, "VersionRefused", message, at);
    }

    /// Takes in both lists of the cluster, or why they could not be read, which keeps the old summary.
    pub(crate) fn gathered(&mut self, gathered: Result<&Gathered, &Abort>, at: Timestamp) {
        match gathered {
            Ok(gathered) => {
                self.set(RESOURCE_SYNCED, true, "Synced", String::new(), at);
                let summary = gathered.summary(at);
                if self.notable.as_ref().is_none_or(|before| differs_much(before, &summary)) {
                    self.notable = Some(summary.clone());
                }
                self.summary = Some(summary);
            }
            Err(abort) => {
                self.set(RESOURCE_SYNCED, false, abort.reason(), abort.to_string(), at);
            }
        }
    }

    /// Takes in how many Nodes are ready; below `min_ratio` of all they are too few, and so are
    /// none.
    pub(crate) fn counted(&mut self, counts: NodeCounts, min_ratio: f64, at: Timestamp) {
        let NodeCounts { total, ready, .. } = counts;
        let enough = enough(counts, min_ratio);
        self.enough_nodes = Some(enough);
        let reason = match enough {
            true if ready == total => "NodesReady",
            true => "SomeNodesReady",
            false => "NodesNotReady",
        };
        self.set(NODES_READY, enough, reason, format!("{ready} of {total} nodes are ready"), at);
    }

    /// Takes in whether the cluster took our credential.
    pub(crate) fn authorized(
        &mut self,
        refusal: Option<&'static str>,
        message: String,
        at: Timestamp,
    ) {
        self.set(CREDENTIAL_VALID, refusal.is_none(), refusal.unwrap_or("Accepted"), message, at);
    }

    /// Takes in that a credential which is taken, or the certificate of the server, ends soon.
    pub(crate) fn expiring(&mut self, message: String, at: Timestamp) {
        self.set(CREDENTIAL_VALID, true, EXPIRING_SOON, message, at);
    }

    /// The condition about `kind`, if this process knows it; `cached` is the one of the
    /// object, whose transition time stays while the status does.
    pub(crate) fn condition(&self, kind: &str, cached: Option<&Condition>) -> Option<Condition> {
        let fact = self.conditions.iter().find(|fact| fact.kind == kind)?;
        let status = if fact.holds { ConditionStatus::True } else { ConditionStatus::False };
        let texts = (fact.reason, &*fact.message);
        let new = Condition::new(kind, (status, fact.at), Some(fact.at), texts);
        Some(new.kept_since(cached))
    }

    fn set(
        &mut self,
        kind: &'static str,
        holds: bool,
        reason: &'static str,
        message: String,
        at: Timestamp,
    ) {
        self.conditions.retain(|fact| fact.kind != kind);
        self.conditions.push(Fact { kind, holds, reason, message: health::one_line(&message), at });
    }
}

/// Whether so many Nodes are ready that the cluster can be used.
pub(crate) fn enough(counts: NodeCounts, min_ratio: f64) -> bool {
    let NodeCounts { total, ready, .. } = counts;
    #[expect(clippy::cast_precision_loss, reason = "no cluster has 2^52 Nodes")]
    let ratio = ready as f64 / total as f64;
    total == 0 || (ready > 0 && ratio >= min_ratio)
}

/// Whether sums differ by enough to be worth a write.
pub(crate) fn differs_much(before: &ResourceSummary, after: &ResourceSummary) -> bool {
    let sums = |summary: &ResourceSummary| {
        let maps =
            [&summary.capacity, &summary.allocatable, &summary.allocated, &summary.allocating];
        let sums = maps.map(|map| ["cpu", "memory"].map(|name| map.get(name).as_f64()));
        sums.into_iter().flatten().collect::<Vec<_>>()
    };
    #[expect(clippy::cast_precision_loss, reason = "no cluster has 2^52 Pods")]
    let pods = |summary: &ResourceSummary| summary.pods.unwrap_or_default() as f64;
    let much = |before: f64, after: f64| (before - after).abs() > before.abs() * MUCH;
    (before.nodes, before.cores) != (after.nodes, after.cores)
        || much(pods(before), pods(after))
        || sums(before).into_iter().zip(sums(after)).any(|(before, after)| much(before, after))
}

#[cfg(test)]
mod tests;
