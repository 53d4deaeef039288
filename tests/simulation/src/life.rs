//! The life of a cluster: Nodes come and go, processes and servers fail; then all is well, and what was
//! promised for that must hold.

use std::time::Duration;

use bytes::Bytes;
use cidr::IpNet;
use http::Method;
use rand::RngExt as _;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use crate::api::Answer;
use crate::aws_cluster;
use crate::call::Call;
use crate::claims::cidrs;
use crate::clusters;
use crate::members::{MEMBERS, all_ready, follow_one};
use crate::plan::{Fate, LIFE, Number};
use crate::replica::{BLOCKS, REPLICAS, jump, keep_running, kill, start_clocks};
use crate::sieve::play;
use crate::world::{Process, State, World};

/// Time in which the cluster comes to rest: a lease runs out, outcomes are settled, and waits that doubled
/// end.
const SETTLES: Duration = Duration::from_secs(60);
/// Time in which an addition or deletion is found that a watch did not send.
const FOUND: Duration = Duration::from_secs(600);
/// One in so many groups of eight seeds, which have all set-ups, waits until an event that a watch did not send has been
/// found, before it judges the rest.
const WAITS_OF: u64 = 8;
/// Time in which nothing but Leases and one heartbeat of each member is written at rest.
const RESTS: Duration = Duration::from_secs(15);

/// All blocks of the cluster CIDR.
fn blocks() -> impl Iterator<Item = IpNet> {
    (0..BLOCKS).filter_map(|nth| cidr::parse(&format!("10.0.0.{}/28", nth * 16)).ok())
}

/// Lives to the end of the plan.
pub(crate) async fn live(world: &World) {
    start_clocks();
    let (nodes, script, has_clusters) = world.with(|state| {
        for node in 0..state.plan.nodes / 2 {
            state.join(node);
        }
        state.register_members();
        state.register_cluster_cidrs();
        if state.plan.has_clusters() {
            state.register_clusters();
        }
        (state.plan.nodes, state.plan.script, state.plan.has_clusters())
    });
    for slot in 0..REPLICAS {
        tokio::spawn(keep_running(world.clone(), slot));
    }
    if has_clusters {
        tokio::spawn(clusters::live(world.clone()));
    }
    match script {
        Some(script) => play(world, script).await,
        None => fail_at_random(world, nodes).await,
    }
    world.with(|state| {
        state.is_busy = false;
        state.cure_members();
        state.processes.iter().for_each(Process::resume);
        state.note(|| "all is well from now on".to_owned());
    });
    settle(world, nodes).await;
}

/// Faults and edits of the plan.
async fn fail_at_random(world: &World, nodes: u64) {
    let busy = world.with(|state| state.plan.busy);
    let end = Instant::now() + busy;
    for number in 0.. {
        let number = Number(LIFE, number);
        let mut rng = world.with(|state| state.plan.rng(number));
        sleep(Duration::from_millis(rng.random_range(1..1_500))).await;
        if Instant::now() >= end {
            break;
        }
        if world.with(|state| state.plan.permits(number)) {
            happen(world, number, &mut rng, nodes);
        }
    }
}

fn happen(world: &World, number: Number, rng: &mut SmallRng, nodes: u64) {
    let (mut what, node) = (rng.random_range(0..112), rng.random_range(0..nodes));
    // A network on AWS needs processes that live for a minute: most of their ends are changes of Nodes.
    if (76..88).contains(&what)
        && world.with(|state| state.plan.has_aws())
        && rng.random_range(0..4) > 0
    {
        what = 67;
    }
    let (slot, seconds) = (rng.random_range(0..REPLICAS), rng.random_range(1..12));
    let soon = Duration::from_secs(seconds);
    let alive = world.with(|state| state.alive(slot));
    match (what, alive) {
        (0..68, _) => world.with(|state| state.change(number, what, node)),
        (68..76, _) => world.with(|state| state.assign_as_another(number, rng, node)),
        (76..84, Some(id)) => {
            world.with(|state| state.count(number, "crash"));
            kill(world, id, "crashes");
        }
        (84..88, Some(id)) => world.with(|state| {
            state.count(number, "orderly stop");
            state.note(|| format!("p{id} is asked to stop"));
            state.processes[id].shutdown.cancel();
        }),
        // Memories of calls to AWS count by the clocks of both machines, which must agree.
        (88..92, _) if !world.with(|state| state.plan.has_aws()) => {
            world.with(|state| state.count(number, "wall clock set forward"));
            jump(slot, soon);
        }
        (92..97, _) => world.with(|state| {
            state.count(number, "stale API server");
            state.stall(slot, Instant::now() + soon);
        }),
        (100.., _) => world.with(|state| {
            let what = state.turn(slot % MEMBERS, rng);
            state.count(number, what);
        }),
        (97..100, _) => world.with(|state| {
            state.count(number, "compaction");
            let revision = state.store.revision();
            state.store.compact(revision);
        }),
        _ => {}
    }
}

