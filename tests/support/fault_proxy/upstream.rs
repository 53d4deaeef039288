//! The side towards the API server: two connection pools, with the proxy's certificate and without.

use anyhow::Context as _;
use bytes::Bytes;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderValue, Method, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};

use super::matching::Request;
use crate::pki::{Ca, Identity};

type Http = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

pub(super) struct Upstream {
    authority: String,
    with_certificate: Http,
    /// Client for requests with a token: with a certificate as well the server would use the
    /// certificate.
    without_certificate: Http,
}

impl Upstream {
    pub(super) fn new(url: &str, ca: &Ca, identity: &Identity) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(ca.der().clone())?;
        let tls = || ClientConfig::builder().with_root_certificates(roots.clone());
        let chain = vec![identity.certificate.clone()];
        Ok(Self {
            authority: url.strip_prefix("https://").context("an https URL")?.to_owned(),
            with_certificate: http(tls().with_client_auth_cert(chain, identity.key.clone_key())?),
            without_certificate: http(tls().with_no_client_auth()),
        })
    }

    /// Sends the request; returns when the head of the answer is there.
    pub(super) async fn send(&self, request: &Request) -> anyhow::Result<Response<Incoming>> {
        let target = match request.query.as_str() {
            "" => request.path.clone(),
            query => format!("{}?{query}", request.path),
        };
        let uri = Uri::builder()
            .scheme("https")
            .authority(self.authority.as_str())
            .path_and_query(PathAndQuery::try_from(target)?)
            .build()?;
        let mut forwarded = http::Request::new(Full::new(request.body.clone()));
        *forwarded.method_mut() = request.method.clone();
        *forwarded.uri_mut() = uri;
        *forwarded.headers_mut() = end_to_end(request.headers.clone());
        let http =
            if request.has_token() { &self.without_certificate } else { &self.with_certificate };
        Ok(http.request(forwarded).await?)
    }

    /// GET with the proxy's own identity.
    pub(super) async fn get(
        &self,
        path: &str,
        query: String,
        accept: &'static str,
    ) -> anyhow::Result<Response<Incoming>> {
        let accept = (header::ACCEPT, HeaderValue::from_static(accept));
        let request = Request {
            method: Method::GET,
            path: path.to_owned(),
            query,
            headers: HeaderMap::from_iter([accept]),
            body: Bytes::new(),
        };
        self.send(&request).await
    }
}

/// The headers without those of one connection, and without the lengths and hosts that hyper sets
/// itself.
pub(super) fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    for name in [
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::HOST,
        header::CONTENT_LENGTH,
    ] {
        headers.remove(name);
    }
    headers
}

fn http(tls: ClientConfig) -> Http {
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_all_versions()
        .build();
    Client::builder(TokioExecutor::new()).build(connector)
}
