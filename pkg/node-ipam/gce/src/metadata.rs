//! [`Metadata`]: the server that tells a VM of Google who it is.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Uri};
use http_body_util::Full;

use crate::call_error::CallError;
use crate::channel::{Answer, Channel};

const HOST: &str = "metadata.google.internal";
/// It answers in milliseconds, or not at all where there is none.
const LIMIT: Duration = Duration::from_secs(10);

/// The metadata server.
#[derive(Clone)]
pub(crate) struct Metadata {
    channel: Channel,
    base: String,
}

impl Metadata {
    /// The usual one, or that of `GCE_METADATA_HOST`.
    pub(crate) fn find(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, CallError> {
        let host = env("GCE_METADATA_HOST").filter(|host| !host.is_empty());
        let base = format!("http://{}/computeMetadata/v1/", host.as_deref().unwrap_or(HOST));
        let uri: Uri = base.parse().map_err(|_| {
            CallError::not_sent("GCE_METADATA_HOST is not a host, or a host and a port")
        })?;
        Ok(Self { channel: Channel::to(&uri, env)?, base })
    }

    /// A token of the VM's default service account.
    pub(crate) async fn token(&self) -> Result<Answer, CallError> {
        self.get("instance/service-accounts/default/token").await
    }

    /// The project of the VM.
    pub(crate) async fn project(&self) -> Result<String, CallError> {
        let answer = self.get("project/project-id").await?;
        let text = std::str::from_utf8(&answer.body).unwrap_or_default().trim();
        if answer.status.is_success() && crate::config::is_project(text) {
            return Ok(text.to_owned());
        }
        let reason = format!("the metadata server answered {} without a project", answer.status);
        Err(CallError::not_sent(format!("{reason}; set project-id in the file of --cloud-config")))
    }

    async fn get(&self, path: &str) -> Result<Answer, CallError> {
        let request = Request::get(format!("{}{path}", self.base))
            .header("Metadata-Flavor", HeaderValue::from_static("Google"))
            .body(Full::<Bytes>::default())
            .map_err(CallError::not_sent)?;
        self.channel.ask(request, LIMIT).await
    }
}
