//! Reads the zones and the region of members that are published as ready, and which clusters they are, apart from all
//! probing.

use std::sync::Arc;
use std::time::Duration;

use events::{EventType, Recorder};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::flavour::KubeFed;
use super::topology::{self, Identity, Topology, TopologyCounter};
use crate::engine::facts::read_facts;
use crate::engine::{Flavour as _, FlavourRegistry, MemberId};
use crate::paging::{MemberReader, list};

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
    let due = || flavour.due_for_survey(|cluster| registry.is_ready(cluster));
    let survey = |cluster: MemberId| {
        let (flavour, registry) = (Arc::clone(&flavour), registry.clone());
        let recorder = recorder.clone();
        async move {
            // The one of now: it may have waited for long.
            let client = flavour.client(&cluster)?;
            let read = timeout(LIMIT, read(&flavour.prober, &client)).await;
            let late = |_| (Err("no end within a minute".to_owned()), Identity::default());
            let found = read.unwrap_or_else(late);
            take(&flavour, &registry, &recorder, &cluster, &client, found);
            Some(())
        }
    };
    read_facts(&registry, &stop, AT_ONCE, due, survey).await;
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
