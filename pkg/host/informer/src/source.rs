//! [`Source`]: what an informer lists and watches, as a value. Informers of equal sources are one.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kube::Client;
use kube_api::{Kind, LabelSelector, Resource};

/// An API server with the client that reads from it. Two of one name are one server, so a member
/// cluster whose credentials changed is given another name.
#[derive(Clone)]
pub struct Server {
    name: Arc<str>,
    client: Client,
}

impl Server {
    /// The process's own API server, whose name is empty.
    pub fn own(client: Client) -> Self {
        Self::named("", client)
    }

    /// An API server with a name.
    pub fn named(name: impl Into<Arc<str>>, client: Client) -> Self {
        Self { name: name.into(), client }
    }

    /// Name of the server; empty for the process's own.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

impl PartialEq for Server {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Server {}

impl Hash for Server {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({:?})", self.name)
    }
}

/// How true the first list must be. Lists after it are always consistent:
/// deletions rest on them (rule:consistent-lists-only).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FirstList {
    /// State at the moment of the request.
    #[default]
    Consistent,
    /// State in the cache of the API server, which may lag behind; cheaper for the server.
    Cached,
}

/// A collection that is listed and watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// API server that has the objects.
    pub server: Server,
    /// Kind of the objects.
    pub kind: Kind,
    /// Namespace of the objects; `None` for all.
    pub namespace: Option<Arc<str>>,
    /// Label selector of the request: the server leaves out all other objects.
    pub labels: Option<Arc<str>>,
    /// Field selector.
    pub fields: Option<Arc<str>>,
    /// Each object is marked by whether this selects it ([`kube_api::Cached::set_selected`]); none is
    /// left out.
    pub selector: Option<LabelSelector>,
    /// See [`FirstList`].
    pub first_list: FirstList,
    /// Value that the label [`MANAGED_BY`] of the CRD of a custom resource must have. Without it
    /// the kind counts as not served. `None` takes any CRD.
    pub managed_by: Option<Arc<str>>,
}

/// The label by which a CRD says whose controllers its objects are for.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

impl Source {
    /// All objects of a kind on a server, whoever manages the kind.
    pub fn new(server: Server, kind: Kind) -> Self {
        let (namespace, labels, fields, selector, managed_by) = (None, None, None, None, None);
        let first_list = FirstList::default();
        Self { server, kind, namespace, labels, fields, selector, first_list, managed_by }
    }

    /// The CRDs of a server, which tell whether custom kinds are served.
    pub fn crds(server: Server) -> Self {
        Self::new(server, Kind::BuiltIn(Resource::CRDS))
    }

    /// Label of metrics that distinguishes the sources of one kind; empty for all objects of the
    /// process's own server.
    pub fn selection(&self) -> String {
        let server = Some(&self.server.name).filter(|name| !name.is_empty());
        let selector = self.selector.as_ref().map(|selector| selector.to_string().into());
        let parts = [
            ("server", server),
            ("namespace", self.namespace.as_ref()),
            ("labels", self.labels.as_ref()),
            ("fields", self.fields.as_ref()),
            ("selector", selector.as_ref()),
            ("managed-by", self.managed_by.as_ref()),
        ];
        let named = parts.iter().filter_map(|(name, value)| Some((name, (*value)?)));
        named.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn sources_are_equal_by_what_they_select_and_by_the_name_of_their_server() {
        let (one, _first) = testing::Server::new();
        let (other, _second) = testing::Server::new();
        let nodes = Kind::BuiltIn(Resource::cluster("", "v1", "Node", "nodes"));
        let source = |client: &Client| Source::new(Server::own(client.clone()), nodes.clone());
        assert_eq!(source(&one), source(&other));
        let mut selected = source(&one);
        selected.labels = Some("a=b".into());
        assert_ne!(selected, source(&one));
        assert_ne!(source(&one), Source::new(Server::named("member", one.clone()), nodes.clone()));
    }

    #[tokio::test]
    async fn a_selection_is_shown_in_words_and_is_empty_for_everything() {
        let (client, _server) = testing::Server::new();
        let kind = Kind::named("example.io", "Widget");
        let mut source = Source::new(Server::named("member", client.clone()), kind);
        source.namespace = Some("ns".into());
        source.labels = Some("a=b".into());
        assert_eq!(source.selection(), "server=member namespace=ns labels=a=b");
        assert_eq!(Source::crds(Server::own(client)).selection(), "");
    }
}
