//! The life of a cluster: Nodes come and go, processes and servers fail; then all is well, and what was
//! promised for that must hold.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use rand::RngExt as _;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::api::Answer;
use crate::call::Call;
use crate::plan::{LIFE, Number};
use crate::replica::{BLOCKS, REPLICAS, jump, keep_running, kill, start_clocks};
use crate::world::{State, World};

/// Time in which the cluster comes to rest: a lease runs out, outcomes are settled, and waits that doubled
/// end.
const SETTLES: Duration = Duration::from_secs(60);
/// Time in which no PATCH is sent at rest.
const RESTS: Duration = Duration::from_secs(15);

/// Lives to the end of the plan.
pub(crate) async fn live(world: &World) {
    start_clocks();
    let (nodes, busy) = world.with(|state| {
        for node in 0..state.plan.nodes / 2 {
            state.edit(Method::POST, &node_of(node));
        }
        (state.plan.nodes, state.plan.busy)
    });
    for slot in 0..REPLICAS {
        tokio::spawn(keep_running(world.clone(), slot));
    }
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
    world.with(|state| {
        state.is_busy = false;
        state.note(|| "all is well from now on".to_owned());
    });
    settle(world, nodes).await;
}

fn happen(world: &World, number: Number, rng: &mut SmallRng, nodes: u64) {
    let (what, node) = (rng.random_range(0..100), rng.random_range(0..nodes));
    let (slot, seconds) = (rng.random_range(0..REPLICAS), rng.random_range(1..12));
    let soon = Duration::from_secs(seconds);
    let alive = world.with(|state| state.alive(slot));
    match (what, alive) {
        (0..76, _) => world.with(|state| state.change(number, what, node)),
        (76..84, Some(id)) => {
            world.with(|state| state.count(number, "crash"));
            kill(world, id, "crashes");
        }
        (84..88, Some(id)) => world.with(|state| {
            state.count(number, "orderly stop");
            state.note(|| format!("p{id} is asked to stop"));
            state.processes[id].shutdown.cancel();
        }),
        (88..92, _) => {
            world.with(|state| state.count(number, "wall clock set forward"));
            jump(slot, soon);
        }
        (92..97, _) => world.with(|state| {
            state.count(number, "stale API server");
            state.stall(slot, Instant::now() + soon);
        }),
        (97.., _) => world.with(|state| {
            state.count(number, "compaction");
            let revision = state.store.revision();
            state.store.compact(revision);
        }),
        _ => {}
    }
}

fn name_of(node: u64) -> String {
    format!("node-{node}")
}

fn node_of(node: u64) -> Value {
    json!({"metadata": {"name": name_of(node)}, "spec": {}})
}

impl State {
    /// The process that lives in this place.
    fn alive(&self, slot: usize) -> Option<usize> {
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

    pub(crate) fn nodes(&self) -> Vec<&Value> {
        let nodes = self.store.list("nodes", "", self.store.revision());
        nodes.into_iter().map(|node| &**node).collect()
    }

    fn remove(&mut self, name: &str) {
        self.edit(Method::DELETE, &json!({"metadata": {"name": name}}));
    }

    /// An edit of a Node by another client.
    fn edit(&mut self, method: Method, node: &Value) {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let name = if method == Method::POST { String::new() } else { format!("/{name}") };
        let body = if method == Method::DELETE { Bytes::new() } else { node.to_string().into() };
        let call = Call {
            method,
            path: format!("/api/v1/nodes{name}"),
            query: Vec::new(),
            accept: String::new(),
            content_type: "application/merge-patch+json".to_owned(),
            body,
        };
        let answer = self.apply(0, &call);
        let code = if let Answer::Whole(code, _) = answer { code } else { 0 };
        self.note(|| format!("edit {} {} {node} {code}", call.method, call.path));
    }

    /// Names of the Nodes without pod CIDRs.
    fn unassigned(&self) -> Vec<String> {
        let without = self.nodes().into_iter().filter(|it| it["spec"]["podCIDR"].is_null());
        without.map(|it| it["metadata"]["name"].to_string()).collect()
    }
}

/// All Nodes have pod CIDRs, and after a while no PATCH is sent any more (C10); then all pod CIDRs can be
/// given to other Nodes (C2).
async fn settle(world: &World, nodes: u64) {
    all_assigned(world, "C10").await;
    // A PATCH whose outcome is not known yet may be sent again.
    sleep(RESTS).await;
    let before = world.with(|state| state.claims.sent);
    sleep(RESTS).await;
    world.with(|state| {
        let more = state.claims.sent - before;
        if more > 0 {
            state.violate(format!("C10: {more} PATCHes were sent at rest"));
        }
        for node in 0..nodes {
            if state.nodes().iter().any(|it| it["metadata"]["name"] == *name_of(node)) {
                state.remove(&name_of(node));
            }
        }
    });
    sleep(Duration::from_secs(10)).await;
    world.with(|state| {
        for node in nodes..nodes + BLOCKS {
            state.edit(Method::POST, &node_of(node));
        }
    });
    all_assigned(world, "C2").await;
}

/// Waits until all Nodes have pod CIDRs.
async fn all_assigned(world: &World, claim: &str) {
    let limit = Instant::now() + SETTLES;
    loop {
        let without = world.with(|state| state.unassigned());
        if without.is_empty() {
            return;
        }
        if Instant::now() > limit {
            let why = format!("{claim}: {} have no pod CIDR {SETTLES:?} later", without.join(", "));
            world.with(|state| state.violate(why));
            return;
        }
        sleep(Duration::from_millis(250)).await;
    }
}
