//! [`Template`]: Nodes of one size, written in JSON or protobuf with their own name, UID, version and
//! pod CIDR. The other parts are made once and copied.

use super::manifest::{Facts, NodeSize, managed_fields, manifest};
use super::protobuf::{self, bytes, head, text};
use bytes::{BufMut as _, Bytes, BytesMut};

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Protobuf,
}

impl Encoding {
    /// The encoding that an `Accept` header prefers.
    pub(super) fn wanted_by(accept: &str) -> Self {
        if accept.starts_with(PROTOBUF) { Self::Protobuf } else { Self::Json }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => PROTOBUF,
        }
    }
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The common parts of all Nodes, in one encoding.
pub(super) struct Template {
    encoding: Encoding,
    /// The metadata after the resource version.
    metadata: Vec<u8>,
    status: Vec<u8>,
}

/// Annotation of the bookmark that ends a list.
const LIST_END: &str = "k8s.io/initial-events-end";

impl Template {
    pub(super) fn new(encoding: Encoding, size: NodeSize) -> Self {
        let node = manifest(size, "node");
        let managed = managed_fields(&node);
        let (metadata, status) = match encoding {
            Encoding::Json => {
                let metadata = format!(
                    r#""creationTimestamp":"2026-01-01T00:00:00Z","labels":{},"annotations":{},"managedFields":{managed}"#,
                    node["metadata"]["labels"], node["metadata"]["annotations"],
                );
                (metadata.into_bytes(), node["status"].to_string().into_bytes())
            }
            Encoding::Protobuf => (
                protobuf::metadata(&node["metadata"], &managed[0]),
                protobuf::status(&node["status"]),
            ),
        };
        Self { encoding, metadata, status }
    }

    /// A Node; `kind` makes it the event of a watch.
    pub(super) fn node(&self, facts: &Facts<'_>, kind: Option<&str>) -> Bytes {
        match self.encoding {
            Encoding::Json => self.json(facts, kind),
            Encoding::Protobuf => {
                let own = protobuf::Own::new(facts, self.metadata.len());
                let length = own.length(&self.metadata, &self.status);
                let (before, after) = protobuf::around(kind, "Node", length);
                let mut node = BytesMut::with_capacity(before.len() + length + after.len());
                node.put_slice(&before);
                own.write(&mut node, &self.metadata, &self.status);
                node.put_slice(&after);
                node.freeze()
            }
        }
    }

    /// A page of Nodes as the answer to a list.
    pub(super) fn page(&self, nodes: &[Facts<'_>], version: u64, next: &str) -> Bytes {
        match self.encoding {
            Encoding::Json => {
                let mut page = BytesMut::from(format!(
                    r#"{{"kind":"NodeList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":["#
                ).as_bytes());
                for (place, facts) in nodes.iter().enumerate() {
                    page.put_slice(if place > 0 { b"," } else { b"" });
                    page.put_slice(&self.json(facts, None));
                }
                page.put_slice(b"]}");
                page.freeze()
            }
            Encoding::Protobuf => {
                let mut list = BytesMut::from(&protobuf::list_meta(version, next)[..]);
                for facts in nodes {
                    let own = protobuf::Own::new(facts, self.metadata.len());
                    list.put_slice(&head(2, own.length(&self.metadata, &self.status)));
                    own.write(&mut list, &self.metadata, &self.status);
                }
                let (before, after) = protobuf::around(None, "NodeList", list.len());
                [&before[..], &list, &after].concat().into()
            }
        }
    }

    /// The bookmark that ends the list at the beginning of a watch.
    pub(super) fn end_of_list(&self, version: u64) -> Bytes {
        match self.encoding {
            Encoding::Json => format!(
                r#"{{"type":"BOOKMARK","object":{{"kind":"Node","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","annotations":{{"{LIST_END}":"true"}}}}}}}}{}"#,
                "\n"
            )
            .into(),
            Encoding::Protobuf => {
                let end = protobuf::entry(LIST_END, "true");
                let meta = [text(6, &version.to_string()), bytes(12, &end)].concat();
                let object = bytes(1, &meta);
                let (before, after) = protobuf::around(Some("BOOKMARK"), "Node", object.len());
                [before, object, after].concat().into()
            }
        }
    }

    /// The metadata of a Node, as the answer to its PATCH. Always JSON.
    pub(super) fn metadata_only(&self, facts: &Facts<'_>) -> Bytes {
        let mut object = BytesMut::new();
        object.put_slice(
            br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#,
        );
        self.json_metadata(&mut object, facts);
        object.put_u8(b'}');
        object.freeze()
    }

    fn json(&self, facts: &Facts<'_>, kind: Option<&str>) -> Bytes {
        let mut node = BytesMut::with_capacity(self.metadata.len() + self.status.len() + 512);
        if let Some(kind) = kind {
            node.put_slice(format!(r#"{{"type":"{kind}","object":"#).as_bytes());
        }
        node.put_slice(br#"{"kind":"Node","apiVersion":"v1","metadata":"#);
        self.json_metadata(&mut node, facts);
        if let Some(cidr) = facts.cidr {
            let spec = format!(r#","spec":{{"podCIDR":"{cidr}","podCIDRs":["{cidr}"]}}"#);
            node.put_slice(spec.as_bytes());
        } else {
            node.put_slice(br#","spec":{}"#);
        }
        node.put_slice(br#","status":"#);
        node.put_slice(&self.status);
        node.put_slice(if kind.is_some() { b"}}\n" } else { b"}" });
        node.freeze()
    }

    fn json_metadata(&self, into: &mut BytesMut, facts: &Facts<'_>) {
        let Facts { name, uid, version, .. } = facts;
        let own = format!(r#"{{"name":"{name}","uid":"{uid}","resourceVersion":"{version}","#);
        into.put_slice(own.as_bytes());
        into.put_slice(&self.metadata);
        into.put_u8(b'}');
    }
}
