//! Reads the zones and the region of members that are published as ready, and which clusters they are, apart from all
//! probing.

use std::sync::Arc;
use std::time::Duration;

use events::{EventType, Recorder};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::flavour::KubeFed;
use super::topology::{self, Identity, Topology, TopologyCounter};
use crate::engine::{Flavour as _, FlavourRegistry, MemberId};
use crate::paging::{MemberReader, list};

/// Time between looks for members that are due.
const ROUND: Duration = Duration::from_secs(1);
/// Members read at the same time.
const AT_ONCE: usize = 16;
/// For one member.
const LIMIT: Duration = Duration::from_secs(60);
const PAGE_NODES: usize = 500;

/// Goes its rounds until `stop`.
pub(super) async fn run(
    flavour: Arc<KubeFed>,
    registry: FlavourRegistry,
    recorder: Recorder,
    stop: CancellationToken,
) {
    let (slots, under_way) = (Arc::new(Semaphore::new(AT_ONCE)), TaskTracker::new());
    let mut rounds = interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(rounds.tick()).await.is_some() {
        for cluster in flavour.due_for_survey(|cluster| registry.is_ready(cluster)) {
            let Some(life) = registry.life(&cluster) else { continue };
            let (flavour, registry, slots) =
                (Arc::clone(&flavour), registry.clone(), Arc::clone(&slots));
            let recorder = recorder.clone();
            under_way.spawn(async move {
                let survey = async {
                    let _slot = slots.acquire().await;
                    // The one of now: it may have waited for long.
                    let client = flavour.client(&cluster)?;
                    let read = timeout(LIMIT, read(&flavour.prober, &client)).await;
                    let late = |_| (Err("no end within a minute".to_owned()), Identity::default());
                    Some((client, read.unwrap_or_else(late)))
                };
                // Ends with the cluster, and at a stop (`rule:nothing-outlives-its-object`).
                if let Some(Some((client, found))) = life.run_until_cancelled(survey).await {
                    take(&flavour, &registry, &recorder, &cluster, &client, found);
                }
            });
        }
    }
    under_way.close();
    under_way.wait().await;
}

/// The facts that were read of a member: its topology, `None` when no Node says where it is, and its
/// identity, unknown when we may not read the namespace.
type Surveyed = (Result<Option<Topology>, String>, Identity);

async fn read(prober: &probe::Prober, client: &Arc<probe::Client>) -> Surveyed {
    let mut member = MemberReader::new(prober, client);
    let identity = list(&mut member, topology::PATH, &topology::QUERY, 1, Identity::default).await;
    let counter =
        list(&mut member, "/api/v1/nodes", &[], PAGE_NODES, TopologyCounter::default).await;
    let topology = counter.map(TopologyCounter::topology);
    let topology = topology.map_err(|why| format!("{}: {why}", why.reason()));
    (topology, identity.unwrap_or_default())
}

/// Takes in what was read. The first of a run of failures has an event, and so has a second region.
fn take(
    flavour: &KubeFed,
    registry: &FlavourRegistry,
    recorder: &Recorder,
    cluster: &MemberId,
    client: &Arc<probe::Client>,
    (found, identity): Surveyed,
) {
    let say = |reason: &'static str, text: String| {
        let object = cluster.object_ref(flavour.resource());
        recorder.event(object, EventType::Warning, reason, text);
    };
    for other in flavour.identified(cluster, client, identity) {
        say(
            "SameCluster",
            format!(
                "the KubeFedCluster {other} is the same cluster as this one; delete one of the two"
            ),
        );
    }
    let is_news = flavour.surveyed(cluster, client, &found);
    match found {
        Err(error) if is_news => {
            let text = format!("cannot read zones and region: {error}");
            say("RetrievingRegionZonesFailed", health::one_line(&text));
        }
        Ok(Some(topology)) => {
            if is_news && topology.spread {
                let region = topology.region.as_deref().unwrap_or_default();
                say(
                    "MultipleRegions",
                    format!("the Nodes are in several regions; most in {region}"),
                );
            }
            registry.facts_changed(cluster);
        }
        Ok(None) | Err(_) => {}
    }
}
