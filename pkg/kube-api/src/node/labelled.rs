//! [`LabelledNode`]: a Node with its labels and taints, for allocators that choose its pool by
//! labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::{Node, WireNode};
use crate::protobuf::{Fields, Malformed, text};
use crate::{Cached, Decoding, FromProtobuf, Kind, StaticKind};

/// One Node. It has marks only while it has no pod CIDRs: no pool is chosen for it
/// afterwards, and so it takes hardly more room than a [`Node`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "WireNode<WireLabels, WireTaints>")]
pub struct LabelledNode {
    /// All but the marks.
    pub node: Node,
    /// Labels and taints; `None` when the Node has pod CIDRs.
    pub marks: Option<Arc<NodeMarks>>,
}

/// Labels and taints of a Node.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct NodeMarks {
    /// `metadata.labels`.
    pub labels: BTreeMap<Box<str>, Box<str>>,
    /// The keys of `spec.taints`.
    pub taints: Vec<Box<str>>,
}

impl LabelledNode {
    fn new(node: Node, marks: NodeMarks) -> Self {
        let marks = node.pod_cidrs.is_empty().then(|| Arc::new(marks));
        Self { node, marks }
    }
}

impl AsRef<Node> for LabelledNode {
    fn as_ref(&self) -> &Node {
        &self.node
    }
}

impl Cached for LabelledNode {
    const DECODING: Decoding = Node::DECODING;
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = Some(from_protobuf);

    fn key(&self) -> &Arc<str> {
        self.node.key()
    }

    fn uid(&self) -> &str {
        self.node.uid()
    }

    fn share_with(&mut self, older: &Self) {
        self.node.share_with(&older.node);
        if self.marks == older.marks {
            self.marks.clone_from(&older.marks);
        }
    }

    fn set_selected(&mut self, is_selected: bool) {
        self.node.set_selected(is_selected);
    }

    fn resource_version(&self) -> u64 {
        self.node.resource_version()
    }
}

impl StaticKind for LabelledNode {
    const KIND: Kind = Node::KIND;
}

type WireLabels = Option<BTreeMap<Box<str>, Box<str>>>;
type WireTaints = Option<Vec<WireTaint>>;

#[derive(Deserialize)]
struct WireTaint {
    key: Box<str>,
}

impl From<WireNode<WireLabels, WireTaints>> for LabelledNode {
    fn from(wire: WireNode<WireLabels, WireTaints>) -> Self {
        let (node, labels, taints) = wire.into_parts();
        let taints = taints.unwrap_or_default().into_iter().map(|taint| taint.key).collect();
        Self::new(node, NodeMarks { labels: labels.unwrap_or_default(), taints })
    }
}

fn from_protobuf(message: &[u8]) -> Result<LabelledNode, Malformed> {
    let node = super::from_protobuf(message)?;
    let mut marks = NodeMarks::default();
    if node.pod_cidrs.is_empty() {
        for field in Fields::of(message) {
            let field = field?;
            match field.number {
                1 => read_labels(field.bytes()?, &mut marks)?,
                2 => read_taints(field.bytes()?, &mut marks)?,
                _ => {}
            }
        }
    }
    Ok(LabelledNode::new(node, marks))
}

/// `ObjectMeta`: labels are field 11, each entry a key (1) and a value (2).
fn read_labels(metadata: &[u8], marks: &mut NodeMarks) -> Result<(), Malformed> {
    for field in Fields::of(metadata) {
        let field = field?;
        if field.number == 11 {
            let (key, value) = (text(field.bytes()?, 1)?, text(field.bytes()?, 2)?);
            marks.labels.insert(key.into(), value.into());
        }
    }
    Ok(())
}

/// `NodeSpec`: taints are field 5, the key of a taint is field 1.
fn read_taints(spec: &[u8], marks: &mut NodeMarks) -> Result<(), Malformed> {
    for field in Fields::of(spec) {
        let field = field?;
        if field.number == 5 {
            marks.taints.push(text(field.bytes()?, 1)?.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
