//! The CAs that the API server publishes for components like this one.

use std::collections::BTreeMap;
use std::time::Duration;

use client::{CallError, Caller};
use http::{Request, StatusCode};
use kube::client::Body;
use kube_api::Status;
use serde::Deserialize;
use serving::ClientRoots;

use kube_api::go::null_is_default;

use crate::RequestHeaders;

const PATH: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why the settings of the cluster are not known.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// No answer; there may be one later.
    #[error("cannot look up the CAs of clients in the cluster: {0}")]
    NoAnswer(#[from] CallError),
    /// The API server refuses.
    #[error(
        "cannot look up the CAs of clients in the cluster: the API server answers {status}: \
         {message}; {}", advice(*.status)
    )]
    Refused {
        /// Its answer.
        status: StatusCode,
        /// In its words.
        message: String,
    },
    /// What is published cannot be used.
    #[error(
        "cannot use {key} of the ConfigMap kube-system/extension-apiserver-authentication: {reason}; \
         give --client-ca-file and --requestheader-client-ca-file instead"
    )]
    Malformed {
        /// The key in the ConfigMap.
        key: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl LookupError {
    /// Whether the API server is only away, busy, or so young that it has published nothing yet.
    pub(crate) fn may_pass(&self) -> bool {
        const LATER: [StatusCode; 2] = [StatusCode::TOO_MANY_REQUESTS, StatusCode::NOT_FOUND];
        match self {
            Self::NoAnswer(_) => true,
            Self::Refused { status, .. } => status.is_server_error() || LATER.contains(status),
            Self::Malformed { .. } => false,
        }
    }
}

fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::FORBIDDEN => {
            "bind the identity of --authentication-kubeconfig to the Role \
             kube-system/extension-apiserver-authentication-reader, give --client-ca-file and \
             --requestheader-client-ca-file, or set --authentication-tolerate-lookup-failure"
        }
        StatusCode::UNAUTHORIZED => "renew the credentials of --authentication-kubeconfig",
        _ => "it is asked again",
    }
}

/// What the cluster publishes.
pub(crate) struct Published {
    pub(crate) clients: Option<ClientRoots>,
    pub(crate) proxies: Option<(ClientRoots, RequestHeaders)>,
}

/// Asks once.
pub(crate) async fn look_up(caller: &Caller) -> Result<Published, LookupError> {
    let request = Request::get(PATH).body(Body::empty());
    let request = request.map_err(|error| malformed("request", &error))?;
    let answer = caller.answer(request, TIMEOUT).await?;
    if !answer.status.is_success() {
        let message = Status::read(&answer.body).map(|status| status.message).unwrap_or_default();
        return Err(LookupError::Refused { status: answer.status, message });
    }
    let map: ConfigMap =
        serde_json::from_slice(&answer.body).map_err(|error| malformed("data", &error))?;
    Published::read(&map.data)
}

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default, deserialize_with = "null_is_default")]
    data: BTreeMap<String, String>,
}

impl Published {
    fn read(data: &BTreeMap<String, String>) -> Result<Self, LookupError> {
        let clients = roots(data, "client-ca-file")?;
        let Some(proxies) = roots(data, "requestheader-client-ca-file")? else {
            return Ok(Self { clients, proxies: None });
        };
        let headers = RequestHeaders {
            allowed_names: list(data, "requestheader-allowed-names")?,
            user: list(data, "requestheader-username-headers")?,
            uid: list(data, "requestheader-uid-headers")?,
            groups: list(data, "requestheader-group-headers")?,
            extra_prefixes: list(data, "requestheader-extra-headers-prefix")?,
        };
        Ok(Self { clients, proxies: Some((proxies, headers)) })
    }
}

fn roots(
    data: &BTreeMap<String, String>,
    key: &'static str,
) -> Result<Option<ClientRoots>, LookupError> {
    let pem = data.get(key).filter(|pem| !pem.is_empty());
    pem.map(|pem| ClientRoots::from_pem(pem.as_bytes()))
        .transpose()
        .map_err(|reason| LookupError::Malformed { key, reason })
}

/// A JSON array of texts; absent is empty.
fn list(data: &BTreeMap<String, String>, key: &'static str) -> Result<Vec<String>, LookupError> {
    let text = data.get(key).map_or("", String::as_str);
    if text.is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(text).map_err(|error| malformed(key, &error))
}

fn malformed(key: &'static str, error: &dyn std::fmt::Display) -> LookupError {
    LookupError::Malformed { key, reason: error.to_string() }
}

#[cfg(test)]
mod tests;
