//! The cheapest way to talk to the API server: one HTTP/2 connection, requests and replies as
//! bytes.
//!
//! Used by the clock, by the creation and deletion of Nodes, and by the raw loop. It has no
//! throttle, no retry and no buffer between caller and wire, so that what it measures is the
//! server.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::ConfigExt as _;
use kube::config::{AuthInfo, Config, KubeConfigOptions, Kubeconfig};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The media type of request bodies that create or ask for something.
pub(crate) const JSON: &str = "application/json";
/// The media type of replies for requests that need only the metadata.
pub(crate) const METADATA_ONLY: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// The media type of the PATCH that assigns a CIDR.
pub(crate) const STRATEGIC_MERGE: &str = "application/strategic-merge-patch+json";

/// One connection; clones share it.
#[derive(Clone)]
pub(crate) struct Api {
    wire: SendRequest<Full<Bytes>>,
    base: String,
    bearer: Option<HeaderValue>,
    accept: &'static str,
}

impl Api {
    /// Connects as the user of the kubeconfig, by its client certificate or token.
    pub(crate) async fn connect(kubeconfig: &Path) -> anyhow::Result<Self> {
        Self::open(config(kubeconfig).await?, None).await
    }

    /// Connects to the server of the kubeconfig by a bearer token alone: a client certificate on
    /// the same connection would win over it.
    pub(crate) async fn connect_with_token(kubeconfig: &Path, token: &str) -> anyhow::Result<Self> {
        let mut config = config(kubeconfig).await?;
        config.auth_info = AuthInfo::default();
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}"))?;
        bearer.set_sensitive(true);
        Self::open(config, Some(bearer)).await
    }

    async fn open(config: Config, bearer: Option<HeaderValue>) -> anyhow::Result<Self> {
        let host = config.cluster_url.host().context("the kubeconfig names no server")?.to_owned();
        let port = config.cluster_url.port_u16().unwrap_or(443);
        let mut tls = config.rustls_client_config().context("cannot read the credentials")?;
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let tcp = TcpStream::connect((host.as_str(), port))
            .await
            .with_context(|| format!("cannot connect to {host}:{port}"))?;
        tcp.set_nodelay(true)?;
        let name = ServerName::try_from(host.clone())?;
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, tcp).await?;
        let (wire, connection) = http2::Builder::new(TokioExecutor::new())
            // Wide enough for every event of a run: the server cuts off a watcher that it has to
            // wait for.
            .initial_stream_window_size(64 << 20)
            .initial_connection_window_size(64 << 20)
            .handshake(TokioIo::new(stream))
            .await?;
        // The connection ends when the last clone is dropped; an earlier error is returned by
        // the request under way.
        tokio::spawn(connection);
        Ok(Self { wire, base: format!("https://{host}:{port}"), bearer, accept: JSON })
    }

    /// The same connection, with replies of another media type.
    pub(crate) fn accepting(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    /// Sends one request and returns as soon as the head of the reply is there.
    pub(crate) async fn stream(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Bytes)>,
    ) -> anyhow::Result<http::Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(ACCEPT, self.accept)
            .header(USER_AGENT, concat!("bench-node-ipam/", env!("CARGO_PKG_VERSION")));
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        let bytes = match body {
            Some((media_type, bytes)) => {
                request = request.header(CONTENT_TYPE, media_type);
                bytes
            }
            None => Bytes::new(),
        };
        let mut wire = self.wire.clone();
        wire.ready().await?;
        Ok(wire.send_request(request.body(Full::new(bytes))?).await?)
    }

    /// Sends one request and returns the whole reply when its status is a success or one of `also`.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Bytes)>,
        also: &[StatusCode],
    ) -> anyhow::Result<Bytes> {
        let reply = self
            .stream(method.clone(), path, body)
            .await
            .with_context(|| format!("cannot send {method} {path}"))?;
        let status = reply.status();
        let bytes = reply.into_body().collect().await?.to_bytes();
        if status.is_success() || also.contains(&status) {
            return Ok(bytes);
        }
        let answer = String::from_utf8_lossy(&bytes);
        anyhow::bail!("{method} {path} was answered {status}: {answer}")
    }
}

async fn config(kubeconfig: &Path) -> anyhow::Result<Config> {
    let file = Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("cannot read kubeconfig {}", kubeconfig.display()))?;
    let options = KubeConfigOptions::default();
    Ok(Config::from_custom_kubeconfig(file, &options).await?)
}
