//! [`Settings`]: a parsed configuration: where the server is, what is trusted there, and where
//! our credentials come from. No file that it names has been read yet. What is printed of it holds
//! no secret (`rule:secrets-have-no-printed-form`).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use http::{HeaderName, HeaderValue, Uri};
use rustls::pki_types::ServerName;
use transport::Proxy;
use zeroize::Zeroizing;

/// One server and one user of it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) server: Uri,
    pub(crate) trust: TrustSource,
    pub(crate) server_name: Option<ServerName<'static>>,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) user: User,
}

/// Where the trust in the server comes from.
#[derive(Clone, Debug)]
pub(crate) enum TrustSource {
    System,
    Bundle(Material),
    Nothing,
}

/// PEM that is given outright or stands in a file, which is followed. It may be a private key, so it
/// is overwritten when it is dropped.
#[derive(Clone)]
pub(crate) enum Material {
    Data(&'static str, Arc<Pem>),
    File(&'static str, PathBuf),
}

/// Text of PEM in memory that is overwritten.
pub(crate) type Pem = Zeroizing<Vec<u8>>;

/// The credentials of the process.
#[derive(Clone, Default)]
pub(crate) struct User {
    /// Certificate and key.
    pub(crate) certificate: Option<(Material, Material)>,
    /// The `Authorization` header, when it is given outright.
    pub(crate) authorization: Option<HeaderValue>,
    /// Holds a bearer token, and wins over the header.
    pub(crate) token_file: Option<PathBuf>,
    /// The user to impersonate.
    pub(crate) impersonation: Vec<(HeaderName, HeaderValue)>,
    pub(crate) plugin: Option<PluginSpec>,
}

/// How an exec plugin is run.
#[derive(Clone, PartialEq, Eq)]
pub struct PluginSpec {
    /// The program; without a slash it is looked up in `PATH`.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables in addition to those of this process.
    pub env: Vec<(String, String)>,
    /// The version of the `ExecCredential` that it reads and prints.
    pub api_version: String,
    /// For `provideClusterInfo`: the field `spec.cluster` of what the plugin is told.
    pub cluster: Option<serde_json::Value>,
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(field, _) => write!(f, "{field}"),
            Self::File(field, path) => write!(f, "{field} {}", path.display()),
        }
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("certificate", &self.certificate)
            .field("authorization", &self.authorization.is_some())
            .field("token_file", &self.token_file)
            .field("impersonation", &!self.impersonation.is_empty())
            .field("plugin", &self.plugin)
            .finish()
    }
}

/// Arguments and environment of a plugin may hold what it identifies itself with.
impl fmt::Debug for PluginSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginSpec").field("command", &self.command).finish_non_exhaustive()
    }
}

/// A fault in the address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it must be host:port, http://host:port or https://host:port, without user and password")]
pub struct AddressError;

/// Whether an address can be that of a server.
///
/// # Errors
/// It cannot; the error does not quote it.
pub fn check_address(address: &str) -> Result<(), AddressError> {
    server(address, false).map(drop)
}

/// The address of a server. One without a scheme gets it as client-go gives it: https once TLS is
/// configured in any way, `insecure-skip-tls-verify` included. One with a user is refused: no API
/// server takes it, and addresses appear in logs and metrics.
pub(crate) fn server(address: &str, tls_is_configured: bool) -> Result<Uri, AddressError> {
    let scheme = if tls_is_configured { "https" } else { "http" };
    let full =
        if address.contains("://") { address.to_owned() } else { format!("{scheme}://{address}") };
    let uri: Uri = full.parse().map_err(|_| AddressError)?;
    match uri.scheme_str() {
        Some("http" | "https") if names_a_host_only(&uri) => Ok(uri),
        _ => Err(AddressError),
    }
}

fn names_a_host_only(uri: &Uri) -> bool {
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
    authority.is_some_and(|authority| !authority.host().is_empty())
}

/// An address that cannot be used, as it may be shown.
pub(crate) fn shown(address: &str) -> String {
    address.rsplit_once('@').map_or_else(|| address.to_owned(), |(_, host)| format!("…@{host}"))
}

impl Settings {
    /// A server without trust or credentials.
    pub(crate) fn bare(server: Uri) -> Self {
        let user = User::default();
        Self { server, trust: TrustSource::System, server_name: None, proxy: None, user }
    }

    /// Whether anything speaks of TLS, by client-go's rule.
    pub(crate) fn tls_is_configured(&self) -> bool {
        !matches!(self.trust, TrustSource::System) || self.user.certificate.is_some()
    }
}
