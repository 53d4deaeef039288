//! A predecessor writes, the API servers and etcd fail, this process wins the lease: what a warm start
//! knows is what a cold one would know, and no block is given out twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cidr::{IpNet, Pool};
use informer::{Delta, Informer, InformerMetrics};
use kube_api::Node;
use parking_lot::Mutex;
use prometheus::Registry;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::number;
use super::world::{Down, World};
use crate::allocator::{Allocator, Assignment};
use crate::api::NodeApi;
use crate::options::WarmProof;
use crate::standby::{BEACON_LIMIT, Cold, Proving, WARM, limit};

/// More blocks than Nodes ever are.
const POOL: &str = "10.0.0.0/22";
const MASK: u8 = 28;
const NAMES: u32 = 12;
/// Shortest time in which etcd is restored and API servers are started.
const RESTART: Duration = Duration::from_millis(2_100);
/// How often a standby reads the Lease.
const READ_LEASE: Duration = Duration::from_millis(500);

fn allocator() -> Allocator {
    Allocator::new(vec![Pool::new(cidr::parse(POOL).unwrap(), MASK, 16).unwrap()], &[])
}

/// What the standby saw of the Lease, as the elector notes it.
#[derive(Clone, Default)]
struct SeenLease(Arc<Mutex<(u64, bool)>>);

impl SeenLease {
    fn read(&self, version: u64) {
        let (newest, went_back) = &mut *self.0.lock();
        *went_back |= version < *newest;
        *newest = (*newest).max(version);
    }
}

struct Play {
    world: World,
    lease: SeenLease,
    /// Without it the other conditions have to suffice.
    checks_lease: bool,
    /// PATCHes of the predecessor that are on their way: Node, UID, CIDR.
    in_flight: Vec<(String, String, String)>,
}

impl Play {
    fn new(seed: u64) -> Self {
        let (world, lease) = (World::new(seed), SeenLease::default());
        let mut state = world.0.lock();
        for number in 0..NAMES / 2 {
            state.join(&format!("node-{number}"));
        }
        state.renew_lease();
        let first = state.etcd.clone();
        state.snapshots.push(first);
        drop(state);
        Self { world, lease, checks_lease: seed.is_multiple_of(2), in_flight: Vec::new() }
    }

    /// The predecessor sends a block of its own choice for a Node without one.
    fn send(&mut self, name: &str) {
        let state = self.world.0.lock();
        let Some((uid, None)) = state.seen(name) else { return };
        let pool = Pool::new(cidr::parse(POOL).unwrap(), MASK, 16).unwrap();
        let mut used = state.used();
        used.extend(self.in_flight.iter().map(|(.., cidr)| cidr.clone()));
        drop(state);
        let is_free = |cidr: &String| !used.contains(cidr);
        let free = (0..64_u32).map(|nth| {
            let third = nth * 16;
            format!("10.0.{}.{}/{}", third / 256, third % 256, pool.mask())
        });
        let cidr = free.into_iter().find(is_free).unwrap();
        if !self.in_flight.iter().any(|(_, of, _)| *of == uid) {
            self.in_flight.push((name.to_owned(), uid, cidr));
        }
    }

    /// The API server carries out a PATCH that is on its way.
    fn commit(&mut self, nth: usize) {
        let (name, uid, cidr) = self.in_flight.remove(nth);
        let mut state = self.world.0.lock();
        if state.seen(&name) == Some((uid, None)) {
            state.write(&name, |node| {
                node["spec"] = serde_json::json!({"podCIDR": cidr, "podCIDRs": [cidr]});
            });
        }
    }

