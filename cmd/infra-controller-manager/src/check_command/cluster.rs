//! [`Cluster`]: what is asked of the API server. Reads, and reviews of access, which store nothing.

use std::time::Duration;

use client::AnswerError;
use http::{Request, StatusCode};
use kube::client::Body;
use kube_api::{ListMeta, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// For one answer, to its last byte.
const LIMIT: Duration = Duration::from_secs(30);
/// Objects of one page.
const PAGE: usize = 500;

/// The API server, asked as the identity of `--kubeconfig`.
pub(super) struct Cluster {
    client: kube::Client,
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<T>,
}

/// Discovery of one group and version.
#[derive(Deserialize)]
struct Served {
    resources: Vec<ServedKind>,
}

#[derive(Deserialize)]
struct ServedKind {
    name: String,
}

impl Cluster {
    pub(super) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// For reviews of access.
    pub(super) fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Whether it answers, and knows who asks.
    pub(super) async fn is_there(&self) -> Result<(), AnswerError> {
        self.get::<Value>("/version").await.map(drop)
    }

    /// An object; `None` when there is no such.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, AnswerError> {
        match self.get(path).await {
            Err(AnswerError::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Whether a kind is served.
    pub(super) async fn serves(&self, kind: &Resource) -> Result<bool, AnswerError> {
        let path = format!("/apis/{}/{}", kind.group, kind.version);
        let served: Option<Served> = self.find(&path).await?;
        Ok(served.is_some_and(|it| it.resources.iter().any(|it| it.name == *kind.plural)))
    }

    /// All objects of a collection, whose path ends with a `?` or a query.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Vec<T>, AnswerError> {
        let (mut all, mut next) = (Vec::new(), Box::<str>::default());
        loop {
            let from: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
            let page = format!("{path}&limit={PAGE}&continue={from}");
            let Page { metadata, items } = self.get(&page).await?;
            all.extend(items);
            next = metadata.token.unwrap_or_default();
            if next.is_empty() {
                return Ok(all);
            }
        }
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, AnswerError> {
        let answer =
            client::answer(&self.client, Request::get(path).body(Body::empty())?, LIMIT).await?;
        answer.decode()
    }
}
