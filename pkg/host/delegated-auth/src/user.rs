//! Who a request is of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use kube_api::go::null_is_default;

/// The group of those who show no credentials.
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of all others.
const AUTHENTICATED: &str = "system:authenticated";

/// A user with what the API server wants to know of it; the field names are those of its reviews.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct User {
    #[serde(rename(serialize = "user", deserialize = "username"))]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) groups: Vec<String>,
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Who shows no credentials.
    pub(crate) fn anonymous() -> Self {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Self { name: "system:anonymous".to_owned(), groups, ..Self::default() }
    }

    /// The same as a member of the group of all whose credentials are good.
    pub(crate) fn authenticated(mut self) -> Self {
        let known = [AUTHENTICATED, UNAUTHENTICATED];
        if !self.groups.iter().any(|group| known.contains(&group.as_str())) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}