    /// A moment in the life of the cluster, while the predecessor leads or its lease runs out.
    async fn step(&mut self, leads: bool) {
        let (what, name) = {
            let mut state = self.world.0.lock();
            let name = format!("node-{}", state.random(NAMES));
            (state.random(100), name)
        };
        match what {
            0..20 if leads => self.send(&name),
            0..45 if !self.in_flight.is_empty() => {
                let last = u32::try_from(self.in_flight.len()).unwrap();
                let nth = self.world.0.lock().random(last) as usize;
                self.commit(nth);
            }
            0..60 => {
                let mut state = self.world.0.lock();
                if state.has(&name) { state.leave(&name) } else { state.join(&name) }
            }
            60..70 => self.world.0.lock().write(&name, |_| {}),
            70..76 => self.world.0.lock().end_watches(what < 73),
            76..80 => self.world.0.lock().advance(30),
            80..84 => {
                let mut state = self.world.0.lock();
                let length = state.millis(1_500);
                state.end_watches(true);
                state.stop_servers(length, Down::Refuse);
            }
            84..88 if leads => self.restore(what).await,
            88..90 if leads && self.checks_lease => self.swap(),
            _ => {
                let mut state = self.world.0.lock();
                let snapshot = state.etcd.clone();
                state.snapshots.push(snapshot);
            }
        }
        if leads {
            self.world.0.lock().renew_lease();
        }
        self.pass(1_200).await;
    }

    /// Time passes; the standby reads the Lease.
    async fn pass(&self, most: u64) {
        let mut left = self.world.0.lock().millis(most);
        while !left.is_zero() {
            self.lease.read(self.world.0.lock().etcd.lease);
            let pause = left.min(READ_LEASE);
            sleep(pause).await;
            left -= pause;
        }
    }

    /// Etcd is restored while all API servers are down; writes may follow at once and overtake what
    /// was there before.
    async fn restore(&mut self, how: u32) {
        self.in_flight.clear();
        let length = {
            let mut state = self.world.0.lock();
            let length = RESTART + state.millis(3_000);
            match how {
                84 => state.end_watches_unseen(length + Duration::from_secs(10)),
                _ => state.end_watches(true),
            }
            state.stop_servers(length, if how == 85 { Down::Hold } else { Down::Refuse });
            length
        };
        sleep(length / 2).await;
        self.world.0.lock().restore_and_overtake();
        sleep(length / 2).await;
    }

    /// Etcd is restored behind API servers that go on: only the Lease shows it, which is read before the
    /// old versions are overtaken.
    fn swap(&mut self) {
        let (newest, _) = *self.lease.0.lock();
        let mut state = self.world.0.lock();
        let before = state.etcd.revision;
        if state.restore_if(|snapshot| snapshot.lease < newest) {
            self.in_flight.clear();
            self.lease.read(state.etcd.lease);
            state.advance(before);
        }
    }

    /// Etcd is restored at the end of the lease: the versions stay older than those that the watch has shown.
    async fn fall(&mut self) {
        let lag = self.world.0.lock().lag;
        if lag > Duration::from_secs(1) {
            return;
        }
        sleep(lag).await;
        let mut state = self.world.0.lock();
        let before = state.etcd.revision;
        if state.restore_if(|snapshot| snapshot.revision + 10 < before) {
            self.in_flight.clear();
        }
    }
}

/// Claims by UID, and the Nodes that wait.
fn claims(nodes: &[Node], allocator: &Allocator) -> BTreeMap<String, Vec<IpNet>> {
    let claim = |node: &Node| (node.uid.to_string(), allocator.claim(&node.uid).to_vec());
    nodes.iter().map(claim).collect()
}

