//! What the flags decide.

use std::path::PathBuf;
use std::time::Duration;

/// How requests are authenticated and authorized.
#[derive(Clone, Debug)]
pub struct DelegationOptions {
    /// CAs of clients; without it they are looked up in the cluster.
    pub client_ca_file: Option<PathBuf>,
    /// CAs of authenticating proxies; without it they are looked up in the cluster, with their
    /// headers.
    pub proxy_ca_file: Option<PathBuf>,
    /// The headers that count with [`proxy_ca_file`](Self::proxy_ca_file).
    pub proxy_headers: RequestHeaders,
    /// Nothing is looked up in the cluster.
    pub skip_lookup: bool,
    /// A lookup that the API server refuses is told and tried again; else it ends the process.
    pub tolerate_lookup_failure: bool,
    /// How long the answer about a token is reused.
    pub token_ttl: Duration,
    /// How long a right that is there is reused.
    pub allowed_ttl: Duration,
    /// How long a right that is not there is reused.
    pub denied_ttl: Duration,
    /// How long an answer that was good counts on when there is none
    /// (rule:readers-outlive-an-outage).
    pub outage_grace: Duration,
    /// Paths that need no review; a final `*` stands for the rest.
    pub always_allow_paths: Vec<String>,
    /// Users, and groups as `group:NAME`, that read `/metrics` without a review.
    pub metrics_readers: Vec<String>,
}

/// How an authenticating proxy says for whom it speaks. Names of headers, in any case.
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
