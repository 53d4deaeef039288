//! The engine: probes the clusters that flavours tell of, publishes, and writes. One task per
//! cluster; between them nothing is shared that anybody waits for.
//!
//! | file | holds |
//! |---|---|
//! | `flavour.rs`, `source.rs` | [`Flavour`], [`Source`]: what an object model is to the engine; where flavours plug in |
//! | `pipeline.rs` | [`Pipeline`]: from the object of a cluster to its [`Target`], the same for all flavours |
//! | `target.rs`, `registry.rs` | [`Target`], [`Registry`]: what a flavour tells, and where |
//! | `prober.rs` | [`ClusterProber`]: how one cluster is probed |
//! | `contact.rs`, `notices.rs` | what is known, and told, of the way to a cluster |
//! | `audit.rs`, `difference.rs` | where we would publish another thing than the objects say |
//! | `member_cluster.rs`, `busy.rs` | one cluster: its state, its prober, its task; whether that may be probing |
//! | `cluster_view.rs` | what is seen of a cluster by who looks at it |
//! | `driver.rs`, `job.rs` | the task of one cluster; one probe to make |
//! | `cluster_registry.rs` | all clusters, and what their tasks share |
//! | `permits.rs` | how many probes are under way at once |
//! | `pending.rs`, `status_write.rs`, `writer.rs` | [`Pending`]: what waits to be written; how; status writes |
//! | `sweeper.rs` | the stale, the stuck, and the cap |
//! | `ownership.rs` | which clusters are ours to probe and to write |
//! | `shard_coordinator.rs`, `lease_thread.rs` | sharing them with other replicas; the thread that does |
//! | `shard_claim.rs` | what a replica says to the others in its lease |
//! | `cluster_events.rs` | events |
//! | `metrics.rs`, `counters.rs`, `gauges.rs` | metrics counted along the way, and read at scrape time |
//! | `family.rs` | one metric family, made of a single reading |
//! | `open_files.rs` | whether enough files may be open |
//! | `page.rs` | the debug page |

mod audit;
mod busy;
mod cluster_events;
mod cluster_registry;
mod cluster_view;
mod contact;
mod counters;
mod difference;
mod driver;
mod family;
mod flavour;
mod gauges;
mod job;
mod lease_thread;
mod limits;
mod member_cluster;
mod metrics;
mod notices;
mod open_files;
mod ownership;
mod page;
mod pending;
mod permits;
mod pipeline;
mod prober;
mod registry;
mod shard_claim;
mod shard_coordinator;
mod source;
mod status_write;
mod sweeper;
mod target;
mod writer;

use std::sync::Arc;

use events::Recorder;
use futures::future::{pending, try_join_all};
use futures::try_join;
use health::Pace;
use manager::{Context, Failure, Stopped};
use model::Resource;
use objects::Dynamic;
use panics::contain;
use serving::{Access, Endpoints, Page};
use tracing::info;

use cluster_registry::ClusterRegistry;
use lease_thread::LeaseThread;
use ownership::{Ownership, Share};
use permits::Permits;
use writer::{Clients, Writer};

pub use contact::Contact;
pub(crate) use family::Family;
pub use flavour::{Cluster, Flavour, Statement};
pub use gauges::Exposed;
pub use limits::Limits;
pub use metrics::Metrics;
pub(crate) use notices::ends_soon;
pub use pending::Pending;
pub(crate) use pipeline::{
    HeldBack, ObjectModel, Pipeline, Resolve, Resolved, Seed, Supervision, identity, subscribe,
};
pub(crate) use prober::now;
pub use prober::{ClusterProber, Misconfigured};
pub use registry::{Overview, Registry};
pub use source::Source;
pub use status_write::{SchemaIsOurs, StatusWrite};
pub(crate) use target::is_another;
pub use target::{EndsTold, Target};

/// Paths of the debug page: that of every controller's, and a short one.
pub(crate) const PAGES: [&str; 2] = ["/debug/controllers/cluster-health", "/debug/clusterhealth"];

