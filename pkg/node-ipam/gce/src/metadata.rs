//! [`Metadata`]: the server that tells a VM of Google who it is.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use tokio::time::{Instant, timeout_at};
use transport::{Endpoint, ErrorChain, Protocol, Proxy, TlsConfigs, Trust, Wire, retry_after};

use super::error::GceError;

const HOST: &str = "metadata.google.internal";
/// Time limit of the metadata server, which answers in milliseconds on a VM and never elsewhere.
const LIMIT: Duration = Duration::from_secs(10);

/// The metadata server.
#[derive(Clone)]
pub(crate) struct Metadata {
    channel: Channel,
    base: String,
}

impl Metadata {
    /// The usual one, or that of `GCE_METADATA_HOST`.
    pub(crate) fn find(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, GceError> {
        let host = env("GCE_METADATA_HOST").filter(|host| !host.is_empty());
        let base = format!("http://{}/computeMetadata/v1/", host.as_deref().unwrap_or(HOST));
        let uri: Uri = base.parse().map_err(|_| {
            GceError::not_sent("GCE_METADATA_HOST is not a host, or a host and a port")
        })?;
        Ok(Self { channel: Channel::to(&uri, env)?, base })
    }

    /// A token of the VM's default service account.
    pub(crate) async fn token(&self) -> Result<Answer, GceError> {
        self.get("instance/service-accounts/default/token").await
    }

    /// The project of the VM.
    pub(crate) async fn project(&self) -> Result<String, GceError> {
        let answer = self.get("project/project-id").await?;
        let text = std::str::from_utf8(&answer.body).unwrap_or_default().trim();
        if answer.status.is_success() && super::config::is_project(text) {
            return Ok(text.to_owned());
        }
        let reason = format!("the metadata server answered {} without a project", answer.status);
        Err(GceError::not_sent(format!("{reason}; set project-id in the file of --cloud-config")))
    }

    async fn get(&self, path: &str) -> Result<Answer, GceError> {
        let request = Request::get(format!("{}{path}", self.base))
            .header("Metadata-Flavor", HeaderValue::from_static("Google"))
            .body(Full::<Bytes>::default())
            .map_err(GceError::not_sent)?;
        self.channel.ask(request, LIMIT).await
    }
}

/// More than a page of 500 VMs with eight interfaces each.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;

/// The connections to one server; clones share them.
#[derive(Clone)]
pub(crate) struct Channel(Wire);

/// Answer of a server. It cannot be printed: the body may be a token.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Bytes,
}

impl Channel {
    /// Connections to the server of this address, through the proxy that the environment names.
    /// No network yet.
    pub(crate) fn to(server: &Uri, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, GceError> {
        let (configs, trust) = (TlsConfigs::default(), Trust::system());
        let endpoint = Endpoint::new(&configs, &trust, None, Protocol::Negotiated);
        let mut endpoint = endpoint.map_err(GceError::not_sent)?;
        let proxy = Proxy::from_environment(server, env)
            .map_err(|error| GceError::not_sent(format!("HTTPS_PROXY cannot be used: {error}")))?;
        if let Some(proxy) = proxy {
            let through = endpoint.through(proxy, &configs, &trust);
            endpoint = through.map_err(GceError::not_sent)?;
        }
        Ok(Self(transport::open(&endpoint)))
    }

    /// Sends a request, whose address is absolute, and reads the whole answer.
    pub(crate) async fn ask(
        &self,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<Answer, GceError> {
        let deadline = Instant::now() + limit;
        let late = |_| GceError::unanswered(format!("no answer within {limit:?}"));
        let answer = timeout_at(deadline, self.0.send(request)).await.map_err(late)?;
        let (head, body) = answer
            .map_err(|error| {
                let reason = ErrorChain(&error).to_string();
                if error.is_unprocessed() {
                    GceError::not_sent(reason)
                } else {
                    GceError::unanswered(reason)
                }
            })?
            .into_parts();
        let body = timeout_at(deadline, Limited::new(body, LARGEST_ANSWER).collect()).await;
        let body = body.map_err(late)?.map_err(|error| GceError::unanswered(&error))?;
        let retry_after = retry_after(&head.headers);
        Ok(Answer { status: head.status, retry_after, body: body.to_bytes() })
    }
}
