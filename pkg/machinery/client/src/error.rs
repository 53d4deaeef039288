//! Why there are no clients: what is wrong with the flags or with the files that they name. For the
//! operator to mend; shown once at start.

use std::path::{Path, PathBuf};

use transport::ErrorChain;

/// Why the process cannot make clients. All are for the operator to mend.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is missing, unreadable, not a kubeconfig, or names files that are.
    #[error("cannot load the kubeconfig {path:?} given with --kubeconfig: {reason}")]
    Kubeconfig {
        /// The file as given.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// `--master` is no address.
    #[error("cannot use {address:?} given with --master as the address of an API server: {reason}")]
    Master {
        /// The value as given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No flag, and not in a pod either.
    #[error(
        "cannot find an API server: give --kubeconfig (or --master), or run in a pod with a service \
         account ({0})"
    )]
    NotInCluster(String),
    /// The trust or the credentials that the configuration names cannot be used.
    #[error(
        "cannot use the certificates or credentials of the client configuration (see --kubeconfig): \
         {0}"
    )]
    Credentials(String),
    /// `tls-server-name` is no host name.
    #[error(
        "cannot use {0:?} as tls-server-name: it is not a host name or address (see --kubeconfig)"
    )]
    ServerName(String),
    /// The proxy cannot be used.
    #[error("cannot use the proxy of proxy-url (see --kubeconfig) or HTTPS_PROXY: {reason}")]
    Proxy {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Product, version or the profile's suffix hold what no header may.
    #[error("cannot use {0:?} as a user agent: it holds characters that no HTTP header may hold")]
    UserAgent(String),
    /// A metric of this crate is already registered.
    #[error("cannot register the client metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// A client needs a runtime to live on.
    #[error("cannot build a client outside of a tokio runtime")]
    NoRuntime,
}

impl ConfigError {
    pub(crate) fn credentials(error: &kube::Error) -> Self {
        Self::Credentials(ErrorChain(error).to_string())
    }

    /// Names the kubeconfig in an error found after it was read.
    pub(crate) fn in_file(self, path: Option<&Path>) -> Self {
        match (self, path) {
            (Self::Credentials(reason), Some(path)) => {
                Self::Kubeconfig { path: path.to_owned(), reason }
            }
            (other, _) => other,
        }
    }
}
