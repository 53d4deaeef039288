//! Runs the checks of members while they answer, 32 at a time and one of each member, and watches the ConfigMap of
//! `--cluster-health-checks-config`. No probe waits for a check.

use std::sync::Arc;
use std::time::Duration;

use events::{EventType, Recorder};
use futures::join;
use health::{CheckReport, CheckStatus, Moment};
use informer::{Delta, Informer, Subscription};
use kube_api::Kind;
use manager::Context;
use objects::Object;
use resilience::panics::{contain, contain_call};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info, warn};

use super::cluster_registry::ClusterRegistry;
use super::flavour::now;
use super::follow::{in_namespace, report};
use super::member_cluster::MemberCluster;
use super::probes::CheckRun;
use super::resolve::identity;
use crate::api::{CONFIG_MAPS, ConfigMap};
use crate::check_document::{ConfiguredChecks, Document};

/// Grants the ConfigMap.
const MANIFEST: &str = "config/rbac/namespaces/health-checks.yaml in its namespace";
/// The entry of the ConfigMap.
const ENTRY: &str = "checks.yaml";
/// Runs under way at once.
const AT_ONCE: usize = 32;
/// Between looks for checks that are due.
const EVERY: Duration = Duration::from_secs(1);

/// The watch of the ConfigMap.
pub(crate) struct ChecksConfig {
    cache: Informer<Object<ConfigMap>>,
    _changes: Subscription<Object<ConfigMap>>,
}

impl ChecksConfig {
    /// Begins to watch the ConfigMap `key`, as `namespace/name`.
    pub(crate) fn watch(context: &Context, key: &str, clusters: &Arc<ClusterRegistry>) -> Self {
        let (namespace, name) = key.split_once('/').unwrap_or_default();
        let namespace = namespace.to_owned();
        let mut source = in_namespace(context, Kind::BuiltIn(CONFIG_MAPS), Some(&namespace));
        source.fields = Some(format!("metadata.name={name}").into());
        let cache = context.informers.get_from::<Object<ConfigMap>>(source);
        report(context, &cache, MANIFEST);
        let (of, recorder) = (Arc::clone(clusters), context.recorder.clone());
        let changes = cache.subscribe(move |delta| match delta {
            Delta::Added(object) | Delta::Updated { new: object, .. } => {
                take(&of.checks, object, &recorder);
            }
            Delta::Deleted(object) => {
                let config = &*object.metadata.key;
                info!(
                    config,
                    "The ConfigMap of --cluster-health-checks-config is gone: there are no checks"
                );
                of.checks.set(Document::default());
            }
            Delta::ListStarts | Delta::ListEnds => {}
        });
        Self { cache, _changes: changes }
    }

    /// Runs the checks until the stop.
    pub(crate) async fn run(self, clusters: Arc<ClusterRegistry>) {
        let stop = clusters.stop.clone();
        let first = await_first(&self.cache, &clusters.checks);
        join!(stop.run_until_cancelled(first), run(Arc::clone(&clusters)));
    }
}

/// Awaits the first list: an absent ConfigMap has no checks. One that may not be read, or cannot be used, leaves all
/// conditions and gates as they were before a restart.
pub(super) async fn await_first(cache: &Informer<Object<ConfigMap>>, checks: &ConfiguredChecks) {
    cache.synced_or_denied().await;
    if !cache.is_synced() && !checks.are_known() {
        checks.note_unusable();
    }
    cache.synced().await;
    if cache.is_empty() && !checks.are_known() {
        checks.set(Document::default());
    }
}

