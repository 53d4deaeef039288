//! Two replicas that share the clusters, with members and a management API in common, on tokio's
//! paused clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use api_server_double::{ApiServer, Reply, Store};
use election::ReplicaLeases;
use health::{Health, Published};
use http::Method;
use informer::{Format, Informer, InformerMetrics, Server, Source};
use jiff::Timestamp;
use kube_api::{Kind, Metadata};
use prometheus::Registry as Metrics;
use resilience::Fence;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::scene::{Answer, Api, KIND, Members, Scene, cluster, target};
use crate::engine::flavour::now;
use crate::engine::flavour_registry::Look;
use crate::engine::ownership::{Ownership, Share};
use crate::engine::shard_coordinator::{ShardCoordinator, group};

mod kinds;
mod leading;
mod leases;

const S: fn(u64) -> Duration = Duration::from_secs;
const CLUSTERS: usize = 40;
/// A period with its jitter and a second, and a hand-over between replicas that are both well.
const HANDED_OVER: Duration = Duration::from_secs(12 + 5);
/// The longest gap after a death: the term of a lease, and twice the time to notice.
const INHERITED: Duration = Duration::from_secs(12 + 30 + 4);

#[derive(Default)]
struct World {
    members: Arc<Members>,
    api: Arc<Api>,
    leases: Arc<Store>,
    /// Requests to delete a lease, or to write to that of another replica, get no answer.
    sweeps_hang: Arc<AtomicBool>,
    /// All requests for leases are forbidden.
    refused: Arc<AtomicBool>,
    /// Seconds that an answer takes.
    slow: Arc<AtomicU64>,
}

struct Replica {
    scene: Scene,
    share: Arc<Share>,
    /// The replica gets no answer to requests for leases.
    cut_off: Arc<AtomicBool>,
    /// The replica may write leases, and not list them.
    blind: Arc<AtomicBool>,
    stop: CancellationToken,
    sharing: JoinHandle<ShardCoordinator>,
}

fn keys() -> impl Iterator<Item = String> {
    (0..CLUSTERS).map(|number| format!("ns/c{number}"))
}

impl World {
    /// A replica whose flavour knows all clusters, and tells of those that become its own with what
    /// their objects say by then.
    fn start(&self, name: &str) -> Replica {
        let replica = self.begin(name);
        replica.scene.registry.serves();
        replica.scene.registry.filled();
        replica
    }

    /// The first replica, after it has waited for replicas that might be there.
    async fn first(&self, name: &str) -> Replica {
        let replica = self.start(name);
        sleep(S(15)).await;
        assert_eq!(replica.owns(), 0, "somebody may have been there before");
        sleep(S(30)).await;
        assert_eq!(replica.owns(), CLUSTERS);
        replica
    }

    /// Two that begin at once, when they share the clusters.
    async fn two(&self) -> (Replica, Replica) {
        let replicas = (self.start("a"), self.start("b"));
        sleep(S(45)).await;
        replicas
    }

    /// The leader of replicas that do not share.
    fn leader(&self) -> Replica {
        let replica = self.launch("", 1);
        replica.scene.registry.serves();
        replica.scene.registry.filled();
        replica
    }

    /// The replica before its flavour can look at clusters.
    fn begin(&self, name: &str) -> Replica {
        self.launch(name, 2)
    }

    fn launch(&self, name: &str, shards: usize) -> Replica {
        let fence = if shards == 1 { Fence::always_open() } else { Fence::closed() };
        let share = Arc::new(Share::new(name, (shards, "shares"), 1, fence));
        let name = &*share.name;
        let (members, api) = (Arc::clone(&self.members), Arc::clone(&self.api));
        let scene = Scene::of(members, api, Ownership::of(&share));
        let (members, api) = (Arc::clone(&self.members), Arc::clone(&self.api));
        let (registry, clusters) = (scene.registry.clone(), Arc::clone(&scene.clusters));
        scene.registry.look_again_by(move |key| {
            let (registry, clusters) = (registry.clone(), Arc::clone(&clusters));
            let mut target = target(&members, key, 1);
            target.published = api.written(key).as_deref().and_then(published);
            // The engine is among its locks here, as with a queue.
            tokio::spawn(async move {
                if let Some(since) = clusters.ownership.ours_since(&target.cluster.uid) {
                    clusters.looks_at(&target.cluster.uid, since);
                }
                registry.upsert(target);
            });
        });
        for key in keys() {
            scene.clusters.leave(&*scene.flavour, &cluster(&key, 1));
        }
        let cut_off = Arc::<AtomicBool>::default();
        let blind = Arc::<AtomicBool>::default();
        let (cut, denied, store) =
            (Arc::clone(&cut_off), Arc::clone(&blind), Arc::clone(&self.leases));
        let (hang, own) = (Arc::clone(&self.sweeps_hang), format!("/{name}"));
        let (refused, slow) = (Arc::clone(&self.refused), Arc::clone(&self.slow));
        let server = ApiServer::new(move |asked| match *asked.method() {
            _ if refused.load(Ordering::Relaxed) => Reply::failure(403, "Forbidden"),
            _ if slow.load(Ordering::Relaxed) > 0 => {
                let (asked, store) = (asked.clone(), Arc::clone(&store));
                let takes = S(slow.load(Ordering::Relaxed));
                Reply::Later(Box::pin(async move {
                    sleep(takes).await;
                    store.answer(&asked)
                }))
            }
            _ if cut.load(Ordering::Relaxed) => Reply::Silence,
            Method::DELETE if hang.load(Ordering::Relaxed) => Reply::Silence,
            Method::PUT if hang.load(Ordering::Relaxed) && !asked.path().ends_with(&own) => {
                Reply::Silence
            }
            _ if denied.load(Ordering::Relaxed) && asked.query().contains("labelSelector") => {
                Reply::failure(403, "Forbidden")
            }
            _ => store.answer(asked),
        });
        let leases = ReplicaLeases::new(server.client(), group("shares"), name.into(), name.into());
        let mut share_out =
            ShardCoordinator::new(leases, Arc::clone(&share), Arc::clone(&scene.clusters));
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        let sharing = tokio::spawn(async move {
            share_out.run(&stopping).await;
            share_out
        });
        Replica { scene, share, cut_off, blind, stop, sharing }
    }