pub(crate) fn name_of(node: u64) -> String {
    format!("node-{node}")
}

pub(crate) fn node_of(node: u64) -> Value {
    json!({"metadata": {"name": name_of(node)}, "spec": {}})
}

impl State {
    /// The process that lives in this place.
    pub(crate) fn alive(&self, slot: usize) -> Option<usize> {
        self.processes.iter().rposition(|it| it.slot == slot && it.is_alive)
    }

    /// A Node joins, leaves, is replaced, or changes otherwise.
    fn change(&mut self, number: Number, what: u32, node: u64) {
        let name = name_of(node);
        let exists = self.nodes().iter().any(|it| it["metadata"]["name"] == *name);
        match (what, exists) {
            (0..50, false) => {
                self.count(number, "Node joins");
                self.edit(Method::POST, &node_of(node));
            }
            (0..24, true) => {
                self.count(number, "Node leaves");
                self.remove(&name);
            }
            (24..36, true) => {
                self.count(number, "Node replaced");
                self.remove(&name);
                self.edit(Method::POST, &node_of(node));
            }
            (_, true) => {
                self.count(number, "Node changes");
                let labels = json!({"at": number.to_string()});
                self.edit(Method::PATCH, &json!({"metadata": {"name": name, "labels": labels}}));
            }
            _ => {}
        }
    }

    /// Another allocator gives a Node a block that no Node has, rather one that a PATCH under way has. It
    /// writes no managed fields, so the program goes on.
    fn assign_as_another(&mut self, number: Number, rng: &mut SmallRng, node: u64) {
        let mut on_wire = self.claims.on_wire();
        on_wire.retain(|block| !self.has(*block));
        let free: Vec<_> = blocks().filter(|block| !self.has(*block)).collect();
        let from = if rng.random() && !on_wire.is_empty() { &on_wire } else { &free };
        let Some(block) = from.get(rng.random_range(0..from.len().max(1))) else { return };
        self.give_as_another(number, rng, *block, name_of(node), "");
    }

    /// Another allocator may give a Node the block that a PATCH of another one has, which meets a fault.
    pub(crate) fn contest(&mut self, call: &Call, fate: Fate, number: Number) {
        let patched = call.target().filter(|it| it.kind.resource == "nodes" && fate.is_contested);
        let Some(patched) = patched.filter(|_| call.method == Method::PATCH) else { return };
        let patched = &patched.key.name;
        let mut rng = self.plan.rng(number);
        let node = rng.random_range(0..self.plan.nodes);
        if let Some(block) = self.claims.on_wire_for(patched).filter(|block| !self.has(*block)) {
            self.give_as_another(number, &mut rng, block, name_of(node), patched);
        }
    }

    /// The block goes to a Node without one, or to a new one of this `name`.
    fn give_as_another(
        &mut self,
        number: Number,
        rng: &mut SmallRng,
        block: IpNet,
        name: String,
        not_to: &str,
    ) {
        let mut without = self.unassigned();
        without.retain(|name| name != not_to);
        let exists = self.nodes().iter().any(|it| it["metadata"]["name"] == *name);
        let (method, name) = match without.get(rng.random_range(0..without.len().max(1))) {
            Some(name) => (Method::PATCH, name.clone()),
            None if !exists => (Method::POST, name),
            None => return,
        };
        self.count(number, "pod CIDR of another allocator");
        let cidr = block.to_string();
        let spec = json!({"podCIDR": cidr, "podCIDRs": [cidr]});
        self.edit(method, &json!({"metadata": {"name": name}, "spec": spec}));
        self.claims.set_by_another(&name, block, &self.store);
    }