/// Takes in the checks of a ConfigMap. Those that cannot be used change nothing.
fn take(checks: &ConfiguredChecks, object: &Object<ConfigMap>, recorder: &Recorder) {
    let config = &*object.metadata.key;
    let document = match object.body.data.get(ENTRY) {
        Some(text) => Document::parse(text).map_err(|error| error.to_string()),
        None => Err(format!("the key {ENTRY} is missing")),
    };
    match document {
        Ok(document) => {
            info!(config, checks = document.len(), "Read --cluster-health-checks-config");
            checks.set(document);
        }
        Err(error) => {
            checks.note_unusable();
            let error = health::one_line(&error);
            let meanwhile = if checks.are_known() {
                "the checks stay as they were"
            } else {
                "until it can be used no check runs, and the conditions of checks stay as they are"
            };
            warn!(
                config,
                error, "Cannot use the ConfigMap of --cluster-health-checks-config; {meanwhile}"
            );
            let text = format!("cannot use {ENTRY}: {error}; {meanwhile}");
            let reference = identity(object).object_ref(&CONFIG_MAPS);
            recorder.event(reference, EventType::Warning, "InvalidChecks", text);
        }
    }
}

/// Looks for checks that are due, until the stop.
pub(crate) async fn run(clusters: Arc<ClusterRegistry>) {
    let (stop, turns) = (clusters.stop.clone(), Arc::new(Semaphore::new(AT_ONCE)));
    let mut rounds = interval(EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(rounds.tick()).await.is_some() {
        let now = now();
        for member in clusters.all() {
            let look = || look_at(&member, &clusters, &turns, now);
            if let Err(panic) = contain_call(look) {
                let cluster = &*member.cluster.key;
                error!(cluster, %panic, "The search for due checks panicked; it continues with the next member");
            }
        }
    }
}

fn look_at(
    member: &Arc<MemberCluster>,
    clusters: &Arc<ClusterRegistry>,
    turns: &Arc<Semaphore>,
    now: Moment,
) {
    if !clusters.ownership.is_ours(&member.cluster.uid) {
        return;
    }
    let may_run = clusters.guard.is_clear();
    let (is_outdated, run) = member.look_at_checks(&clusters.checks, may_run, now);
    if is_outdated {
        clusters.consider(member);
    }
    let Some(run) = run else { return };
    let (member, clusters, turns) = (Arc::clone(member), Arc::clone(clusters), Arc::clone(turns));
    clusters.tasks.clone().spawn(resilience::task(async move {
        let stop = member.stop.clone();
        let made = contain(make(&member, &clusters, &turns, &run));
        if let Some(Err(panic)) = stop.run_until_cancelled(made).await {
            let (cluster, check) = (&*member.cluster.key, &*run.check.name);
            error!(cluster, check, %panic, "A check of a member panicked");
            member.drop_check();
        }
    }));
}

/// Makes a run when its turn comes. One that waits until the next is due is dropped.
async fn make(
    member: &Arc<MemberCluster>,
    clusters: &Arc<ClusterRegistry>,
    turns: &Semaphore,
    run: &CheckRun,
) {
    let _turn = turns.acquire().await;
    let late = now().monotonic.saturating_duration_since(run.queued) >= run.check.interval;
    let is_ours = || clusters.ownership.is_ours(&member.cluster.uid);
    if late || !is_ours() {
        if late {
            clusters.counters.dropped_check();
        }
        return member.drop_check();
    }
    let evidence = run.prober.examine(&run.check).await;
    // While the guard is in doubt, or another replica has the cluster, an answer that does not come says nothing.
    if !clusters.guard.is_clear() || !is_ours() {
        return member.drop_check();
    }
    let Some((found, change)) = member.complete_check(run, &evidence, now()) else { return };
    clusters.counters.checked(&run.check.name, found.label());
    let Some(change) = change else { return };
    let CheckReport { name, status, message, .. } = &change.report;
    let Some(status) = *status else { return };
    // A new owner finds what the one before has published (rule:a-restart-changes-nothing).
    let stored = member.flavour.stored_check(&member.cluster, name);
    let is_news = match change.from {
        Some(_) => true,
        None => stored.map_or(status != CheckStatus::Passed, |stored| stored != status.status()),
    };
    if is_news || stored.is_none() && change.from.is_none() && member.flavour.keeps_checks() {
        member.outdate();
    }
    if is_news {
        let kind =
            if status == CheckStatus::Passed { EventType::Normal } else { EventType::Warning };
        let text = format!("check {name}: {message}");
        clusters.recorder.event(member.object_ref(), kind, status.reason(), text);
    }
    if change.gates_ready {
        member.trigger(now().monotonic);
    }
    clusters.consider(member);
}
