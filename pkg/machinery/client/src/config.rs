//! Where the API server is and who we are to it: `--kubeconfig`, `--master`, or the pod's own
//! service account (`host.md` 4.1). Read once at start, before anything is sent.

pub(crate) mod proxy;

use std::path::{Path, PathBuf};

use http::Uri;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::error::ConfigError;

/// What the command line and the build say about the process's clients.
#[derive(Clone, Debug)]
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

/// Resolves the options to one configuration. Reads files, no network.
pub(crate) async fn resolve(options: &ClientOptions) -> Result<kube::Config, ConfigError> {
    resolve_in(options, |name| std::env::var(name).ok()).await
}

/// [`resolve`] in the environment that `env` reads.
async fn resolve_in(
    options: &ClientOptions,
    env: impl Fn(&str) -> Option<String>,
) -> Result<kube::Config, ConfigError> {
    let kubeconfig = options.kubeconfig.as_deref().filter(|p| !p.as_os_str().is_empty());
    let master = options.master.as_deref().filter(|m| !m.is_empty());
    let (mut config, own_proxy) = match (kubeconfig, master) {
        (Some(path), _) => from_file(path).await?,
        (None, Some(_)) => (kube::Config::new(Uri::default()), false),
        (None, None) => (kube::Config::incluster_env().map_err(|e| not_in_cluster(&e))?, false),
    };
    if let Some(address) = master {
        config.cluster_url = parse_master(address, config.root_cert.is_some())?;
    }
    if !own_proxy {
        // kube asks whether the *proxy* is in NO_PROXY, and would send loopback through it.
        config.proxy_url = proxy::from_env(&config.cluster_url, env)?;
    }
    // Ours: kube's retry repeats a POST after a 504 (rust-guide.md 1).
    config.default_retry = false;
    Ok(config)
}

/// The place and nothing else: the parser's own words quote the file, which holds secrets.
fn not_yaml(error: &str) -> String {
    let number_after = |word: &str| {
        let rest = error.split_once(word)?.1;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<u32>().ok()
    };
    match (number_after("line "), number_after("column ")) {
        (Some(line), Some(column)) => {
            format!("it is not the YAML of a kubeconfig, see line {line}, column {column}")
        }
        _ => "it is not the YAML of a kubeconfig".to_owned(),
    }
}

/// The configuration of `path`, and whether it names a proxy of its own.
async fn from_file(path: &Path) -> Result<(kube::Config, bool), ConfigError> {
    let fail = |error: KubeconfigError| {
        let reason = match error {
            KubeconfigError::ReadConfig(source, _) => source.to_string(),
            KubeconfigError::Parse(error) => not_yaml(&error.to_string()),
            other => other.to_string(),
        };
        ConfigError::Kubeconfig { path: path.to_owned(), reason }
    };
    let file = Kubeconfig::read_from(path).map_err(fail)?;
    let cluster = current_cluster(&file).cloned();
    let mut config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(fail)?;
    // A CA given as a file is followed through its rotation; inline data cannot change.
    config.root_cert_file = cluster
        .as_ref()
        .filter(|c| c.certificate_authority_data.is_none())
        .and_then(|c| c.certificate_authority.as_ref().map(PathBuf::from));
    let own_proxy = cluster.and_then(|c| c.proxy_url).is_some_and(|p| !p.is_empty());
    Ok((config, own_proxy))
}

fn current_cluster(file: &Kubeconfig) -> Option<&kube::config::Cluster> {
    let context = file.current_context.as_ref()?;
    let context = file.contexts.iter().find(|c| &c.name == context)?.context.as_ref()?;
    file.clusters.iter().find(|c| c.name == context.cluster)?.cluster.as_ref()
}

/// A bare `host:port` gets a scheme the way stock gives it one: https once there is something to
/// trust.
fn parse_master(address: &str, has_trust: bool) -> Result<Uri, ConfigError> {
    let fail = |reason: String| ConfigError::Master { address: address.to_owned(), reason };
    let scheme = if has_trust { "https" } else { "http" };
    let full =
        if address.contains("://") { address.to_owned() } else { format!("{scheme}://{address}") };
    let uri: Uri = full.parse().map_err(|e: http::uri::InvalidUri| fail(e.to_string()))?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some_and(|h| !h.is_empty()) => Ok(uri),
        _ => Err(fail("it must be http://host:port or https://host:port".to_owned())),
    }
}

fn not_in_cluster(error: &InClusterError) -> ConfigError {
    ConfigError::NotInCluster(error.to_string())
}

#[cfg(test)]
mod tests;
