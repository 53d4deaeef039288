//! [`Upstream`]: moto, asked for whatever a test wants to know.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::PATIENCE;

/// The server behind the proxy, or the proxy itself.
pub struct Upstream {
    address: String,
    client: Client<HttpConnector, Full<Bytes>>,
    /// The access key, which says what account is asked for.
    key: String,
}

impl Upstream {
    pub(super) fn new(port: u16) -> Self {
        let client = Client::builder(TokioExecutor::new())
            // moto closes a connection when it likes.
            .pool_max_idle_per_host(0)
            .build_http();
        Self { address: format!("127.0.0.1:{port}"), client, key: "AKIATEST".to_owned() }
    }

    /// The same server, asked with another access key, which has an account of its own.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        let (address, client) = (self.address.clone(), self.client.clone());
        Self { address, client, key: key.to_owned() }
    }

    pub(super) async fn forward(&self, head: &Parts, body: Bytes) -> (StatusCode, String) {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = head.method.clone();
        *request.uri_mut() =
            format!("http://{}{}", self.address, head.uri.path()).parse().expect("a URL");
        *request.headers_mut() = head.headers.clone();
        request.headers_mut().remove("transfer-encoding");
        self.send(request).await
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> (StatusCode, String) {
        let began = Instant::now();
        // A busy moto refuses a connection at times; nothing was sent then.
        let answer = loop {
            match self.client.request(request.clone()).await {
                Err(error) if error.is_connect() && began.elapsed() < PATIENCE => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                answer => break answer.expect("moto answers"),
            }
        };
        let status = answer.status();
        let body = answer.into_body().collect().await.expect("moto answers as a whole").to_bytes();
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    /// The answer of a call to EC2, as XML.
    pub async fn ec2(&self, region: &str, parameters: &[(&str, &str)]) -> String {
        self.ask("ec2", "2016-11-15", region, parameters).await
    }

    /// The answer of a call to STS, as XML.
    pub async fn sts(&self, region: &str, parameters: &[(&str, &str)]) -> String {
        self.ask("sts", "2011-06-15", region, parameters).await
    }

    /// The answer of a call to the API of classic load balancers, as XML.
    pub async fn elb(&self, region: &str, parameters: &[(&str, &str)]) -> String {
        self.ask("elasticloadbalancing", "2012-06-01", region, parameters).await
    }

    /// The answer of a call to the API of the second generation of load balancers, as XML.
    pub async fn elbv2(&self, region: &str, parameters: &[(&str, &str)]) -> String {
        self.ask("elasticloadbalancing", "2015-12-01", region, parameters).await
    }

    async fn ask(
        &self,
        service: &str,
        version: &str,
        region: &str,
        parameters: &[(&str, &str)],
    ) -> String {
        let (status, text) = self.try_ask(service, version, region, parameters).await;
        assert!(status.is_success(), "moto answers {parameters:?} with {status}: {text}");
        text
    }

    /// The answer of a call of this service, or the refusal.
    pub async fn try_ask(
        &self,
        service: &str,
        version: &str,
        region: &str,
        parameters: &[(&str, &str)],
    ) -> (StatusCode, String) {
        let form = form(version, parameters);
        let scope = format!("{}/20260101/{region}/{service}/aws4_request", self.key);
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://{}/", self.address))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("host", format!("{service}.{region}.amazonaws.com"))
            .header(
                "authorization",
                format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=none"),
            )
            .body(Full::new(Bytes::from(form)))
            .expect("a request");
        self.send(request).await
    }

    pub(super) async fn reset(&self) {
        let request = Request::post(format!("http://{}/moto-api/reset", self.address));
        let request = request.body(Full::new(Bytes::new())).expect("a request");
        let (status, text) = self.send(request).await;
        assert!(status.is_success(), "moto cannot be reset: {status} {text}");
    }
}

fn form(version: &str, parameters: &[(&str, &str)]) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("Version", version).extend_pairs(parameters).finish()
}
