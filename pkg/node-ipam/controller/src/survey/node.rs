//! [`Surveyed`]: a Node with its pod CIDRs and the field managers that set them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde::Deserialize;

/// One Node, read from its JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "WireNode")]
pub struct Surveyed {
    /// Name of the Node.
    pub name: String,
    /// UID of the Node.
    pub uid: String,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// When it was made, by the API server's clock.
    pub created: Option<Timestamp>,
    /// `spec.podCIDRs`, or `spec.podCIDR` where that is all; as they stand there.
    pub cidrs: Vec<String>,
    /// Field managers that set them, and when: what the API server remembers.
    pub setters: Vec<(Timestamp, String)>,
}

#[derive(Deserialize)]
struct WireNode {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: WireSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireSpec {
    #[serde(rename = "podCIDR")]
    pod_cidr: String,
    #[serde(rename = "podCIDRs")]
    pod_cidrs: Vec<String>,
}

impl From<WireNode> for Surveyed {
    fn from(WireNode { metadata, spec }: WireNode) -> Self {
        let WireSpec { pod_cidr, pod_cidrs } = spec;
        let single = [pod_cidr].into_iter().filter(|cidr| !cidr.is_empty());
        let set = metadata.managed_fields.into_iter().flatten().filter(have_cidrs);
        Self {
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default(),
            created: metadata.creation_timestamp.map(|time| time.0),
            cidrs: if pod_cidrs.is_empty() { single.collect() } else { pod_cidrs },
            setters: set
                .filter_map(|it| Some((it.time?.0, it.manager.unwrap_or_default())))
                .collect(),
        }
    }
}

fn have_cidrs(fields: &ManagedFieldsEntry) -> bool {
    let spec = fields.fields_v1.as_ref().and_then(|fields| fields.0.get("f:spec"));
    spec.is_some_and(|spec| spec.get("f:podCIDR").or(spec.get("f:podCIDRs")).is_some())
}
