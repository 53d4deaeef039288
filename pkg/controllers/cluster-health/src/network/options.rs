//! [`NetworkOptions`]: what is asked of the network at all, and how.

use transport::DialPolicy;

/// What is asked at all, and how.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Whether machines are asked for SSH.
    pub ssh: bool,
    /// Whether clusters are asked if somebody has imported them.
    pub import: bool,
    /// Which addresses may be dialled.
    pub policy: DialPolicy,
    /// Whether certificates of TKEStack's Clusters without a CA are not checked.
    pub insecure_without_ca: bool,
    /// The only namespace of the Secrets that ClusterCredentials refer to, if there is one.
    pub secret_namespace: Option<String>,
}
