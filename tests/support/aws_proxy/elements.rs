//! [`Element`]: an answer of moto, in which the proxy looks for ids and their resources.

use roxmltree::{Document, Node};

/// An element with its text and its children.
#[derive(Debug, Default)]
pub(super) struct Element {
    name: String,
    text: String,
    children: Vec<Self>,
}

impl Element {
    /// Reads an answer.
    pub(super) fn of(answer: &str) -> Self {
        Self::from(Document::parse(answer).expect("moto answers XML").root_element())
    }

    fn from(node: Node<'_, '_>) -> Self {
        Self {
            name: node.tag_name().name().to_owned(),
            text: node.text().unwrap_or_default().to_owned(),
            children: node.children().filter(Node::is_element).map(Self::from).collect(),
        }
    }

    /// Itself and what is in it, but what has ended.
    pub(super) fn all(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        let children = self.children.iter().filter(|child| !child.has_ended());
        Box::new(std::iter::once(self).chain(children.flat_map(Self::all)))
    }

    /// NAT gateways and instances are shown for an hour after their end.
    fn has_ended(&self) -> bool {
        let state = self.children.iter().find(|it| ["state", "instanceState"].contains(&&*it.name));
        let mut words = state.into_iter().flat_map(Self::all);
        words.any(|word| ["deleted", "terminated"].contains(&&*word.text))
    }

    /// Its own text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The texts of all elements of a name.
    pub(super) fn texts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.all().filter(move |it| it.name == name && !it.text.is_empty());
        named.map(|it| &*it.text)
    }

    /// Whether some element has this text.
    pub(super) fn names(&self, text: &str) -> bool {
        self.all().any(|it| it.text == text)
    }

    /// Elements with a child of this name.
    pub(super) fn with<'a>(&'a self, child: &'a str) -> impl Iterator<Item = &'a Self> {
        self.all().filter(move |it| it.children.iter().any(|it| it.name == child))
    }

    /// The element whose child of this name has this text.
    pub(super) fn whose<'a>(&'a self, child: &'a str, text: &str) -> Option<&'a Self> {
        self.with(child).find(|it| it.text_of(child) == text)
    }

    /// The text of a child; empty without one.
    pub(super) fn text_of(&self, child: &str) -> &str {
        let found = self.children.iter().find(|it| it.name == child);
        found.map_or("", |it| &it.text)
    }

    /// The children of the first element of a name.
    pub(super) fn set(&self, name: &str) -> &[Self] {
        self.all().find(|it| it.name == name).map_or(&[], |it| &it.children)
    }
}
