//! [`Environment`]: what rules must know beside the object that they judge.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::network_checks::NetworkChecks;

/// What is known beside the object. A list that is `None` is not known,
/// and rules about it are named as not checked; an empty one says that there are none.
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
    /// What the network said.
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
