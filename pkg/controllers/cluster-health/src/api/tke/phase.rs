//! [`Phase`]: where a Cluster or a Machine is in its life.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a Cluster or a Machine is in its life. An absent one means `Initializing`: a status is not
/// stored when an object is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// It is being set up.
    #[default]
    #[serde(alias = "")]
    Initializing,
    /// It waits for others.
    Waiting,
    /// Healthy.
    Running,
    /// Not healthy.
    Failed,
    /// Shut off on purpose.
    Confined,
    /// Not in use.
    Idling,
    /// Between two versions.
    Upgrading,
    /// Being removed.
    Terminating,
    /// Machines are being added.
    Upscaling,
    /// Machines are being taken away.
    Downscaling,
    /// Being mended.
    Recovering,
    /// A word that is not known here.
    #[serde(untagged)]
    Other(Box<str>),
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(word) => f.write_str(word),
            // Its name is what is written.
            known => fmt::Debug::fmt(known, f),
        }
    }
}
