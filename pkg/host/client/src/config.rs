//! Where the API server is and who we are to it: `--kubeconfig`, `--master`, or the pod's own
//! service account. Read at start, before anything is sent, and again whenever it may have changed.

pub(crate) mod kubeconfig;
pub(crate) mod settings;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Uri;
use kube::config::Kubeconfig;
use transport::Proxy;
use zeroize::Zeroizing;

use crate::config::settings::{Material, Settings, TrustSource};
use crate::error::{ConfigError, KubeconfigError};

/// Where the kubelet puts the files of a pod's service account.
const POD_FILES: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Settings of all clients of the process, from the command line and the build.
#[derive(Clone)]
pub struct ClientOptions {
    /// `--kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// `--master`: overrides the server of the kubeconfig.
    pub master: Option<String>,
    /// Product name, first word of the user agent.
    pub product: String,
    /// Version of the product; the user agent shows it up to the first `-`.
    pub version: String,
    /// Commit of the build; the user agent shows seven characters.
    pub commit: String,
}

/// A place from which settings are read, now and later.
#[derive(Clone)]
pub(crate) enum Source {
    /// A file, with the address that replaces its server.
    File { path: PathBuf, master: Option<String> },
    /// An address and nothing else.
    Address(String),
    /// The service account of the pod, with the server's host and port.
    Pod { folder: PathBuf, host: String, port: String },
    /// A kubeconfig that was read by whoever runs the process, with no relative path in it.
    Own(Arc<Kubeconfig>),
}

/// A reader of the environment; tests have their own.
pub(crate) type Environment<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// The environment of the process.
pub(crate) fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Source {
    /// The source that the flags name; an empty flag is no flag.
    pub(crate) fn of(options: &ClientOptions, env: Environment<'_>) -> Result<Self, ConfigError> {
        let path = options.kubeconfig.clone().filter(|path| !path.as_os_str().is_empty());
        let master = options.master.clone().filter(|master| !master.is_empty());
        match (path, master) {
            (Some(path), master) => Ok(Self::File { path, master }),
            (None, Some(master)) => Ok(Self::Address(master)),
            (None, None) => {
                let (host, port) = (env("KUBERNETES_SERVICE_HOST"), env("KUBERNETES_SERVICE_PORT"));
                let (Some(host), Some(port)) = (host, port) else {
                    return Err(ConfigError::NotInCluster);
                };
                Ok(Self::Pod { folder: POD_FILES.into(), host, port })
            }
        }
    }

    /// Whether it may say something else later.
    pub(crate) fn may_change(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Pod { .. })
    }

    /// Reads the settings, with the proxy that the environment wants. Blocks on the file system.
    pub(crate) fn read(&self, env: Environment<'_>) -> Result<Settings, ConfigError> {
        let mut settings = match self {
            Self::File { path, master } => from_file(path, master.as_deref())?,
            Self::Address(master) => Settings::bare(parse_master(master, false)?),
            Self::Pod { folder, host, port } => of_pod(folder, host, port)?,
            Self::Own(file) => {
                let folder = Path::new("");
                kubeconfig::settings(file, folder, None).map_err(ConfigError::Object)?
            }
        };
        if settings.proxy.is_none() {
            settings.proxy = Proxy::from_environment(&settings.server, env)?;
        }
        Ok(settings)
    }

    /// Says where `problem` was found.
    pub(crate) fn blame(&self, problem: KubeconfigError) -> ConfigError {
        match self {
            Self::File { path, .. } => ConfigError::Kubeconfig { path: path.clone(), problem },
            Self::Pod { .. } => ConfigError::Pod(problem),
            Self::Address(_) | Self::Own(_) => ConfigError::Object(problem),
        }
    }
}

fn from_file(path: &Path, master: Option<&str>) -> Result<Settings, ConfigError> {
    let blame = |problem| ConfigError::Kubeconfig { path: path.to_owned(), problem };
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| blame(KubeconfigError::Read(Arc::new(error))))?;
    // The parser of YAML makes copies of its own, which stay.
    let text = Zeroizing::new(text);
    let folder = path.parent().unwrap_or(Path::new(""));
    let Some(master) = master else {
        return kubeconfig::parse(&text, folder, None).map_err(blame);
    };
    // Which scheme a bare address gets depends on what the file says of TLS.
    let mut settings = kubeconfig::parse(&text, folder, Some(Uri::default())).map_err(blame)?;
    settings.server = parse_master(master, settings.tls_is_configured())?;
    Ok(settings)
}

fn parse_master(address: &str, tls_is_configured: bool) -> Result<Uri, ConfigError> {
    settings::server(address, tls_is_configured)
        .map_err(|problem| ConfigError::Master { address: settings::shown(address), problem })
}

fn of_pod(folder: &Path, host: &str, port: &str) -> Result<Settings, ConfigError> {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let address = format!("https://{host}:{port}");
    let server = settings::server(&address, true)
        .map_err(|problem| ConfigError::Pod(kubeconfig::unusable_server(&address, problem)))?;
    let mut settings = Settings::bare(server);
    settings.trust = TrustSource::Bundle(Material::File("ca.crt", folder.join("ca.crt")));
    settings.user.token_file = Some(folder.join("token"));
    Ok(settings)
}

#[cfg(test)]
mod tests;
