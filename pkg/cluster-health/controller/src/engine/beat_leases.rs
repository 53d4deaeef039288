//! [`BeatLeases`]: watches the Leases in `--cluster-health-beats-namespace`, and follows whether their renewals can be
//! seen.

use std::sync::Arc;
use std::time::Duration;

use informer::{Delta, Informer, Subscription};
use kube_api::Kind;
use manager::Context;
use objects::Object;
use tokio::time::{MissedTickBehavior, interval};

use super::cluster_registry::ClusterRegistry;
use super::follow::{in_namespace, report};
use crate::api::{LEASES, Lease, renewal};

/// Grants the Leases.
const MANIFEST: &str =
    "config/rbac/namespaces/member-beats.yaml in --cluster-health-beats-namespace";
/// Without an event or bookmark for so long, the watch shows no renewals. A server sends the bookmarks of an idle watch 60
/// to 62 s apart.
const SILENT_FOR: Duration = Duration::from_secs(90);
/// Between looks at the watch and the guard.
const EVERY: Duration = Duration::from_secs(1);

fn name_of(lease: &Object<Lease>) -> Arc<str> {
    let key = &*lease.metadata.key;
    key.rsplit_once('/').map_or(key, |(_, name)| name).into()
}

/// The watch of the Leases.
pub(crate) struct BeatLeases {
    cache: Informer<Object<Lease>>,
    _changes: Subscription<Object<Lease>>,
}

impl BeatLeases {
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
            let shows_renewals = cache.is_synced() && is_heard(cache.silent_for());
            clusters.beats.set_live(shows_renewals && clusters.guard.is_clear());
        }
    }
}

/// Whether a watch without a word for so long still shows renewals.
fn is_heard(silent_for: Duration) -> bool {
    silent_for < SILENT_FOR
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An idle watch that counted as interrupted once a minute would give each Lease its grace for ever.
    #[test]
    fn a_watch_is_heard_between_two_bookmarks_and_not_much_longer() {
        for (seconds, expected) in [(0, true), (63, true), (89, true), (90, false)] {
            assert_eq!(is_heard(Duration::from_secs(seconds)), expected, "{seconds}");
        }
    }
}
