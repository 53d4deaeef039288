//! [`Question`]: what somebody who may use the network could ask for a rule.

use std::fmt;

/// What is asked of the network. The answer belongs into [`crate::NetworkChecks`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// Whether SSH answers at this `IP:port`.
    Ssh(String),
    /// Whether a connection is made to this `host:port`.
    Tcp(String),
    /// Whether the API server of the Cluster takes the ClusterCredential of this name.
    Credential(String),
    /// Whether the cluster of this name is free to be imported.
    Import(String),
}

impl Question {
    /// What it is about: an address, or the name of an object.
    pub fn about(&self) -> &str {
        match self {
            Self::Ssh(about) | Self::Tcp(about) | Self::Credential(about) | Self::Import(about) => {
                about
            }
        }
    }

    /// The part of the environment that has the answer.
    pub fn told_by(&self) -> &'static str {
        match self {
            Self::Ssh(_) => "networkChecks.ssh",
            Self::Tcp(_) => "networkChecks.tcp",
            Self::Credential(_) => "networkChecks.credentials",
            Self::Import(_) => "networkChecks.imports",
        }
    }

    /// What kind of question it is, for labels of metrics.
    pub fn check(&self) -> &'static str {
        match self {
            Self::Ssh(_) => "ssh",
            Self::Tcp(_) => "tcp",
            Self::Credential(_) => "credential",
            Self::Import(_) => "import",
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssh(target) => write!(f, "whether SSH answers at {target}"),
            Self::Tcp(target) => write!(f, "whether {target} can be connected to"),
            Self::Credential(name) => {
                write!(f, "whether the API server takes the ClusterCredential {name}")
            }
            Self::Import(_) => f.write_str("whether the cluster is imported already"),
        }
    }
}
