//! The engine probes the clusters that flavours register, publishes their health and writes their
//! status. One task per cluster; no task waits for another one.
//!
//! | file | holds |
//! |---|---|
//! | `flavour.rs` | [`Flavour`], [`Target`], [`ClusterProber`], [`Pending`]: the interface of a flavour to the engine |
//! | `resolve.rs` | [`ObjectModel`], [`Resolve`]: the pure part of a flavour |
//! | `pipeline.rs`, `connections.rs` | from the object of a cluster to its [`Target`], and how each cluster is reached now |
//! | `credential_plugins.rs` | the exec plugins that print credentials |
//! | `facts.rs` | facts about clusters in addition to their health |
//! | `follow.rs` | watches what a flavour needs, and runs the pipeline |
//! | `shared_kind.rs` | watches a kind whose CRD and status belong to others |
//! | `flavour_registry.rs` | [`FlavourRegistry`]: where a flavour registers its clusters |
//! | `cluster_registry.rs` | [`ClusterRegistry`]: all clusters, and what their tasks share |
//! | `member_cluster.rs`, `difference.rs` | one cluster: its state, and in an audit where its object differs |
//! | `tasks.rs`, `probes.rs` | the task of one cluster, and the sweeper; one probe, and how many are under way |
//! | `writer.rs`, `field_owners.rs` | writes the pending statuses; what belongs to others in a status that is shared |
//! | `ownership.rs`, `shard_coordinator.rs`, `lease_thread.rs` | the clusters of this replica, and how replicas share them |
//! | `guard.rs`, `guard_targets.rs` | the guard against outages of this process, and what it asks in addition to the clusters |
//! | `beat_leases.rs`, `beats.rs` | the Leases that clusters renew |
//! | `checks.rs` | runs the checks of clusters, and watches which there are |
//! | `cluster_events.rs` | events |
//! | `metrics.rs`, `gauges.rs` | metrics counted as things happen, and metrics read at scrape time |
//! | `page.rs` | the debug page |

use std::sync::Arc;

use beat_leases::BeatLeases;
use beats::BeatWatch;
use checks::ChecksConfig;
use cluster_registry::ClusterRegistry;
use events::{ObjectRef, Recorder};
use futures::future::{BoxFuture, pending, try_join_all};
use futures::try_join;
use guard_targets::GuardStatus;
use kube_api::Resource;
use lease_thread::{LeaseThread, lease_name};
use manager::{Context, Failure, Stopped};
use objects::Dynamic;
use ownership::{Ownership, Share};
use probes::Permits;
use resilience::panics::contain;
use resilience::{Rate, TokenBucket, task};
use serving::{Access, Endpoints, Page};
use tracing::info;
use writer::{Clients, Writer};

use crate::check_document::ConfiguredChecks;

mod beat_leases;
mod beats;
mod checks;
mod cluster_events;
mod cluster_registry;
pub(crate) mod connections;
mod credential_plugins;
mod difference;
pub(crate) mod facts;
mod field_owners;
mod flavour;
mod flavour_registry;
pub(crate) mod follow;
mod gauges;
mod guard;
mod guard_targets;
mod lease_thread;
mod member_cluster;
mod metrics;
mod object_cache;
mod ownership;
mod page;
pub(crate) mod pipeline;
pub(crate) mod probes;
mod resolve;
mod shard_coordinator;
mod shared_kind;
mod tasks;
mod writer;

pub(crate) use cluster_events::ends_soon;
#[cfg(test)]
pub(crate) use connections::{Connection, ResolvedFrom};
pub(crate) use connections::{Connections, ObjectVersion};
pub(crate) use credential_plugins::{CredentialPlugins, Plugin, PluginCounter};
pub(crate) use field_owners::OWN_PREFIX;
#[cfg(test)]
pub(crate) use flavour::ClusterProber;
pub(crate) use flavour::now;
pub(crate) use flavour::{AnnouncedEnds, Contact, Flavour, MemberId, Statement};
pub(crate) use flavour::{Pending, SchemaIsOurs, StatusWrite};
pub(crate) use flavour_registry::{FlavourRegistry, Overview};
pub(crate) use follow::{
    Companions, CredentialKind, Followed, SecretScope, Watched, in_namespace, watch_clusters,
};
pub(crate) use gauges::{Exposed, Metrics};
pub(crate) use guard_targets::{Guarding, NetworkTargets, Reference};
pub(crate) use object_cache::Objects;
pub(crate) use pipeline::Work;
pub(crate) use resolve::{
    CredentialSource, Found, Members, ObjectModel, ReadCredentials, Resolve, Seed, Supervision,
    hash_of, identity,
};
pub(crate) use shared_kind::{SharedKind, watch_shared_clusters};

