//! Facts that are logged once however often they occur: kinds that are dormant ([`Absences`]) and
//! objects that cannot be decoded ([`Unreadables`]).

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::IntCounter;
use tracing::{info, warn};

use crate::source::Source;

/// The kinds that were told to be dormant. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Absences(Arc<Mutex<HashSet<Absence>>>);

/// A kind, by whose label its CRD has to be ours, on the server of this name.
type Absence = (Arc<str>, Option<Arc<str>>, String);

impl Absences {
    /// Notes a dormant kind; true when that is not logged yet.
    pub(crate) fn begin(&self, source: &Source) -> bool {
        self.0.lock().insert(absence(source))
    }

    /// Notes a kind that is served; true when its absence was logged.
    pub(crate) fn end(&self, source: &Source) -> bool {
        self.0.lock().remove(&absence(source))
    }
}

fn absence(source: &Source) -> Absence {
    (source.server.name().into(), source.managed_by.clone(), source.kind.to_string())
}

/// An object that cannot be read, but for its identity.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) key: Arc<str>,
    pub(crate) uid: String,
    pub(crate) version: u64,
    pub(crate) cause: Box<dyn Error + Send + Sync>,
}

/// The keys that have been named.
#[derive(Default)]
pub(crate) struct Unreadables(Mutex<HashSet<Arc<str>>>);

impl Unreadables {
    pub(crate) fn note(&self, resource: &str, undecodable: &IntCounter, object: &Unreadable) {
        undecodable.inc();
        let Unreadable { key, cause, .. } = object;
        if self.0.lock().insert(Arc::clone(key)) {
            warn!(logger = "informer", resource, object = %key, error = %cause,
                "Object cannot be read and is skipped; its last good copy stays in use");
        }
    }

    /// The object can be read, or is gone.
    pub(crate) fn clear(&self, resource: &str, key: &str) {
        let mut named = self.0.lock();
        if !named.is_empty() && named.remove(key) {
            log_cleared(resource, key);
        }
    }

    /// A list has no other objects that cannot be read.
    pub(crate) fn retain(&self, resource: &str, listed: &HashSet<Arc<str>>) {
        self.0.lock().retain(|key| {
            let stays = listed.contains(key);
            if !stays {
                log_cleared(resource, key);
            }
            stays
        });
    }

    #[cfg(test)]
    pub(crate) fn named(&self) -> Vec<Arc<str>> {
        self.0.lock().iter().cloned().collect()
    }
}

fn log_cleared(resource: &str, object: &str) {
    info!(logger = "informer", resource, object, "Object can be read again, or is gone");
}

#[cfg(test)]
mod tests {
    use api_server_double::Reply;
    use kube_api::{Kind, Resource};

    use super::*;
    use crate::source::Server;

    /// rule:absent-kinds-are-dormant
    #[tokio::test]
    async fn an_absent_kind_is_logged_once_and_its_return_once_by_server_and_label() {
        let client = api_server_double::client(|_| Reply::Refused);
        let source = |server: &str, label: Option<&str>| {
            let kind = Kind::Custom(Resource::cluster("example.io", "v1", "Widget", "widgets"));
            let mut source = Source::new(Server::named(server, client.clone()), kind);
            source.managed_by = label.map(Arc::from);
            source
        };
        let (absences, own) = (Absences::default(), source("", Some("ours")));
        assert!(!absences.end(&own), "it was never away");
        assert!(absences.begin(&own) && !absences.clone().begin(&own));
        assert!(absences.begin(&source("member", Some("ours"))));
        assert!(absences.begin(&source("", None)));
        assert!(absences.end(&own) && !absences.end(&own));
        assert!(absences.begin(&own), "it is away again");
    }
}
