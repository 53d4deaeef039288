//! [`BeatWatch`]: the Leases that member clusters renew in `--cluster-health-beats-namespace`, as signs of life while a
//! cluster cannot be probed (`rule:our-outage-is-not-theirs`).

use std::sync::Arc;
use std::time::Duration;

use health::{Beat, Beats, Renewal};
use informer::{Delta, Informer, Subscription};
use kube_api::Kind;
use manager::Context;
use objects::Object;
use parking_lot::Mutex;
use tokio::time::{MissedTickBehavior, interval};

use super::cluster_registry::ClusterRegistry;
use super::flavour::now;
use super::follow::{in_namespace, report};
use super::member_cluster::MemberCluster;
use crate::api::lease::{LEASES, Lease, renewal};

/// Grants the Leases.
const MANIFEST: &str =
    "config/rbac/namespaces/member-beats.yaml in --cluster-health-beats-namespace";
/// Without an event or bookmark for so long, the watch shows no renewals.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// Between looks at the watch and the guard.
const EVERY: Duration = Duration::from_secs(1);

/// What the Leases say. Without a namespace there are none.
#[derive(Default)]
pub(crate) struct BeatWatch(Option<Mutex<Beats>>);

impl BeatWatch {
    /// Nothing is known yet.
    pub(crate) fn new(is_on: bool) -> Self {
        Self(is_on.then(|| Mutex::new(Beats::new(now().monotonic))))
    }

    /// What the Lease of a cluster says now.
    pub(crate) fn of(&self, member: &MemberCluster) -> Beat {
        let Some(beats) = &self.0 else { return Beat::Absent };
        beats.lock().of(&lease_name(member), now().monotonic)
    }

    /// How long ago a cluster renewed its Lease.
    pub(crate) fn age(&self, member: &MemberCluster) -> Option<Duration> {
        self.0.as_ref()?.lock().age(&lease_name(member), now().monotonic)
    }

    /// A Lease was seen.
    pub(crate) fn renew(&self, name: &Arc<str>, said: Renewal) {
        if let Some(beats) = &self.0 {
            beats.lock().seen(name, said, now().monotonic);
        }
    }

    /// Whether renewals can be seen from now on.
    pub(crate) fn set_live(&self, is_live: bool) {
        if let Some(beats) = &self.0 {
            beats.lock().live(is_live, now().monotonic);
        }
    }

    fn gone(&self, name: &str) {
        if let Some(beats) = &self.0 {
            beats.lock().gone(name);
        }
    }
}

/// The name binds a Lease to one object: the rights of each cluster are to its own name.
fn lease_name(member: &MemberCluster) -> String {
    format!("{}-{}", member.flavour.name(), member.cluster.uid)
}

fn name_of(lease: &Object<Lease>) -> Arc<str> {
    let key = &*lease.metadata.key;
    key.rsplit_once('/').map_or(key, |(_, name)| name).into()
}

/// The watch of the Leases.
pub(crate) struct Leases {
    cache: Informer<Object<Lease>>,
    _changes: Subscription<Object<Lease>>,
}

impl Leases {
    /// Begins to watch the Leases in `namespace`.
    pub(crate) fn watch(
        context: &Context,
        namespace: &str,
        clusters: &Arc<ClusterRegistry>,
    ) -> Self {
        let source = in_namespace(context, Kind::BuiltIn(LEASES), Some(&namespace.to_owned()));
        let cache = context.informers.get_from::<Object<Lease>>(source);
        report(context, &cache, MANIFEST);
        let noting = Arc::clone(clusters);
        let changes = cache.subscribe(move |delta| match delta {
            Delta::Added(lease) | Delta::Updated { new: lease, .. } => {
                noting.beats.renew(&name_of(lease), renewal(lease));
            }
            Delta::Deleted(lease) => noting.beats.gone(&name_of(lease)),
            Delta::ListStarts | Delta::ListEnds => {}
        });
        Self { cache, _changes: changes }
    }

    /// Follows, until the stop, whether renewals can be seen: while the guard suspects our own network, or the watch
    /// shows nothing, no Lease grows older.
    pub(crate) async fn follow(self, clusters: Arc<ClusterRegistry>) {
        let stop = clusters.stop.clone();
        let mut rounds = interval(EVERY);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(rounds.tick()).await.is_some() {
            let Self { cache, .. } = &self;
            let is_live =
                cache.is_synced() && cache.silent_for() < SILENT_FOR && clusters.guard.is_clear();
            clusters.beats.set_live(is_live);
        }
    }
}