/// How the term starts, after a life of the cluster.
async fn play(seed: u64, proof: WarmProof) -> &'static str {
    let mut play = Play::new(seed);
    let metrics = InformerMetrics::new(&Registry::new(), "test").unwrap();
    let nodes = Informer::<Node>::of_all(play.world.client(), &metrics);
    let (running, followed, stop) = (nodes.clone(), nodes.clone(), CancellationToken::new());
    let stopped = stop.clone();
    tokio::spawn(async move { running.run(stopped).await });
    let following = tokio::spawn(async move { match followed.keep_unbroken().await {} });
    let _following = AbortOnDropHandle::new(following);
    let _stop = stop.drop_guard();
    let (steps, faulty, lag) = {
        let mut state = play.world.0.lock();
        (state.random(40), state.random(40), state.millis(60))
    };
    {
        let mut state = play.world.0.lock();
        // In some worlds the watch is that of an API server that etcd does not reach.
        let cut_off = state.random(20) == 0;
        state.lag = if cut_off { Duration::from_secs(60) } else { lag };
        state.faulty = faulty;
    }
    for _ in 0..steps {
        play.step(true).await;
    }
    // The predecessor is killed. What it has sent is carried out before its lease ends, or never.
    let afterwards = play.world.0.lock().random(8);
    for _ in 0..afterwards {
        play.step(false).await;
    }
    while !play.in_flight.is_empty() && play.world.0.lock().random(4) != 0 {
        play.commit(0);
    }
    if play.world.0.lock().random(10) == 0 {
        play.fall().await;
    }
    play.world.0.lock().renew_lease();
    play.lease.read(play.world.0.lock().etcd.lease);
    if play.world.0.lock().random(4) == 0 {
        let mut state = play.world.0.lock();
        // The watch is opened again, or the Nodes are listed, during the proof.
        let (broken, down) = (state.random(2) == 0, state.random(2) == 0);
        let length = state.millis(400);
        state.end_watches(broken);
        if down {
            state.stop_servers(length, Down::Refuse);
        }
    }
    let proving = Proving {
        nodes: &nodes,
        proof,
        api: NodeApi::new(play.world.client(), BEACON_LIMIT),
        value: format!("me/{seed}"),
        beacon_until: Mutex::default(),
    };
    let begun = Instant::now();
    let proven = proving.prove(play.checks_lease && play.lease.0.lock().1).await;
    assert!(begun.elapsed() <= limit(proof), "seed {seed}: {:?}", begun.elapsed());
    match proven {
        Err(cold) => cold.label(),
        Ok(()) => {
            assert_same_as_cold(seed, &play.world, &nodes);
            WARM
        }
    }
}

fn assert_same_as_cold(seed: u64, world: &World, nodes: &Informer<Node>) {
    let (listed, now) = (world.nodes(), Instant::now());
    let (warm, mut cold) = (Arc::new(Mutex::new(allocator())), allocator());
    let fed = Arc::clone(&warm);
    let _subscribed = nodes.subscribe(move |delta| {
        if let Delta::Added(node) = delta {
            drop(fed.lock().observe(&**node, now));
        }
    });
    cold.set_in_list(true);
    for node in &listed {
        drop(cold.observe(node, now));
    }
    cold.set_in_list(false);
    let mut warm = warm.lock();
    warm.start();
    let known: Vec<Node> = nodes.frozen(|store| store.values().map(|it| (**it).clone()).collect());
    assert_eq!(claims(&known, &warm), claims(&listed, &cold), "seed {seed}");
    let mut given: Vec<IpNet> =
        world.0.lock().used().iter().map(|it| cidr::parse(it).unwrap()).collect();
    for node in &known {
        if let (Assignment::Send { cidrs, .. }, _) = warm.assign(&node.uid) {
            assert!(cidrs.iter().all(|it| !given.contains(it)), "seed {seed}: {cidrs:?} twice");
            given.extend(cidrs);
        }
    }
}

/// rule:list-before-allocate
#[tokio::test(start_paused = true)]
async fn a_warm_start_knows_what_a_cold_one_knows() {
    let (first, seeds) = (number("WARM_SEED", 1), number("WARM_SEEDS", 50));
    let mut results = BTreeMap::<_, u64>::new();
    for seed in first..first + seeds {
        let proof = if seed.is_multiple_of(5) { WarmProof::Bookmark } else { WarmProof::Beacon };
        *results.entry(play(seed, proof).await).or_default() += 1;
    }
    eprintln!("{seeds} seeds from {first}: {results:?}");
    assert!(results[WARM] * 4 > seeds, "too few starts are warm: {results:?}");
    let broken = results.get(Cold::Broken.label());
    assert!(broken.is_some(), "no watch was broken: {results:?}");
}
