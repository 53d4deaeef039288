//! The encodings of lists and watches: which one is asked for, and which one an answer has.
//!
//! A type that the API server has protobuf of is asked for in it, unless the settings say JSON;
//! the answer says which it is, so a proxy or an old server that answers in JSON is understood as
//! well.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use kube_api::{Cached, View};

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

/// What an informer asks for (`--kube-api-content-type`).
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
    /// What an answer says of itself; silence is JSON.
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

    /// For a list of which only the version matters, in the encoding of the others.
    pub(crate) fn list_version(self) -> &'static str {
        if self.page == PROTOBUF { METADATA_PAGE_PROTOBUF } else { METADATA_PAGE }
    }

    /// Metadata of objects of any kind.
    pub(crate) const METADATA: Self = Self { page: METADATA_PAGE, stream: METADATA_STREAM };
}

#[cfg(test)]
mod tests;