/// Paths of the debug page: that of every controller's, and a short one.
pub(crate) const PAGES: [&str; 2] = ["/debug/controllers/cluster-health", "/debug/clusterhealth"];

/// Runs the flavours until `context.stop`.
///
/// # Errors
/// A flavour failed, or a client cannot be made.
pub(crate) async fn run(
    context: Context,
    flavours: &[Arc<dyn Source>],
    limits: &Limits,
    metrics: &Metrics,
    guarding: Option<Guarding>,
) -> Result<Stopped, Failure> {
    let mut context = context;
    if limits.audit {
        info!(
            "Audit: member clusters are probed, but no status and no event is written; \
             /debug/controllers/cluster-health, clusterhealth_audit_differences and this log show \
             the objects whose stored health differs"
        );
        // `rule:an-audit-writes-nothing`: flavours have events of their own.
        context.recorder = Recorder::mute();
    }
    // An audit has no client, so that it cannot write.
    let clients = if limits.audit { Clients::new() } else { clients(&context, flavours)? };
    // Another one for each run: what a failed one claimed runs out.
    let drawn = resilience::draw().to_bits() & 0xffff_ffff;
    let identity = format!("{}_{drawn:08x}", context.identity);
    // An audit writes no leases either, and does not compete with the writing controller.
    let share = (!limits.audit).then(|| {
        let fence = context.fence.clone();
        Arc::new(Share::new(
            &identity,
            (limits.shards, &limits.shards_namespace),
            flavours.len(),
            fence,
        ))
    });
    if let Some(share) = share.clone() {
        context.health.add("cluster-health-shard", Endpoints::READY, move || share.check());
    }
    let ownership = share.as_ref().map(Ownership::of).unwrap_or_default();
    let pace = limits.write_rate.map(|rate| TokenBucket::new(rate, tokio::time::Instant::now()));
    let clusters = Arc::new(ClusterRegistry::new(
        Permits::new(limits.concurrent_probes),
        Writer::new(clients, pace, ownership.clone(), context.recorder.clone()),
        metrics.counters.clone(),
        context.recorder.clone(),
        context.stop.child_token(),
        limits.audit,
        ownership,
        GuardStatus::new(guarding.is_some()),
        BeatWatch::new(limits.beats_namespace.clone()),
        ConfiguredChecks::new(limits.checks_config.is_some()),
    ));
    metrics.attach(&clusters);
    show(&context, &clusters);
    let leases = limits.beats_namespace.as_ref();
    let leases = leases.map(|namespace| BeatLeases::watch(&context, namespace, &clusters));
    let checks = limits.checks_config.as_ref();
    let checks = checks.map(|key| ChecksConfig::watch(&context, key, &clusters));
    let guard = guarding.map(|guarding| (guarding, share.as_deref().map(lease_ref)));
    let mut lease = match share {
        Some(share) => Some(LeaseThread::start(&context, &share, &clusters).await?),
        None => None,
    };
    let ended = tokio::select! {
        biased;
        ended = watch_all(&context, flavours, &clusters, guard, (leases, checks)) => ended,
        lost = lease_lost(lease.as_mut()) => Err(lost),
    };
    clusters.stop.cancel();
    clusters.tasks.close();
    clusters.tasks.wait().await;
    clusters.end_all();
    if let Some(lease) = lease {
        lease.release().await;
    }
    ended?;
    Ok(Stopped::default())
}

/// The Lease of this replica, on which events about the whole replica are recorded.
fn lease_ref(share: &Share) -> ObjectRef {
    let name = lease_name(&share.name);
    ObjectRef::new("coordination.k8s.io/v1", "Lease", &share.namespace, &name, "")
}

async fn lease_lost(lease: Option<&mut LeaseThread>) -> Failure {
    match lease {
        Some(lease) => lease.lost().await,
        None => pending().await,
    }
}

