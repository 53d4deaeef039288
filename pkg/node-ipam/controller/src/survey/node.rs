//! [`Surveyed`]: a Node with its pod CIDRs and the field managers that set them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

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
    metadata: WireMetadata,
    #[serde(default)]
    spec: WireSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMetadata {
    name: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    creation_timestamp: String,
    #[serde(default)]
    managed_fields: Vec<ManagedFields>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireSpec {
    #[serde(rename = "podCIDR")]
    pod_cidr: String,
    #[serde(rename = "podCIDRs")]
    pod_cidrs: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManagedFields {
    #[serde(default)]
    manager: String,
    #[serde(default)]
    time: String,
    #[serde(default)]
    fields_v1: Fields,
}

/// The part of `fieldsV1` that is read.
#[derive(Default, Deserialize)]
struct Fields {
    #[serde(rename = "f:spec", default)]
    spec: FieldsOfSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FieldsOfSpec {
    #[serde(rename = "f:podCIDR")]
    pod_cidr: Option<IgnoredAny>,
    #[serde(rename = "f:podCIDRs")]
    pod_cidrs: Option<IgnoredAny>,
}

impl From<WireNode> for Surveyed {
    fn from(WireNode { metadata, spec }: WireNode) -> Self {
        let WireSpec { pod_cidr, pod_cidrs } = spec;
        let single = [pod_cidr].into_iter().filter(|cidr| !cidr.is_empty());
        let cidrs = if pod_cidrs.is_empty() { single.collect() } else { pod_cidrs };
        let set = metadata.managed_fields.into_iter().filter(ManagedFields::have_cidrs);
        let setters =
            set.filter_map(|fields| Some((fields.time.parse().ok()?, fields.manager))).collect();
        let WireMetadata { name, uid, labels, creation_timestamp, .. } = metadata;
        let created = creation_timestamp.parse().ok();
        Self { name, uid, labels, created, cidrs, setters }
    }
}

impl ManagedFields {
    fn have_cidrs(&self) -> bool {
        let spec = &self.fields_v1.spec;
        spec.pod_cidr.is_some() || spec.pod_cidrs.is_some()
    }
}
