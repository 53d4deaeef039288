//! CAs of clients and proxies, from files or from the cluster, read again every minute. What
//! cannot be used is told, and the old is kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use client::{CallError, Caller};
use http::{HeaderMap, Request, StatusCode};
use kube::client::Body;
use kube_api::Status;
use kube_api::go::null_is_default;
use parking_lot::RwLock;
use resilience::LogGate;
use serde::Deserialize;
use serving::{ClientRoots, ShownChain};
use tokio::time::{Instant, sleep};
use tracing::warn;

use crate::user::{Subject, User};
use crate::{DelegationOptions, RequestHeaders};

const EVERY: Duration = Duration::from_secs(60);
/// Until the first answer of the API server.
const SOON: Duration = Duration::from_secs(5);

/// A file of CAs that cannot be used at start.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the CAs in {path:?}: {reason}; give PEM certificates")]
pub struct TrustError {
    /// The file.
    pub path: PathBuf,
    /// The fault.
    pub reason: String,
}

/// The result for one certificate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The certificate is good and belongs to this user.
    Of(User),
    /// No CA vouches for the certificate.
    Bad,
    /// The certificate names no user and is good, or there is no CA to judge it by.
    NoUser,
}

/// The CAs of this moment.
#[derive(Clone, Default)]
struct Roots {
    clients: Option<ClientRoots>,
    proxies: Option<(ClientRoots, RequestHeaders)>,
}

/// The CAs, kept fresh.
pub(crate) struct Trust {
    client_file: Option<PathBuf>,
    proxy_file: Option<(PathBuf, RequestHeaders)>,
    /// Asked for what no file gives.
    cluster: Option<Caller>,
    tolerate_lookup_failure: bool,
    roots: RwLock<Roots>,
}

impl Trust {
    /// Reads the files.
    pub(crate) async fn load(
        options: &DelegationOptions,
        cluster: Option<Caller>,
    ) -> Result<Self, TrustError> {
        let all_from_files = options.client_ca_file.is_some() && options.proxy_ca_file.is_some();
        let headers = || options.proxy_headers.clone();
        let trust = Self {
            client_file: options.client_ca_file.clone(),
            proxy_file: options.proxy_ca_file.clone().map(|path| (path, headers())),
            cluster: cluster.filter(|_| !options.skip_lookup && !all_from_files),
            tolerate_lookup_failure: options.tolerate_lookup_failure,
            roots: RwLock::default(),
        };
        trust.read_files().await?;
        Ok(trust)
    }

    async fn read_files(&self) -> Result<(), TrustError> {
        if let Some(path) = &self.client_file {
            self.roots.write().clients = Some(read(path).await?);
        }
        if let Some((path, headers)) = &self.proxy_file {
            let roots = read(path).await?;
            self.roots.write().proxies = Some((roots, headers.clone()));
        }
        Ok(())
    }

    /// Looks again and again. Ends when the first look into the cluster is refused, unless that is
    /// to be tolerated; an API server that is away is waited for.
    pub(crate) async fn follow(&self) -> LookupError {
        let mut known = self.cluster.is_none();
        let reminder = LogGate::new(EVERY);
        loop {
            if let Some(cluster) = &self.cluster {
                match self.take_in(cluster).await {
                    Ok(()) => known = true,
                    Err(error) if known || error.may_pass() || self.tolerate_lookup_failure => {
                        if reminder.pass(Instant::now()).is_some() {
                            warn!(logger = "delegation", "{error}");
                        }
                    }
                    Err(error) => return error,
                }
            }
            sleep(if known { EVERY } else { SOON }).await;
            if let Err(error) = self.read_files().await {
                warn!(logger = "delegation", "{error}; the previous CAs stay in use");
            }
        }
    }

    async fn take_in(&self, cluster: &Caller) -> Result<(), LookupError> {
        let published = look_up(cluster).await?;
        let mut roots = self.roots.write();
        if self.client_file.is_none() {
            roots.clients = published.clients;
        }
        if self.proxy_file.is_none() {
            roots.proxies = published.proxies;
        }
        Ok(())
    }

    /// The user of `chain`: the one that a proxy speaks for, or the owner.
    pub(crate) async fn user(&self, chain: &ShownChain, headers: &HeaderMap) -> Finding {
        let Roots { clients, proxies } = self.roots.read().clone();
        let mut bad = false;
        if let Some((roots, proxy)) = proxies {
            if !chain.is_vouched_for_by(&roots).await || !proxy.allow(&common_name(chain)) {
                bad = true;
            } else if let Some(user) = proxy.user(headers) {
                return Finding::Of(user);
            }
        }
        if let Some(roots) = clients {
            if chain.is_vouched_for_by(&roots).await {
                let user = subject(chain).and_then(Subject::into_user);
                return user.map_or(Finding::NoUser, Finding::Of);
            }
            bad = true;
        }
        if bad { Finding::Bad } else { Finding::NoUser }
    }
}

fn subject(chain: &ShownChain) -> Option<Subject> {
    Subject::of(chain.certificates().first()?)
}

fn common_name(chain: &ShownChain) -> String {
    subject(chain).map(|subject| subject.common_name).unwrap_or_default()
}

async fn read(path: &Path) -> Result<ClientRoots, TrustError> {
    let bad = |reason: String| TrustError { path: path.to_owned(), reason };
    let pem = tokio::fs::read(path).await.map_err(|error| bad(error.to_string()))?;
    ClientRoots::from_pem(&pem).map_err(bad)
}

const PATH: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why the settings of the cluster are not known.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The request got no answer; a later one may.
    #[error("cannot look up the CAs of clients in the cluster: {0}")]
    NoAnswer(#[from] CallError),
    /// The API server refused the request.
    #[error(
        "cannot look up the CAs of clients in the cluster: the API server answers {status}: \
         {message}; {}", advice(*.status)
    )]
    Refused {
        /// Status of the answer.
        status: StatusCode,
        /// Message of the API server.
        message: String,
    },
    /// The published data cannot be used.
    #[error(
        "cannot use {key} of the ConfigMap kube-system/extension-apiserver-authentication: {reason}; \
         give --client-ca-file and --requestheader-client-ca-file instead"
    )]
    Malformed {
        /// The key in the ConfigMap.
        key: &'static str,
        /// The fault.
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
        _ => "the program tries again",
    }
}

/// The CAs and headers that the cluster publishes.
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
