//! Encodings of requests and answers.

use std::sync::Arc;

use http::HeaderValue;
use kube_api::{Decoding, Metadata, Node};
use serde::Deserialize;

use super::*;

/// An object without protobuf.
#[derive(Deserialize)]
struct Whole {
    key: Arc<str>,
}

impl Cached for Whole {
    const DECODING: Decoding = Decoding::Tolerant;

    fn key(&self) -> &Arc<str> {
        &self.key
    }

    fn uid(&self) -> &'static str {
        ""
    }

    fn resource_version(&self) -> u64 {
        0
    }
}

#[test]
fn an_answer_says_how_it_is_written_and_silence_is_json() {
    let of = |kind: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(kind).unwrap());
        Encoding::of(&headers)
    };
    for protobuf in [
        "application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf;stream=watch",
        "application/vnd.kubernetes.protobuf; charset=utf-8",
    ] {
        assert_eq!(of(protobuf), Encoding::Protobuf, "{protobuf}");
    }
    for json in ["application/json", "application/json;stream=watch", "text/html", ""] {
        assert_eq!(of(json), Encoding::Json, "{json}");
    }
    assert_eq!(Encoding::of(&HeaderMap::new()), Encoding::Json);
}

#[test]
fn nodes_are_asked_for_in_protobuf_with_json_as_second_choice() {
    let accept = Accept::of::<Node>(Format::Protobuf);
    assert_eq!(accept.page, "application/vnd.kubernetes.protobuf,application/json;q=0.9");
    let stream = "application/vnd.kubernetes.protobuf;stream=watch,application/json;q=0.9";
    assert_eq!(accept.stream, stream);
    let version = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;";
    assert!(accept.list_version().starts_with(version), "{}", accept.list_version());
    assert!(accept.list_version().ends_with("v=v1,application/json;q=0.9"));
}

#[test]
fn the_setting_json_turns_protobuf_off() {
    let accept = Accept::of::<Node>(Format::Json);
    assert_eq!((accept.page, accept.stream), ("application/json", "application/json"));
}

#[test]
fn whole_objects_are_asked_for_in_json_and_metadata_as_partial_objects() {
    let accept = Accept::of::<Whole>(Format::Protobuf);
    assert_eq!((accept.page, accept.stream), ("application/json", "application/json"));
    let accept = Accept::of::<Metadata>(Format::Protobuf);
    let page = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    assert_eq!(accept.page, format!("{page},application/json;q=0.9"));
    let stream = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    assert_eq!(accept.stream, format!("{stream},application/json;q=0.9"));
}