    fn longest_silence(&self) -> Duration {
        let since = |key: String| self.members.last_probe(&key).map(|at| at.elapsed());
        let silence = keys().map(|key| since(key).expect("it was probed")).max();
        self.members.longest_gap().max(silence.unwrap_or_default())
    }

    /// Checks that no member was probed twice at once, none waited longer than this, and no event was sent.
    fn assert_well(&self, longest: Duration) {
        assert_eq!(self.members.overlaps(), 0, "a member was probed by two at once");
        let silence = self.longest_silence();
        assert!(silence <= longest, "a member was not probed for {silence:?}");
        assert_eq!(self.api.events(), [""; 0]);
        for key in keys() {
            assert_eq!(self.api.written(&key).as_deref(), Some("Ready"), "{key}");
        }
    }
}

impl Replica {
    fn owns(&self) -> usize {
        self.scene.clusters.all().len()
    }

    /// Ends the replica as SIGKILL does.
    fn kill(self) {
        self.sharing.abort();
    }

    /// Ends the replica as a clean stop does.
    async fn release(self) {
        self.stop.cancel();
        let share_out = self.sharing.await.expect("it ends");
        self.scene.clusters.end_all();
        share_out.release().await;
    }
}

fn published(health: &str) -> Option<Published> {
    let health = Health::ALL.into_iter().find(|it| format!("{it:?}") == health)?;
    let now = Timestamp::now();
    Some(Published::seed(health, now, now, Some(now)))
}

/// rule:one-owner-at-a-time, rule:moves-publish-nothing
#[tokio::test(start_paused = true)]
async fn replicas_that_come_and_go_in_order_share_the_clusters_without_a_word() {
    let world = World::default();
    world.members.take(Duration::from_millis(700));
    let first = world.first("a").await;
    let second = world.start("b");
    sleep(S(15)).await;
    let (one, other) = (first.owns(), second.owns());
    assert_eq!(one + other, CLUSTERS);
    assert!(one > 5 && other > 5, "{one} and {other}");
    first.release().await;
    sleep(S(15)).await;
    assert_eq!(second.owns(), CLUSTERS);
    world.assert_well(HANDED_OVER);
    assert_eq!(world.members.longest_probe(), Duration::from_millis(700));
}

/// rule:one-owner-at-a-time, rule:moves-publish-nothing
#[tokio::test(start_paused = true)]
async fn the_clusters_of_a_replica_that_dies_are_probed_again_when_its_lease_has_run_out() {
    let world = World::default();
    let (first, second) = world.two().await;
    first.kill();
    sleep(S(10)).await;
    // In its place, while its lease still runs.
    let third = world.start("c");
    sleep(S(60)).await;
    assert_eq!(second.owns() + third.owns(), CLUSTERS);
    world.assert_well(INHERITED);
}

/// rule:unwatched-clusters-become-unknown
#[tokio::test(start_paused = true)]
async fn an_inherited_cluster_that_nobody_probes_becomes_unknown_and_the_clock_starts_at_the_takeover()
 {
    let world = World::default();
    let (first, second) = world.two().await;
    let inherited = first.scene.clusters.all()[0].cluster.key.to_string();
    let is_taken = || second.scene.clusters.all().iter().any(|it| *it.cluster.key == *inherited);
    first.kill();
    // No probe of it is ever completed.
    world.members.set(&inherited, Answer::Panic);
    while !is_taken() {
        sleep(S(1)).await;
    }
    sleep(S(38)).await;
    assert_eq!(world.api.written(&inherited).as_deref(), Some("Ready"));
    sleep(S(4)).await;
    assert_eq!(world.api.written(&inherited).as_deref(), Some("Unknown"));
    assert_eq!(world.api.events(), ["ClusterStatusUnknown"]);
}