/// Until the stop, or until a flavour or a service fails.
async fn watch_all(
    context: &Context,
    flavours: &[Arc<dyn Source>],
    clusters: &Arc<ClusterRegistry>,
    guard: Option<(Guarding, Option<ObjectRef>)>,
    (leases, checks): (Option<BeatLeases>, Option<ChecksConfig>),
) -> Result<(), Failure> {
    let stop = || clusters.stop.clone();
    let writer = Arc::clone(&clusters.writer).run(clusters.counters.clone(), stop());
    let sweeper = tasks::sweep(Arc::clone(clusters), stop());
    let guard =
        guard.map(|(guarding, lease)| guard::guard(Arc::clone(clusters), guarding, lease, stop()));
    let beats = leases.map(|leases| leases.follow(Arc::clone(clusters)));
    let checks = checks.map(|checks| checks.run(Arc::clone(clusters)));
    let watches = flavours.iter().map(|flavour| {
        let status: Arc<dyn Flavour> = Arc::clone(flavour) as _;
        let registry = FlavourRegistry::new(status, Arc::clone(clusters));
        Arc::clone(flavour).watch(context.clone(), registry)
    });
    let watches = async {
        try_join_all(watches).await?;
        // The services end with the flavours.
        clusters.stop.cancel();
        Ok(())
    };
    try_join!(
        watches,
        serve(clusters, Some(writer)),
        serve(clusters, Some(sweeper)),
        serve(clusters, guard),
        serve(clusters, beats),
        serve(clusters, checks),
    )?;
    Ok(())
}

/// Runs a task that all clusters need, if there is one: without it the controller fails instead of writing nothing
/// (`rule:panics-end-no-service`). The task ends its work even when the caller is dropped.
async fn serve(
    clusters: &ClusterRegistry,
    service: Option<impl Future<Output = ()> + Send + 'static>,
) -> Result<(), Failure> {
    let Some(service) = service else { return Ok(()) };
    match clusters.tasks.spawn(task(contain(service))).await {
        Ok(ended) => ended.map_err(Failure::Panicked),
        Err(lost) => Err(Failure::new(lost)),
    }
}

/// One client per kind, whose throttle lets everything pass: the pace is kept by the writer,
/// where a newer state can still take the place of an older one.
fn clients(context: &Context, flavours: &[Arc<dyn Source>]) -> Result<Clients, Failure> {
    let client = context.clients.for_purpose("cluster-health-status", (-1.0, 1))?;
    let of_kind = |kind: &'static Resource| {
        let objects = context.objects_of::<Dynamic>(client.clone(), kind.clone());
        (kind.into(), objects.keeping_no_answers())
    };
    let kinds = flavours
        .iter()
        .flat_map(|flavour| std::iter::once(flavour.resource()).chain(flavour.further_kinds()));
    Ok(kinds.map(of_kind).collect())
}

fn show(context: &Context, clusters: &Arc<ClusterRegistry>) {
    for path in PAGES {
        let shown = Arc::downgrade(clusters);
        context.pages.add(Page::new(path, Access::Authorized, move |request| {
            let reply = match shown.upgrade() {
                Some(clusters) => page::answer(&clusters, &request),
                None => serving::reply::not_found(),
            };
            std::future::ready(reply)
        }));
    }
}

/// A flavour with the objects that it follows.
pub(crate) trait Source: Flavour {
    /// Watches the objects, and registers them in `registry`, and the moment at which all are
    /// known ([`FlavourRegistry::filled`]), until `context.stop` is cancelled. While the kind is not
    /// served, or not for us, its informer is dormant and there is nothing to do.
    ///
    /// # Errors
    /// Something that only a fresh start of the controller can mend.
    fn watch(
        self: Arc<Self>,
        context: Context,
        registry: FlavourRegistry,
    ) -> BoxFuture<'static, Result<(), Failure>>;
}

#[cfg(test)]
pub(crate) mod tests;

/// The limits that the flags set for the engine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Probes under way at once; 0 has it computed.
    pub concurrent_probes: usize,
    /// Status writes per second, and at once after a quiet time; `None` leaves the limit to the API
    /// server.
    pub write_rate: Option<Rate>,
    /// Write neither status nor events.
    pub audit: bool,
    /// Replicas that share the clusters; 1 has the leader do everything.
    pub shards: usize,
    /// Namespace of the Leases of the replicas; replicas with the same namespace share the clusters.
    pub shards_namespace: String,
    /// Namespace of the Leases that members renew; `None` when they renew none.
    pub beats_namespace: Option<String>,
    /// The ConfigMap of the checks, as `namespace/name`; `None` when there are no checks.
    pub checks_config: Option<String>,
}
