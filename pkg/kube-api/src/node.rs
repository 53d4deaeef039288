//! The Node of core/v1 as the controllers see it, and [`PodCidrs`]: the texts of its pod CIDRs, mostly
//! one, in little memory.

mod cloud;
mod labelled;

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::kind::share;
use super::metadata::{presence, resource_version, shared_text};
use crate::protobuf::{Fields, Malformed, Meta};
use crate::{Cached, Decoding, FromProtobuf, Kind, Resource, StaticKind};

pub use cloud::CloudNode;
pub use labelled::{LabelledNode, NodeMarks};

/// One Node: in an informer's store some 250 bytes with its name and UID.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "WireNode<IgnoredAny, IgnoredAny>")]
pub struct Node {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: u64,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// Whether the selector of its source selects it; true without one.
    pub is_selected: bool,
    /// `spec.podCIDRs`; `[spec.podCIDR]` when the list is missing or empty.
    pub pod_cidrs: PodCidrs,
}

impl AsRef<Node> for Node {
    fn as_ref(&self) -> &Node {
        self
    }
}

impl Cached for Node {
    // One that cannot be read may hold a block.
    const DECODING: Decoding = Decoding::Strict;
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = Some(from_protobuf);

    fn key(&self) -> &Arc<str> {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn share_with(&mut self, older: &Self) {
        share(&mut self.name, &older.name);
        share(&mut self.uid, &older.uid);
    }

    fn set_selected(&mut self, is_selected: bool) {
        self.is_selected = is_selected;
    }

    fn resource_version(&self) -> u64 {
        self.resource_version
    }
}

impl StaticKind for Node {
    const KIND: Kind = Kind::BuiltIn(Resource::cluster("", "v1", "Node", "nodes"));
}

/// A Node in JSON, of whose labels and taints `L` and `T` are read.
#[derive(Deserialize)]
struct WireNode<L: Default, T> {
    metadata: WireMeta<L>,
    #[serde(default)]
    spec: WireSpec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMeta<L> {
    #[serde(deserialize_with = "shared_text")]
    name: Arc<str>,
    #[serde(deserialize_with = "shared_text")]
    uid: Arc<str>,
    #[serde(deserialize_with = "resource_version")]
    resource_version: u64,
    #[serde(default, deserialize_with = "presence")]
    deletion_timestamp: bool,
    #[serde(default)]
    labels: L,
}

#[derive(Default, Deserialize)]
struct WireSpec<T> {
    #[serde(default, rename = "podCIDR")]
    pod_cidr: Option<Box<str>>,
    #[serde(default, rename = "podCIDRs")]
    pod_cidrs: Option<Vec<Box<str>>>,
    #[serde(default)]
    taints: T,
}

impl<L: Default, T> WireNode<L, T> {
    fn into_parts(self) -> (Node, L, T) {
        let Self { metadata, spec } = self;
        let node = Node {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            deleting: metadata.deletion_timestamp,
            is_selected: true,
            pod_cidrs: list_or_single(&spec.pod_cidrs.unwrap_or_default(), spec.pod_cidr),
        };
        (node, metadata.labels, spec.taints)
    }
}

impl From<WireNode<IgnoredAny, IgnoredAny>> for Node {
    fn from(wire: WireNode<IgnoredAny, IgnoredAny>) -> Self {
        wire.into_parts().0
    }
}

fn list_or_single<S: AsRef<str>>(list: &[S], single: Option<S>) -> PodCidrs {
    if list.is_empty() {
        single.into_iter().filter(|text| !text.as_ref().is_empty()).collect()
    } else {
        list.iter().collect()
    }
}

/// Reads a `Node` (`k8s.io/api/core/v1/generated.proto`): metadata is field 1, spec field 2.
fn from_protobuf(message: &[u8]) -> Result<Node, Malformed> {
    let (mut meta, mut single, mut list) = (None, None, Vec::new());
    for field in Fields::of(message) {
        let field = field?;
        match field.number {
            1 => meta = Some(Meta::read(field.bytes()?)?),
            2 => read_spec(field.bytes()?, &mut single, &mut list)?,
            _ => {}
        }
    }
    let meta = meta.ok_or(Malformed("a Node without metadata"))?;
    Ok(Node {
        name: meta.name,
        uid: meta.uid,
        resource_version: meta.resource_version,
        deleting: meta.deleting,
        is_selected: true,
        pod_cidrs: list_or_single(&list, single),
    })
}

/// `NodeSpec`: podCIDR is field 1, podCIDRs field 7.
fn read_spec<'a>(
    message: &'a [u8],
    single: &mut Option<&'a str>,
    list: &mut Vec<&'a str>,
) -> Result<(), Malformed> {
    for field in Fields::of(message) {
        let field = field?;
        match field.number {
            1 => *single = Some(field.text()?),
            7 => list.push(field.text()?),
            _ => {}
        }
    }
    Ok(())
}

/// One text of up to so many bytes, as every IPv4 CIDR is, needs no memory of its own.
const SHORT: usize = 22;

/// Texts as they came: whether each is a CIDR is the reader's question.
#[derive(Clone, PartialEq, Eq)]
pub struct PodCidrs(Texts);

/// A text is kept in one way only, so that equal texts are equal.
#[derive(Clone, PartialEq, Eq)]
enum Texts {
    /// The only text; zeros after it.
    Short { length: u8, bytes: [u8; SHORT] },
    /// All others.
    Long(Box<[Box<str>]>),
}

impl PodCidrs {
    /// True when there is no text at all.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Texts::Long(texts) if texts.is_empty())
    }

    /// The texts, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (short, long) = match &self.0 {
            Texts::Short { length, bytes } => {
                (std::str::from_utf8(&bytes[..usize::from(*length)]).ok(), &[][..])
            }
            Texts::Long(texts) => (None, &**texts),
        };
        short.into_iter().chain(long.iter().map(AsRef::as_ref))
    }
}

impl Default for PodCidrs {
    fn default() -> Self {
        Self(Texts::Long(Box::default()))
    }
}

impl<S: AsRef<str>> FromIterator<S> for PodCidrs {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Self {
        let mut texts = texts.into_iter();
        let (first, second) = (texts.next(), texts.next());
        if let (Some(only), None) = (&first, &second)
            && let Some(short) = Texts::short(only.as_ref())
        {
            return Self(short);
        }
        let all = first.into_iter().chain(second).chain(texts);
        Self(Texts::Long(all.map(|text| text.as_ref().into()).collect()))
    }
}

impl Texts {
    /// None when it is too long.
    fn short(text: &str) -> Option<Self> {
        let mut bytes = [0; SHORT];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self::Short { length: u8::try_from(text.len()).ok()?, bytes })
    }
}

impl fmt::Debug for PodCidrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