#[tokio::test(start_paused = true)]
async fn the_debug_page_and_the_metrics_tell_who_has_which_cluster() {
    let world = World::default();
    let first = world.first("a").await;
    let _second = world.start("b");
    sleep(S(15)).await;
    let own = first.owns();
    let page = first.scene.page("/debug?format=json", None).await;
    let page: Value = serde_json::from_str(&page).expect("it is JSON");
    let rows = page["clusters"].as_array().expect("they are listed");
    let of = |owner: &str, doing: &str| {
        rows.iter().filter(|row| row["owner"] == owner && (row["doing"] == doing)).count()
    };
    assert_eq!(of("a", "waiting"), own);
    assert_eq!(of("b", "elsewhere"), CLUSTERS - own);
    let metric = |series: &str| usize::try_from(first.scene.metric(series)).unwrap();
    assert_eq!(metric("clusterhealth_shard_clusters{owner=\"self\"}"), own);
    assert_eq!(metric("clusterhealth_shard_clusters{owner=\"others\"}"), CLUSTERS - own);
    assert_eq!(metric("clusterhealth_shard_replicas{state=\"alive\"}"), 2);
    assert_eq!(metric("clusterhealth_shard_moves_total{direction=\"given\"}"), CLUSTERS - own);
}

/// rule:one-owner-at-a-time, rule:a-share-ends-by-time
#[tokio::test(start_paused = true)]
async fn a_replica_that_cannot_renew_stops_before_another_one_begins() {
    let world = World::default();
    world.members.take(Duration::from_millis(700));
    let (first, second) = world.two().await;
    first.cut_off.store(true, Ordering::Relaxed);
    let share = first.owns();
    sleep(S(15)).await;
    assert_eq!(second.owns(), CLUSTERS - share, "its lease still runs");
    sleep(S(20)).await;
    assert_eq!((first.owns(), second.owns()), (0, CLUSTERS));
    first.cut_off.store(false, Ordering::Relaxed);
    sleep(S(30)).await;
    assert_eq!((first.owns(), second.owns()), (share, CLUSTERS - share));
    world.assert_well(INHERITED);
}

/// rule:one-owner-at-a-time
#[tokio::test(start_paused = true)]
async fn a_cluster_does_not_move_while_a_write_of_it_can_still_be_carried_out() {
    let world = World::default();
    let first = world.first("a").await;
    world.api.delay_writes(S(8));
    for key in keys() {
        world.members.set(&key, Answer::Failing);
    }
    while first.scene.clusters.writer.writing().len() < CLUSTERS {
        sleep(Duration::from_millis(100)).await;
    }
    let (second, began) = (world.start("b"), Instant::now());
    while second.owns() == 0 {
        sleep(Duration::from_millis(10)).await;
        let writing = first.scene.clusters.writer.writing();
        let moved = second.scene.clusters.all();
        assert!(moved.iter().all(|member| !writing.contains(&member.cluster.uid)));
    }
    assert!(began.elapsed() > S(3), "nothing had to be waited for: {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_given_up_while_it_is_told_of_is_not_forgotten() {
    let scene = Scene::new(0);
    scene.add("ns/a", 1);
    let (clusters, flavour) = (Arc::clone(&scene.clusters), Arc::clone(&scene.flavour));
    let given_up = Box::new(move || clusters.leave(&*flavour, &cluster("ns/a", 2)));
    *scene.on_removed.lock() = Some(given_up);
    scene.add("ns/a", 2);
    assert_eq!(scene.clusters.all().len(), 0);
    assert_eq!(scene.clusters.elsewhere(), [("fake", cluster("ns/a", 2))]);
}

/// rule:a-share-ends-by-time
#[tokio::test(start_paused = true)]
async fn a_probe_goes_no_step_further_once_the_right_to_it_has_ended() {
    let world = World::default();
    let only = world.first("a").await;
    world.members.take(S(2));
    let (key, uid) = ("ns/c0", cluster("ns/c0", 1).uid);
    let member = only.scene.watched(key);
    let before = member.view(|it| it.member.last().map(|last| last.started));
    while !member.view(|it| it.member.is_probing()) {
        sleep(Duration::from_millis(100)).await;
    }
    only.cut_off.store(true, Ordering::Relaxed);
    only.share.fence.close();
    assert!(!only.share.is_ours(&uid));
    sleep(S(3)).await;
    let after = member.view(|it| it.member.last().map(|last| last.started));
    assert_eq!(after, before, "its result is not taken in");
}

/// The version of `ns/new` that a replica looks at, if it does not look again later, and the time that it takes; its cache
/// shows the newest version, 5, after `lag`.
async fn look_at_new(replica: &Replica, lag: Duration) -> (Option<u64>, Duration) {
    let object = |version: &str| {
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"namespace": "ns", "name": "new", "uid": "u", "resourceVersion": version}})
    };
    let server = ApiServer::new(move |asked| match asked.query() {
        query if query.contains("sendInitialEvents") => Reply::failure(400, "BadRequest"),
        query if query.contains("watch=true") => Reply::Watch(late(object("5"), lag)),
        _ => {
            Reply::Json(200, json!({"metadata": {"resourceVersion": "2"}, "items": [object("2")]}))
        }
    });
    let metrics = InformerMetrics::new(&Metrics::new(), "test").expect("the names are new");
    let source = Source::new(Server::own(server.client()), Kind::BuiltIn(KIND.clone()));
    let cache: Informer<Metadata> = Informer::new(source, &metrics, Format::Json);
    let running = cache.clone();
    tokio::spawn(async move { running.run(CancellationToken::new()).await });
    cache.synced().await;
    replica.scene.api.set_version("ns/new", "u", 5);
    assert!(replica.share.is_ours("u"));
    let began = Instant::now();
    let looked = replica.scene.registry.look(&cache, &"ns/new".into()).await.expect("it is read");
    let version = match looked {
        Look::At(seen) => Some(seen.resource_version),
        Look::Later => None,
        Look::Gone | Look::Elsewhere => panic!("it is there"),
    };
    (version, began.elapsed())
}

