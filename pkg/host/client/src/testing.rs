//! What the tests of this crate share: services that answer from a script, a server on a loopback
//! port, and files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use kube::client::Body;
use parking_lot::Mutex;
use prometheus::{Registry, TextEncoder};

use crate::call::metrics::{ClientMetrics, RequestMetrics};
use crate::{ClientOptions, Clients, Profile};

pub(crate) mod server;

/// A body that needs no connection.
pub(crate) type Reply = Response<Full<Bytes>>;

pub(crate) fn reply(status: u16) -> Reply {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

pub(crate) fn reply_after(status: u16, retry_after: &'static str) -> Reply {
    let mut response = reply(status);
    response.headers_mut().insert("retry-after", http::HeaderValue::from_static(retry_after));
    response
}

pub(crate) fn request(method: Method, uri: &str) -> Request<Body> {
    let body = if method == Method::GET { Body::empty() } else { Body::from(b"{}".to_vec()) };
    Request::builder().method(method).uri(uri).body(body).unwrap()
}

/// Metrics of a client `work` of the server `api:6443`, and their page.
pub(crate) fn metrics() -> (Arc<ClientMetrics>, Registry) {
    let registry = Registry::new();
    let metrics = RequestMetrics::new(&registry).unwrap().for_client("api:6443", "work");
    (Arc::new(metrics), registry)
}

pub(crate) fn page(registry: &Registry) -> String {
    TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
}

/// Value of the sample `series` on the page; 0 if it is not there.
pub(crate) fn sample(registry: &Registry, series: &str) -> f64 {
    page(registry)
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
        .unwrap_or(0.0)
}

/// A file of its own in the temporary folder, gone when dropped.
pub(crate) struct TempFile(PathBuf);

impl TempFile {
    pub(crate) fn new(content: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("icm-client-{}-{n}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// A kubeconfig with one cluster and one user of these fields, in YAML's flow form.
pub(crate) fn kubeconfig_text(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
         clusters: [{{name: k, cluster: {{{cluster}}}}}]\n\
         users: [{{name: u, user: {{{user}}}}}]\n"
    )
}

/// The file of such a kubeconfig.
pub(crate) fn kubeconfig(cluster: &str, user: &str) -> TempFile {
    TempFile::new(&kubeconfig_text(cluster, user))
}

pub(crate) fn options() -> ClientOptions {
    ClientOptions {
        kubeconfig: None,
        master: None,
        product: "infra-controller-manager".to_owned(),
        version: "v0.1.0-dev".to_owned(),
        commit: "0123456789abcdef".to_owned(),
    }
}

pub(crate) fn profile() -> Profile {
    Profile::root("work")
}

pub(crate) async fn load(
    options: &ClientOptions,
    registry: &Registry,
) -> Result<Clients, crate::ConfigError> {
    Clients::load(options, &RequestMetrics::new(registry).unwrap()).await
}

/// A factory for a server that needs no credentials.
pub(crate) async fn clients(address: &str) -> (Clients, Registry) {
    let registry = Registry::new();
    let options = ClientOptions { master: Some(address.to_owned()), ..options() };
    (load(&options, &registry).await.unwrap(), registry)
}

/// A list that tests fill from inside services.
pub(crate) type Log<T> = Arc<Mutex<Vec<T>>>;
