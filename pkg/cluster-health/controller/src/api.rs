//! The custom resources as the controllers read and write them. The CRDs are in `config/crd`.
//!
//! Caches hold [`objects::Object`]s: the typed view of the fields that are used here, and the rest
//! as it came, so that status writes keep it. Of kinds with passwords in their spec only the needed
//! fields are kept. A [`tke::ClusterCredential`] is never cached: it is fetched singly and decoded
//! into memory that is wiped.

use std::collections::BTreeMap;
use std::fmt;

use health::{Renewal, Status};
use jiff::Timestamp;
use kube_api::Resource;
use objects::{Object, Schema};
use serde::{Deserialize, Serialize};

pub(crate) mod cluster_api;
pub(crate) mod cluster_profile;
pub(crate) mod kubefed;
pub(crate) mod secret;
pub(crate) mod tke;

/// The fields of the kinds except metadata and status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "T: Deserialize<'de> + Default"))]
pub(crate) struct WithSpec<T> {
    pub spec: T,
}

/// Where ConfigMaps are.
pub(crate) const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "ConfigMap", "configmaps");

/// A ConfigMap, by its texts.
#[derive(Debug)]
pub(crate) enum ConfigMap {}

impl Schema for ConfigMap {
    type Body = ConfigMapBody;
    type Status = ();
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ConfigMapBody {
    pub data: BTreeMap<String, String>,
}

/// Where Leases are.
pub(crate) const LEASES: Resource =
    Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
/// What the cluster says about its own `/readyz`: `ok`, or a short code.
pub(crate) const READYZ: &str = "infra-controller-manager/readyz";

/// The Lease that a member cluster renews, as far as it is read.
#[derive(Debug)]
pub(crate) enum Lease {}

impl Schema for Lease {
    type Body = WithSpec<LeaseSpec>;
    type Status = ();
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LeaseSpec {
    pub renew_time: String,
    pub lease_duration_seconds: Option<i64>,
}

/// What a Lease says.
pub(crate) fn renewal(lease: &Object<Lease>) -> Renewal {
    let spec = &lease.body.spec;
    let readyz = lease.metadata.annotations.get(READYZ);
    Renewal {
        time: (!spec.renew_time.is_empty()).then(|| spec.renew_time.as_str().into()),
        duration: spec.lease_duration_seconds,
        readyz: readyz.map(|said| said.as_str().into()),
    }
}

/// A condition of a Cluster, a Machine or a KubeFedCluster: their fields are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Condition {
    /// The type of the condition; unique in its list.
    #[serde(rename = "type")]
    pub kind: String,
    pub status: ConditionStatus,
    /// When it was last looked at.
    #[serde(with = "time", skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Timestamp>,
    /// When `status` last changed.
    #[serde(with = "time", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// The reason as one CamelCase word for programs. Written when it is empty as well: server-side apply keeps the
    /// text of another field manager where ours says nothing.
    pub reason: String,
    pub message: String,
}

impl Condition {
    /// The condition of this type, with this status since then.
    pub(crate) fn new(
        kind: &str,
        (status, since): (impl Into<ConditionStatus>, Timestamp),
        probed: Option<Timestamp>,
        (reason, message): (&str, &str),
    ) -> Self {
        Self {
            kind: kind.to_owned(),
            status: status.into(),
            last_probe_time: probed,
            last_transition_time: Some(since),
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }

    /// Keeps the transition time of the stored condition if its status is the same.
    pub(crate) fn kept_since(self, stored: Option<&Self>) -> Self {
        let same = stored.filter(|it| it.status == self.status);
        let since = same.and_then(|it| it.last_transition_time);
        Self { last_transition_time: since.or(self.last_transition_time), ..self }
    }

    /// The condition of this type.
    pub(crate) fn find<'a>(all: &'a [Self], kind: &str) -> Option<&'a Self> {
        all.iter().find(|condition| condition.kind == kind)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ConditionStatus {
    True,
    False,
    #[default]
    Unknown,
    /// A word that the API does not have.
    #[serde(untagged)]
    Other(Box<str>),
}

impl From<Status> for ConditionStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::True => Self::True,
            Status::False => Self::False,
            Status::Unknown => Self::Unknown,
        }
    }
}

impl ConditionStatus {
    /// The status; `None` for a word that the API does not have.
    pub(crate) fn known(&self) -> Option<Status> {
        match self {
            Self::True => Some(Status::True),
            Self::False => Some(Status::False),
            Self::Unknown => Some(Status::Unknown),
            Self::Other(_) => None,
        }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
            Self::Other(word) => word,
        })
    }
}

/// Whether a text can be the name of an object or a namespace. `a?b` or `../other/x` in a path would
/// ask for something else than an object of that name.
pub(crate) fn is_name(text: &str) -> bool {
    let legal = |c: u8| c.is_ascii_alphanumeric() || b"-.".contains(&c);
    !text.is_empty() && !text.starts_with('.') && text.bytes().all(legal)
}

/// For `#[serde(with = …)]`: RFC 3339 as the API writes it, in whole seconds; `None` for a text of another form.
mod time {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => to.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%SZ")),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<Box<str>>::deserialize(from)?;
        Ok(text.and_then(|text| text.parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_elsewhere_in_a_path_is_no_name() {
        for name in ["a", "cc-1", "a.b", "9", "UPPER"] {
            assert!(is_name(name), "{name}");
        }
        for other in ["", ".", "..", "../x", "a/b", "a?b", "a b", "a%2fb", "a#b", "é"] {
            assert!(!is_name(other), "{other}");
        }
    }
}