    fn has(&self, block: IpNet) -> bool {
        self.nodes().iter().any(|node| cidrs(node).contains(&block))
    }

    pub(crate) fn nodes(&self) -> Vec<&Value> {
        let nodes = self.store.list("nodes", "", self.store.revision());
        nodes.into_iter().map(|node| &**node).collect()
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.edit(Method::DELETE, &json!({"metadata": {"name": name}}));
    }

    /// An edit of a Node by another client.
    pub(crate) fn edit(&mut self, method: Method, node: &Value) {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let name = if method == Method::POST { String::new() } else { format!("/{name}") };
        self.edit_at(method, format!("/api/v1/nodes{name}"), node);
    }

    /// An edit by another client.
    pub(crate) fn edit_at(&mut self, method: Method, path: String, object: &Value) {
        let body = if method == Method::DELETE { Bytes::new() } else { object.to_string().into() };
        let call = Call {
            method,
            path,
            query: Vec::new(),
            accept: String::new(),
            content_type: "application/merge-patch+json".to_owned(),
            body,
        };
        let answer = self.apply(0, &call);
        let code = if let Answer::Whole(code, _) = answer { code } else { 0 };
        self.note(|| format!("edit {} {} {object} {code}", call.method, call.path));
        if self.plan.script.is_some() && !(200..300).contains(&code) {
            self.violate(format!(
                "{} {} of the scenario is answered {code}",
                call.method, call.path
            ));
        }
    }

    /// Names of the Nodes without pod CIDRs.
    fn unassigned(&self) -> Vec<String> {
        let without = self.nodes().into_iter().filter(|it| it["spec"]["podCIDR"].is_null());
        let name = |it: &Value| it["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        without.map(name).collect()
    }
}

/// All Nodes have pod CIDRs, and after a while nothing is written any more (C10); then all pod CIDRs can be
/// given to other Nodes (C2).
async fn settle(world: &World, nodes: u64) {
    let limit = Instant::now() + SETTLES;
    all_assigned(world, "C10").await;
    let (has_members, has_clusters) =
        world.with(|state| (state.plan.has_members, state.plan.has_clusters()));
    if has_members {
        all_ready(world, limit.max(Instant::now())).await;
    }
    if has_clusters {
        clusters::at_rest(world).await;
        aws_cluster::at_rest(world).await;
    }
    // Till then a write of unknown outcome may be sent again, and a new leader may write the record of the pools.
    sleep_until(limit).await;
    let (lost_events, waits) =
        world.with(|state| (state.lost_events, (state.plan.seed / 8).is_multiple_of(WAITS_OF)));
    if lost_events && waits {
        sleep(FOUND).await;
    }
    let before = world.with(|state| (state.writes, state.heartbeats));
    sleep(RESTS).await;
    world.with(|state| {
        let heartbeats = state.heartbeats - before.1;
        let more = state.writes - before.0 + heartbeats.saturating_sub(MEMBERS as u64);
        // Else what a watch did not send may be found now.
        if more > 0 && (waits || !lost_events) {
            state.violate(format!("C10: {more} writes were sent at rest"));
        }
        state.ends_script();
        for node in 0..nodes {
            if state.nodes().iter().any(|it| it["metadata"]["name"] == *name_of(node)) {
                state.remove(&name_of(node));
            }
        }
    });
    if has_members {
        follow_one(world).await;
    }
    sleep(Duration::from_secs(10)).await;
    world.with(|state| {
        for node in nodes..nodes + BLOCKS {
            state.edit(Method::POST, &node_of(node));
        }
    });
    all_assigned(world, "C2").await;
    if has_clusters {
        aws_cluster::ends_as_a_new_one(world).await;
        clusters::all_end(world).await;
    }
}

/// Waits until all Nodes have pod CIDRs.
async fn all_assigned(world: &World, claim: &str) {
    let lost_events = world.with(|state| state.lost_events);
    let settles = if lost_events { SETTLES + FOUND } else { SETTLES };
    let limit = Instant::now() + settles;
    loop {
        let without = world.with(|state| state.unassigned());
        if without.is_empty() {
            return;
        }
        if Instant::now() > limit {
            let why = format!("{claim}: {} have no pod CIDR {settles:?} later", without.join(", "));
            world.with(|state| state.violate(why));
            return;
        }
        sleep(Duration::from_millis(250)).await;
    }
}
