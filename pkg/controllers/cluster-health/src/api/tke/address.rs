//! [`ClusterAddress`]: where the API server of a Cluster can be reached.

use serde::{Deserialize, Serialize};

use crate::api::tolerant;

/// One way to the API server of a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterAddress {
    /// What the way is for.
    #[serde(rename = "type")]
    pub kind: AddressType,
    /// IP address or name, without brackets.
    #[serde(deserialize_with = "tolerant::null_is_default")]
    pub host: String,
    /// TCP port.
    pub port: i32,
    /// What stands before every path, such as that of a proxy.
    #[serde(
        deserialize_with = "tolerant::null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub path: String,
}

/// What an address is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AddressType {
    /// For users outside.
    Public,
    /// What the servers tell others of themselves.
    Advertise,
    /// Of one server itself.
    #[default]
    Real,
    /// For the management cluster.
    Internal,
    /// For people who mend it.
    Support,
    /// A word that is not known here.
    #[serde(untagged)]
    Other(Box<str>),
}
