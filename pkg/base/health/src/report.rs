//! [`Report`]: one completed probe, as the prober hands it to the engine.

use std::time::Duration;

use crate::{Finding, Moment};

/// One completed probe.
#[derive(Clone, Debug)]
pub struct Report {
    /// What it found.
    pub finding: Finding,
    /// When it began, which is what `lastProbeTime` tells.
    pub started: Moment,
    /// How long it took, retries included.
    pub took: Duration,
    /// HTTP attempts made; 0 when no client could be built.
    pub attempts: u8,
    /// How the addresses of the cluster did.
    pub endpoints: Endpoints,
    /// More for people, such as which key of which Secret is missing. Holds no secret; it is made
    /// fit for a condition by whoever publishes it.
    pub detail: Option<Box<str>>,
}

/// How the addresses of a cluster did when each was last asked, by a probe or beside one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// Addresses that gave no response.
    pub down: u8,
    /// Addresses there are.
    pub total: u8,
}
