//! [`User`]: the user of a request, from a client certificate or from the headers of a proxy.

use std::collections::BTreeMap;

use http::HeaderMap;
use kube_api::go::null_is_default;
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

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
    /// The user of a request without credentials.
    pub(crate) fn anonymous() -> Self {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Self { name: "system:anonymous".to_owned(), groups, ..Self::default() }
    }

    /// Adds the group of all users with good credentials.
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

/// The part of a certificate that counts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Empty when it has none.
    pub(crate) common_name: String,
    organizations: Vec<String>,
    /// When the certificate ends, in Unix seconds.
    pub(crate) ends: i64,
}

impl Subject {
    /// `None` for a certificate that cannot be read, or whose names are no text.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        let name = parsed.subject();
        let common_names = name.iter_common_name().map(|entry| entry.as_str().map(str::to_owned));
        let organizations = name.iter_organization().map(|entry| entry.as_str().map(str::to_owned));
        Some(Self {
            // Of several the last one counts, as in Go.
            common_name: common_names
                .collect::<Result<Vec<_>, _>>()
                .ok()?
                .pop()
                .unwrap_or_default(),
            organizations: organizations.collect::<Result<_, _>>().ok()?,
            ends: parsed.validity().not_after.timestamp(),
        })
    }

    /// The common name is the user, each organization a group; `None` without a name.
    pub(crate) fn into_user(self) -> Option<User> {
        let Self { common_name: name, organizations: groups, .. } = self;
        let user = User { name, groups, ..User::default() };
        (!user.name.is_empty()).then(|| user.authenticated())
    }
}

/// The headers in which an authenticating proxy names the user. Names of headers, in any case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeaders {
    /// Common names that a proxy may have; empty for any.
    pub allowed_names: Vec<String>,
    /// The first of these with a value names the user.
    pub user: Vec<String>,
    /// The first of these with a value is the user's UID.
    pub uid: Vec<String>,
    /// All values of these are groups.
    pub groups: Vec<String>,
    /// Headers that begin so hold more facts about the user.
    pub extra_prefixes: Vec<String>,
}

impl RequestHeaders {
    /// Whether a proxy may have this common name.
    pub(crate) fn allow(&self, common_name: &str) -> bool {
        self.allowed_names.is_empty() || self.allowed_names.iter().any(|name| name == common_name)
    }

    /// The user that the headers name, if any.
    pub(crate) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let name = first(headers, &self.user)?;
        let mut user = User { name, ..User::default() };
        user.uid = first(headers, &self.uid).unwrap_or_default();
        user.groups = self.groups.iter().flat_map(|header| values(headers, header)).collect();
        for (header, value) in headers {
            let header = header.as_str();
            for key in self.extra_prefixes.iter().filter_map(|prefix| rest_of(header, prefix)) {
                user.extra.entry(key).or_default().push(text(value.as_bytes()));
            }
        }
        Some(user.authenticated())
    }
}

fn first(headers: &HeaderMap, names: &[String]) -> Option<String> {
    names.iter().find_map(|name| values(headers, name).next())
}

/// The values of a header that are not empty.
fn values(headers: &HeaderMap, name: &str) -> impl Iterator<Item = String> {
    let values = headers.get_all(name.to_lowercase()).into_iter();
    values.map(|value| text(value.as_bytes())).filter(|value| !value.is_empty())
}

/// The part after the prefix, which proxies escape as in a URL; names of headers are in lower case.
fn rest_of(header: &str, prefix: &str) -> Option<String> {
    let rest = header.strip_prefix(prefix.to_lowercase().as_str())?;
    Some(percent_decode_str(rest).decode_utf8_lossy().into_owned())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