/// A leader without shards that has given one cluster up, as after the loss of its lease.
async fn leader_that_lost_its_lease(world: &World) -> Replica {
    let leader = world.leader();
    while leader.owns() < CLUSTERS {
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(look_at_new(&leader, S(3)).await, (Some(2), S(0)));
    leader.scene.clusters.leave(&*leader.scene.flavour, &cluster("ns/c0", 1));
    leader
}

/// rule:moves-publish-nothing
#[tokio::test(start_paused = true)]
async fn what_a_cluster_says_is_looked_at_only_when_the_cache_is_as_new_as_the_move() {
    let world = World::default();
    let only = world.first("a").await;
    let (version, took) = look_at_new(&only, S(3)).await;
    assert_eq!((version, took >= S(3)), (Some(5), true));
}

/// rule:moves-publish-nothing
#[tokio::test(start_paused = true)]
async fn a_leader_without_shards_reads_clusters_again_after_it_lost_its_lease() {
    let world = World::default();
    let leader = leader_that_lost_its_lease(&world).await;
    let (version, took) = look_at_new(&leader, S(3)).await;
    assert_eq!((version, took >= S(3)), (Some(5), true));
}

/// rule:moves-publish-nothing
#[tokio::test(start_paused = true)]
async fn what_was_read_before_the_lease_was_lost_starts_no_probe() {
    let world = World::default();
    let leader = leader_that_lost_its_lease(&world).await;
    leader.scene.registry.upsert(target(&world.members, "ns/c0", 1));
    assert_eq!(leader.scene.clusters.elsewhere(), [("fake", cluster("ns/c0", 1))]);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_stays_behind_holds_no_worker_for_longer_than_five_seconds() {
    let world = World::default();
    let leader = leader_that_lost_its_lease(&world).await;
    let (version, took) = look_at_new(&leader, S(60)).await;
    assert_eq!((version, took < S(6)), (None, true), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_shards_that_may_not_read_objects_uses_its_cache() {
    let world = World::default();
    let leader = leader_that_lost_its_lease(&world).await;
    world.api.forbid_reads();
    let (version, _) = look_at_new(&leader, S(3)).await;
    assert_eq!(version, Some(2));
}

/// A change that the watch tells of after this time.
fn late(object: Value, after: Duration) -> futures::stream::BoxStream<'static, Value> {
    use futures::StreamExt as _;
    let event = async move {
        sleep(after).await;
        json!({"type": "MODIFIED", "object": object})
    };
    futures::stream::once(event).chain(futures::stream::pending()).boxed()
}

/// rule:one-owner-at-a-time
#[tokio::test(start_paused = true)]
async fn fields_of_a_cluster_that_moves_are_taken_away_by_the_replica_that_has_it() {
    let scene = Scene::of_others();
    scene.registry.withdraw(cluster("ns/a", 1));
    sleep(S(60)).await;
    assert_eq!((scene.api.writes(), scene.clusters.writer.oldest(now().monotonic)), (0, S(0)));
    // When it comes back its object is looked at again.
    assert_eq!(scene.clusters.elsewhere(), [("fake", cluster("ns/a", 1))]);
}
