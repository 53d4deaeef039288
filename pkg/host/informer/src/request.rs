//! The requests that an informer sends, as values, and the encodings: which one is asked for, and which
//! one an answer has. A type that the API server has protobuf of is asked for in it, unless the settings
//! say JSON; a proxy or an old server that answers in JSON is understood as well.

use std::sync::Arc;
use std::time::Duration;

use form_urlencoded::Serializer;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use kube::client::Body;
use kube_api::{Cached, Resource, View};

use crate::source::{FirstList, Source};

type Request = http::Request<Body>;

/// Path, selectors and encoding of all requests of a collection.
#[derive(Clone)]
pub(crate) struct Collection {
    path: String,
    labels: Option<Arc<str>>,
    fields: Option<Arc<str>>,
    accept: Accept,
}

impl Collection {
    /// The objects of a source, which the server keeps as `resource`.
    pub(crate) fn new(source: &Source, resource: &Resource, accept: Accept) -> Self {
        let path = resource.collection_path(source.namespace.as_deref());
        let (labels, fields) = (source.labels.clone(), source.fields.clone());
        Self { path, labels, fields, accept }
    }

    /// From now on in another form; false when that was asked for before.
    pub(crate) fn turn_to(&mut self, accept: Accept) -> bool {
        std::mem::replace(&mut self.accept, accept) != accept
    }

    /// A list as a stream, going on as a watch. A `resourceVersion` that is *not set* makes it
    /// consistent: the server first learns from etcd how far it has to be.
    pub(crate) fn streamed_list(&self, lifetime: Duration, truth: FirstList) -> Made {
        let query = [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")];
        match truth {
            FirstList::Consistent => self.watch(lifetime, &query),
            FirstList::Cached => self.watch(lifetime, &[query[0], query[1], FROM_CACHE]),
        }
    }

    /// A watch of what comes after that version.
    pub(crate) fn watch_from(&self, lifetime: Duration, version: u64) -> Made {
        self.watch(lifetime, &[("resourceVersion", &version.to_string())])
    }

    /// A page of a list: the first without a token, later ones by the token before.
    pub(crate) fn page(&self, limit: usize, token: Option<&str>, truth: FirstList) -> Made {
        let mut query = self.query();
        query.append_pair("limit", &limit.to_string());
        match (token, truth) {
            (Some(token), _) => query.append_pair("continue", token),
            (None, FirstList::Consistent) => &mut query,
            (None, FirstList::Cached) => query.append_pair(FROM_CACHE.0, FROM_CACHE.1),
        };
        self.get(&query.finish(), "list", self.accept.page)
    }

    /// The same objects, of which only metadata is asked for.
    pub(crate) fn metadata(&self) -> Self {
        Self { accept: Accept::METADATA, ..self.clone() }
    }

    /// The first page of the state at that version.
    pub(crate) fn page_at(&self, version: u64, limit: usize) -> Made {
        let mut query = self.query();
        query.append_pair("limit", &limit.to_string());
        query.append_pair("resourceVersion", &version.to_string());
        query.append_pair("resourceVersionMatch", "Exact");
        self.get(&query.finish(), "list", self.accept.page)
    }

    /// A page that has only the metadata of the object after `token`, or of the first one.
    pub(crate) fn metadata_of_one(&self, token: Option<&str>) -> Made {
        self.metadata().page(1, token, FirstList::Consistent)
    }

    /// A consistent list of one object's metadata, which tells the version of the collection.
    pub(crate) fn newest_version(&self) -> Made {
        self.get("limit=1", "list", self.accept.list_version())
    }

    fn watch(&self, lifetime: Duration, more: &[(&str, &str)]) -> Made {
        let query = self
            .query()
            .append_pair("watch", "true")
            .append_pair("allowWatchBookmarks", "true")
            .append_pair("timeoutSeconds", &lifetime.as_secs().to_string())
            .extend_pairs(more)
            .finish();
        self.get(&query, "watch", self.accept.stream)
    }

    fn query(&self) -> Serializer<'static, String> {
        let mut query = Serializer::new(String::new());
        let selectors = [("labelSelector", &self.labels), ("fieldSelector", &self.fields)];
        for (name, selector) in selectors {
            if let Some(selector) = selector {
                query.append_pair(name, selector);
            }
        }
        query
    }

    /// The verb goes where kube's own calls put it: the client's metrics read it there.
    fn get(&self, query: &str, verb: &'static str, accept: &'static str) -> Made {
        http::Request::get(format!("{}?{query}", self.path))
            .header(ACCEPT, accept)
            .extension(verb)
            .body(Body::empty())
    }
}

/// Lets the server answer with what it has in its cache.
const FROM_CACHE: (&str, &str) = ("resourceVersion", "0");

pub(crate) type Made = Result<Request, http::Error>;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json;q=0.9";
const PROTOBUF_STREAM: &str =
    "application/vnd.kubernetes.protobuf;stream=watch,application/json;q=0.9";

const METADATA_PAGE: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;q=0.9";
const METADATA_STREAM: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;q=0.9";

const METADATA_PAGE_PROTOBUF: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
     application/json;q=0.9";

/// Encoding that an informer asks for (`--kube-api-content-type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Protobuf of the types that have it.
    #[default]
    Protobuf,
    /// JSON only.
    Json,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

impl Encoding {
    /// Encoding of an answer by its `Content-Type`; JSON without one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match kind {
            Some(kind) if kind.starts_with("application/vnd.kubernetes.protobuf") => Self::Protobuf,
            _ => Self::Json,
        }
    }
}

/// Values of the `Accept` header for lists and watches of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) page: &'static str,
    pub(crate) stream: &'static str,
}

impl Accept {
    pub(crate) fn of<T: Cached>(format: Format) -> Self {
        match (T::VIEW, T::FROM_PROTOBUF, format) {
            (View::Metadata, ..) => Self::METADATA,
            (View::Object, Some(_), Format::Protobuf) => {
                Self { page: PROTOBUF, stream: PROTOBUF_STREAM }
            }
            (View::Object, ..) => Self { page: JSON, stream: JSON },
        }
    }

    /// Value for a list whose objects do not matter, in the encoding of the other requests.
    pub(crate) fn list_version(self) -> &'static str {
        if self.page == PROTOBUF { METADATA_PAGE_PROTOBUF } else { METADATA_PAGE }
    }

    /// Metadata of objects of any kind.
    pub(crate) const METADATA: Self = Self { page: METADATA_PAGE, stream: METADATA_STREAM };
}

#[cfg(test)]
mod tests;
