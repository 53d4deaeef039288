//! [`watch_shared_clusters`]: watches objects of a kind whose CRD and status belong to others, as soon as the CRD lets
//! several programs share a status (`rule:a-shared-status-is-shared`). What the CRD says is judged by a pure function.

use std::sync::Arc;
use std::time::Duration;

use informer::{Delta, Subscription};
use kube_api::{Kind, Metadata, Resource};
use manager::{Context, Failure};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::{info, warn};
use transport::wipe;

use super::flavour_registry::FlavourRegistry;
use super::follow::{Companions, Followed, Watched, watch_clusters};
use super::resolve::Resolve;
use crate::secret_data::{ReadError, find};

/// For one read of the CRD.
const LIMIT: Duration = Duration::from_secs(10);
/// Between reads of the CRD, should its changes not be seen.
const EVERY: Duration = Duration::from_secs(30);

/// A kind whose CRD belongs to others.
#[derive(Clone, Copy)]
pub(crate) struct SharedKind {
    /// Name of the CRD.
    pub(crate) crd: &'static str,
    /// Its versions that are known, the preferred one first.
    pub(crate) versions: &'static [Resource],
}

/// Runs until the stop; `serve` takes the version that is watched and written from then on.
///
/// # Errors
/// The CRD serves another version now, or its status can be shared no longer: the controller starts again.
pub(crate) async fn watch_shared_clusters<R: Resolve>(
    flavour: Arc<R>,
    mut context: Context,
    registry: FlavourRegistry,
    (watched, kind): (Watched<R>, SharedKind),
    serve: impl FnOnce(&'static Resource) + Send,
    companions: impl FnOnce(&Followed<'_, R>) -> Companions + Send,
) -> Result<(), Failure> {
    // The CRD does not have the label of ours.
    context.informers = context.informers.of_any_owner();
    let (stop, crd) = (context.stop.clone(), Crd::new(&context, kind)?);
    let Some(version) = stop.run_until_cancelled(crd.shared(&registry)).await else {
        return Ok(());
    };
    serve(version);
    tokio::select! {
        ended = watch_clusters(flavour, context, registry, watched, companions) => ended,
        () = crd.changed(version) => Err(Failure::new(format!(
            "the CRD {} serves another version, or its status cannot be shared any more", kind.crd
        ))),
    }
}

/// The CRD of a shared kind, read whenever it may have changed.
struct Crd {
    kind: SharedKind,
    client: kube::Client,
    changed: Arc<Notify>,
    _changes: Subscription<Metadata>,
}

impl Crd {
    fn new(context: &Context, kind: SharedKind) -> Result<Self, Failure> {
        let source = context.informers.source(Kind::BuiltIn(Resource::CRDS));
        let changed = Arc::<Notify>::default();
        let notify = Arc::clone(&changed);
        let crds = context.informers.get_from::<Metadata>(source);
        let changes = crds.subscribe(move |delta| match delta {
            Delta::Added(crd) | Delta::Updated { new: crd, .. } | Delta::Deleted(crd) => {
                if *crd.key == *kind.crd {
                    notify.notify_one();
                }
            }
            Delta::ListStarts | Delta::ListEnds => {}
        });
        let client = context.clients.for_purpose("cluster-health-crds", (-1.0, 1))?;
        Ok(Self { kind, client, changed, _changes: changes })
    }

    async fn read(&self) -> Result<Served, ReadError> {
        let found = find(&self.client, &Resource::CRDS, self.kind.crd, LIMIT).await;
        let found = found.map_err(|error| error.of_right("get customresourcedefinitions"))?;
        let Some(body) = found else { return Ok(Served::Absent) };
        let crd = serde_json::from_slice(&body);
        wipe(body);
        let crd = crd.map_err(|error| ReadError::Unusable(error.to_string()))?;
        Ok(judge(&crd, self.kind.versions))
    }

    /// Until the CRD may be another one.
    async fn next(&self) {
        // Without a notification it is read all the same.
        timeout(EVERY, self.changed.notified()).await.ok();
    }

    /// The version to use, as soon as its status can be shared; until then the flavour is dormant.
    async fn shared(&self, registry: &FlavourRegistry) -> &'static Resource {
        let (crd, mut told) = (self.kind.crd, String::new());
        loop {
            let line = match self.read().await {
                Ok(Served::As(kind)) => return kind,
                Ok(Served::Absent) => "it is not installed, or serves no known version".to_owned(),
                Ok(Served::NotMergeable(field)) => format!(
                    "ConditionsNotMergeable: with {field} a write of the status would drop conditions of other \
                     programs; install a CRD with x-kubernetes-list-type: map and subresources.status"
                ),
                Err(error) => error.to_string(),
            };
            registry.filled();
            if line != told {
                if line.starts_with("it is not installed") {
                    info!(crd, "Kind is dormant: {line}");
                } else {
                    warn!(crd, "Kind is dormant: {line}");
                }
                told = line;
            }
            self.next().await;
        }
    }

    /// Until another version than this one has to be used, or none may be written. A CRD that is gone, or cannot be
    /// read, changes nothing: nothing can be written then.
    async fn changed(&self, version: &'static Resource) {
        loop {
            self.next().await;
            match self.read().await {
                Ok(Served::As(other)) if other.version != version.version => return,
                Ok(Served::NotMergeable(_)) => return,
                Ok(Served::As(_) | Served::Absent) | Err(_) => {}
            }
        }
    }
}

/// The answer of a CRD.
#[derive(Debug, PartialEq, Eq)]
enum Served {
    /// The version to use.
    As(&'static Resource),
    /// The field of the CRD that would let a write of ours drop conditions of others.
    NotMergeable(String),
    /// No known version is served.
    Absent,
}

fn judge(crd: &Value, versions: &'static [Resource]) -> Served {
    let in_crd = crd["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let served = versions.iter().find_map(|kind| {
        let is_it = |it: &&Value| it["name"] == *kind.version && it["served"] == true;
        Some((kind, in_crd.iter().find(is_it)?))
    });
    let Some((kind, version)) = served else { return Served::Absent };
    let refused = |field: &str| Served::NotMergeable(format!("{field} of {}", kind.version));
    if !version["subresources"]["status"].is_object() {
        return refused("subresources.status");
    }
    let status = &version["schema"]["openAPIV3Schema"]["properties"]["status"];
    let conditions = &status["properties"]["conditions"];
    if conditions["x-kubernetes-list-type"] != "map"
        || conditions["x-kubernetes-list-map-keys"] != json!(["type"])
    {
        return refused("x-kubernetes-list-type of status.conditions");
    }
    Served::As(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    static VERSIONS: [Resource; 2] = [
        Resource::namespaced("example.org", "v1alpha2", "Thing", "things"),
        Resource::namespaced("example.org", "v1alpha1", "Thing", "things"),
    ];

    fn version(name: &str, conditions: &Value) -> Value {
        let status = json!({"properties": {"conditions": conditions}});
        json!({
            "name": name, "served": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"properties": {"status": status}}},
        })
    }

    fn map() -> Value {
        json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})
    }

    #[test]
    fn the_newest_version_that_is_served_is_watched() {
        let crd = |versions: Value| json!({"spec": {"versions": versions}});
        let (old, new) = (version("v1alpha1", &map()), version("v1alpha2", &map()));
        let mut unserved = new.clone();
        unserved["served"] = json!(false);
        for (versions, chosen) in [
            (json!([old, new]), Some("v1alpha2")),
            (json!([old]), Some("v1alpha1")),
            (json!([old, unserved]), Some("v1alpha1")),
            (json!([version("v1", &map())]), None),
            (json!(null), None),
        ] {
            let kind = VERSIONS.iter().find(|kind| Some(&*kind.version) == chosen);
            let expected = kind.map_or(Served::Absent, Served::As);
            assert_eq!(judge(&crd(versions.clone()), &VERSIONS), expected, "{versions}");
        }
    }

    #[test]
    fn conditions_that_are_one_list_and_a_missing_subresource_are_refused() {
        let mut without = version("v1alpha1", &map());
        without["subresources"] = json!({});
        let by_name =
            json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
        for refused in [
            without,
            version("v1alpha1", &json!({})),
            version("v1alpha1", &json!({"x-kubernetes-list-type": "atomic"})),
            version("v1alpha1", &by_name),
        ] {
            let judged = judge(&json!({"spec": {"versions": [refused.clone()]}}), &VERSIONS);
            assert!(matches!(judged, Served::NotMergeable(_)), "{refused}: {judged:?}");
        }
    }
}
