//! [`Absences`]: which kinds the log has told to be dormant, so that it says so once, however many
//! informers of a kind wait for it.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::source::Source;

/// The kinds that were told to be dormant. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Absences(Arc<Mutex<HashSet<Absence>>>);

/// A kind, by whose label its CRD has to be ours, on the server of this name.
type Absence = (Arc<str>, Option<Arc<str>>, String);

impl Absences {
    /// The kind is dormant; whether that is to be told.
    pub(crate) fn begin(&self, source: &Source) -> bool {
        self.0.lock().insert(absence(source))
    }

    /// The kind is served; whether that is to be told.
    pub(crate) fn end(&self, source: &Source) -> bool {
        self.0.lock().remove(&absence(source))
    }
}

fn absence(source: &Source) -> Absence {
    (source.server.name().into(), source.managed_by.clone(), source.kind.to_string())
}

#[cfg(test)]
mod tests {
    use kube::Client;
    use kube::client::Body;
    use kube_api::{Kind, Resource};

    use super::*;
    use crate::source::Server;

    /// rule:absent-kinds-are-dormant
    #[tokio::test]
    async fn a_kind_is_told_to_be_away_once_and_to_be_back_once_by_server_and_label() {
        let nobody = tower::service_fn(async |_: http::Request<Body>| {
            Ok::<_, std::convert::Infallible>(http::Response::new(Body::empty()))
        });
        let client = Client::new(nobody, "default");
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