/// Runs the flavours until `context.stop`.
///
/// # Errors
/// A flavour failed, or a client cannot be made.
pub async fn run(
    context: Context,
    flavours: &[Arc<dyn Source>],
    limits: &Limits,
    metrics: &Metrics,
) -> Result<Stopped, Failure> {
    let mut context = context;
    if limits.audit {
        info!(
            "Auditing: member clusters are probed and nothing is written; the debug page, a metric and \
             this log tell where their objects lastingly say another thing"
        );
        // `rule:an-audit-writes-nothing`: flavours have events of their own.
        context.recorder = Recorder::mute();
    }
    // Without a client nobody can write.
    let clients = if limits.audit { Clients::new() } else { clients(&context, flavours)? };
    // Another one for each run: what a failed one claimed runs out.
    let identity = format!("{}_{:08x}", context.identity, rand::random::<u32>());
    // An audit writes no leases either, and is no rival of whoever writes.
    let share = (!limits.audit).then(|| {
        let fence = context.fence.clone();
        Arc::new(Share::new(&identity, limits, flavours.len(), fence))
    });
    if let Some(share) = share.clone() {
        context.health.add("cluster-health-shard", Endpoints::READY, move || share.check());
    }
    let ownership = share.as_ref().map(Ownership::of).unwrap_or_default();
    let pace = Pace::new(limits.write_rate, limits.write_burst);
    let fleet = Arc::new(ClusterRegistry::new(
        Permits::new(limits.concurrent_probes),
        Writer::new(clients, pace, ownership.clone()),
        metrics.counters.clone(),
        context.recorder.clone(),
        context.stop.child_token(),
        limits.audit,
        ownership,
    ));
    metrics.attach(&fleet);
    show(&context, &fleet);
    let mut lease = match share {
        Some(share) => Some(LeaseThread::start(&context, &share, &fleet).await?),
        None => None,
    };
    let ended = tokio::select! {
        ended = follow(&context, flavours, &fleet) => ended,
        lost = lease_lost(lease.as_mut()) => Err(lost),
    };
    fleet.stop.cancel();
    fleet.tasks.close();
    fleet.tasks.wait().await;
    fleet.end_all();
    if let Some(lease) = lease {
        lease.release().await;
    }
    ended?;
    Ok(Stopped::default())
}

async fn lease_lost(lease: Option<&mut LeaseThread>) -> Failure {
    match lease {
        Some(lease) => lease.lost().await,
        None => pending().await,
    }
}

/// Until the stop, or until a flavour or a service fails.
async fn follow(
    context: &Context,
    flavours: &[Arc<dyn Source>],
    fleet: &Arc<ClusterRegistry>,
) -> Result<(), Failure> {
    let writer = Arc::clone(&fleet.writer).run(fleet.counters.clone(), fleet.stop.clone());
    let sweeper = sweeper::run(Arc::clone(fleet), fleet.stop.clone());
    let watches = flavours.iter().map(|flavour| {
        let status: Arc<dyn Flavour> = Arc::clone(flavour) as _;
        let registry = Registry::new(status, Arc::clone(fleet));
        Arc::clone(flavour).watch(context.clone(), registry)
    });
    let watches = async {
        try_join_all(watches).await?;
        // The services end with the flavours.
        fleet.stop.cancel();
        Ok(())
    };
    try_join!(watches, serve(fleet, writer), serve(fleet, sweeper))?;
    Ok(())
}

/// A task that all clusters need: without it the controller fails, rather than to go on and write
/// nothing (`rule:panics-end-no-service`). It ends its work even when nobody waits for it any more.
async fn serve(
    fleet: &ClusterRegistry,
    service: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    match fleet.tasks.spawn(contain(service)).await {
        Ok(ended) => ended.map_err(Failure::Panicked),
        Err(lost) => Err(Failure::new(lost)),
    }
}

/// One client per kind, whose throttle lets everything pass: the pace is kept by the writer,
/// where a newer state can still take the place of an older one.
fn clients(context: &Context, flavours: &[Arc<dyn Source>]) -> Result<Clients, Failure> {
    let client = context.clients.for_purpose("cluster-health-status", (-1.0, 1))?;
    let of_kind = |kind: &'static Resource| {
        (&*kind.plural, context.objects_of::<Dynamic>(client.clone(), kind.clone()))
    };
    let kinds = flavours
        .iter()
        .flat_map(|flavour| std::iter::once(flavour.resource()).chain(flavour.further_kinds()));
    Ok(kinds.map(of_kind).collect())
}

fn show(context: &Context, fleet: &Arc<ClusterRegistry>) {
    for path in PAGES {
        let shown = Arc::downgrade(fleet);
        context.pages.add(Page::new(path, Access::Authorized, move |request| {
            let reply = match shown.upgrade() {
                Some(fleet) => page::answer(&fleet, &request),
                None => serving::reply::not_found(),
            };
            std::future::ready(reply)
        }));
    }
}

#[cfg(test)]
pub(crate) mod tests;
