//! Why there are no clients, or none any more: what is wrong with the flags or with the files that
//! they name. For the operator to mend. No variant ever holds a secret: neither a word of a
//! kubeconfig nor the output of a plugin.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, io};

use transport::{ProxyError, TlsError};

use crate::config::settings::AddressError;
use crate::identity::PluginError;

/// Why the process cannot make clients. All are for the operator to mend.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is missing, unreadable, not a kubeconfig, or names files that are.
    #[error("cannot use the kubeconfig {path:?} given with --kubeconfig: {problem}")]
    Kubeconfig {
        /// The file as given.
        path: PathBuf,
        /// The fault.
        problem: KubeconfigError,
    },
    /// A kubeconfig that comes from an object of the API server.
    #[error("cannot use the kubeconfig: {0}")]
    Object(KubeconfigError),
    /// `--master` is not an address.
    #[error(
        "cannot use {address:?} given with --master as the address of an API server: {problem}"
    )]
    Master {
        /// The value as given, without a user.
        address: String,
        /// The fault.
        problem: AddressError,
    },
    /// No `--kubeconfig`, no `--master`, and the process is in no pod.
    #[error(
        "cannot find an API server: set --kubeconfig or --master, or run in a pod with a service \
         account"
    )]
    NotInCluster,
    /// The files of the pod's service account cannot be used.
    #[error("cannot use the service account of this pod: {0}")]
    Pod(KubeconfigError),
    /// The proxy of the environment cannot be used.
    #[error("cannot use the proxy of HTTPS_PROXY: {0}")]
    Proxy(#[from] ProxyError),
    /// Product, version or the profile's suffix hold what no header may.
    #[error("cannot use {0:?} as a user agent: it holds characters that no HTTP header may hold")]
    UserAgent(String),
    /// A client needs a runtime to live on.
    #[error("cannot build a client outside of a tokio runtime")]
    NoRuntime,
}

/// A fault in a kubeconfig, or in a file that it names.
#[derive(Clone, Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The file itself.
    #[error("cannot read it: {0}")]
    Read(#[source] Arc<io::Error>),
    /// The place is all that is told: the parser's own words quote the file.
    #[error("it is not the YAML of a kubeconfig{}", at(.0.as_ref()))]
    NotYaml(Option<(u32, u32)>),
    /// A field is missing, cannot be read, or contradicts another one.
    #[error("{0}")]
    Invalid(String),
    /// Certificates or keys cannot be used.
    #[error("its {field} cannot be used: {source}")]
    Tls {
        /// The field that holds or names them.
        field: &'static str,
        /// Why not.
        source: TlsError,
    },
    /// `proxy-url` is not the address of a proxy.
    #[error("its proxy-url cannot be used: {0}")]
    Proxy(#[from] ProxyError),
    /// The plugin is configured in a way that cannot work.
    #[error("its exec plugin cannot be used: {0}")]
    Plugin(#[from] PluginError),
}

impl KubeconfigError {
    /// Keeps only the place of a parser's message, which quotes the file and so its secrets.
    pub fn not_yaml(error: &impl fmt::Display) -> Self {
        Self::NotYaml(place(&error.to_string()))
    }
}

fn place(error: &str) -> Option<(u32, u32)> {
    let number_after = |word: &str| {
        let rest = error.split_once(word)?.1;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<u32>().ok()
    };
    Some((number_after("line ")?, number_after("column ")?))
}

fn at(place: Option<&(u32, u32)>) -> String {
    place.map_or(String::new(), |(line, column)| format!(", see line {line}, column {column}"))
}
