//! [`NetworkChecks`]: what somebody who asked the network found. Nothing here asks it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A code is a word, so that no message of a server gets into an answer.
const LONGEST_CODE: usize = 40;

/// Results by what was asked. What is missing was not asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct NetworkChecks {
    /// Whether SSH answers, by `IP:port`, IPv6 in brackets.
    pub ssh: BTreeMap<String, CheckResult>,
    /// Whether a connection is made, by `host:port`, IPv6 in brackets.
    pub tcp: BTreeMap<String, CheckResult>,
    /// Whether the API server takes a credential, by the name of the ClusterCredential.
    pub credentials: BTreeMap<String, CheckResult>,
    /// Whether a cluster is free to be imported, by the name of the Cluster.
    pub imports: BTreeMap<String, CheckResult>,
    /// UID of the namespace kube-system of KubeFed's members, by `namespace/name`.
    #[serde(rename = "kubeSystemUIDs")]
    pub(crate) kube_system_uids: BTreeMap<String, String>,
}

impl NetworkChecks {
    /// The answer to a question, where it was asked.
    pub(crate) fn answer(&self, question: &Question) -> Option<&CheckResult> {
        let answers = match question {
            Question::Ssh(_) => &self.ssh,
            Question::Tcp(_) => &self.tcp,
            Question::Credential(_) => &self.credentials,
            Question::Import(_) => &self.imports,
        };
        answers.get(question.about())
    }

    /// Takes in an answer.
    pub fn take(&mut self, question: &Question, answer: CheckResult) {
        let answers = match question {
            Question::Ssh(_) => &mut self.ssh,
            Question::Tcp(_) => &mut self.tcp,
            Question::Credential(_) => &mut self.credentials,
            Question::Import(_) => &mut self.imports,
        };
        answers.insert(question.about().to_owned(), answer);
    }
}

/// The result of a check: `ok`, or a code such as `connect-refused`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum CheckResult {
    /// Nothing is wrong.
    Passed,
    /// This is wrong.
    Failed(String),
}

impl TryFrom<String> for CheckResult {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_code = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        match text.as_str() {
            "ok" => Ok(Self::Passed),
            "" => Err("the result of a check is empty; write ok or a code".to_owned()),
            _ if text.len() <= LONGEST_CODE && text.bytes().all(is_code) => Ok(Self::Failed(text)),
            _ => Err("the result of a check is ok, or a code such as connect-refused".to_owned()),
        }
    }
}

/// A question to the network. The answer belongs into [`super::NetworkChecks`].
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
    /// The target of the question: an address, or the name of an object.
    pub(crate) fn about(&self) -> &str {
        match self {
            Self::Ssh(about) | Self::Tcp(about) | Self::Credential(about) | Self::Import(about) => {
                about
            }
        }
    }

    /// The part of the environment that has the answer.
    pub(crate) fn told_by(&self) -> &'static str {
        match self {
            Self::Ssh(_) => "networkChecks.ssh",
            Self::Tcp(_) => "networkChecks.tcp",
            Self::Credential(_) => "networkChecks.credentials",
            Self::Import(_) => "networkChecks.imports",
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

/// Other objects and facts that rules refer to. A list that is `None` is not known,
/// and rules about it are reported as not checked; an empty list means that no object exists.
///
/// The objects are whole, as the API server has them, and are read as carefully as the one that is
/// judged. The object itself may be among them. They are shared: a webhook has thousands of them in many reviews at
/// once.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Environment {
    /// Values of `spec.type` that a Cluster may have.
    pub cluster_types: Vec<String>,
    /// Values of `spec.type` that a Machine may have.
    pub machine_types: Vec<String>,
    /// Versions that a new Cluster of type Baremetal may have; empty for any.
    pub supported_versions: Vec<String>,
    /// TKEStack's Clusters.
    #[serde(deserialize_with = "shared")]
    pub clusters: Option<Vec<Arc<Value>>>,
    /// TKEStack's Machines.
    #[serde(deserialize_with = "shared")]
    pub machines: Option<Vec<Arc<Value>>>,
    /// TKEStack's ClusterCredentials. Of their keys only the presence is looked at.
    #[serde(deserialize_with = "shared")]
    pub cluster_credentials: Option<Vec<Arc<Value>>>,
    /// KubeFed's members.
    #[serde(deserialize_with = "shared")]
    pub kube_fed_clusters: Option<Vec<Arc<Value>>>,
    /// How much there may be.
    pub licence: Licence,
    /// Answers of the network.
    pub network_checks: NetworkChecks,
}

fn shared<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Arc<Value>>>, D::Error> {
    let objects = Option::<Vec<Value>>::deserialize(from)?;
    Ok(objects.map(|objects| objects.into_iter().map(Arc::new).collect()))
}

impl Default for Environment {
    fn default() -> Self {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        Self {
            cluster_types: texts(&["Imported", "Baremetal", "EKSHosting", "Edge"]),
            machine_types: texts(&["Baremetal", "Edge"]),
            supported_versions: Vec::new(),
            clusters: None,
            machines: None,
            cluster_credentials: None,
            kube_fed_clusters: None,
            licence: Licence::default(),
            network_checks: NetworkChecks::default(),
        }
    }
}

/// How much there may be; 0 is without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Licence {
    /// Clusters, without the one named `global`.
    pub max_clusters: u64,
    /// Nodes of all Clusters.
    pub max_nodes: u64,
    /// Whole cores of all Clusters.
    #[serde(rename = "maxCPUs")]
    pub max_cpus: u64,
}
