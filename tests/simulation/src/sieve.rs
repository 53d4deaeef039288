//! The patterns of Sieve (Sun et al., OSDI 2022): a scenario is played without a fault, and once more for each point at
//! which a process may restart on an old view, crash at a write, or miss what happened between two events. The end of
//! each must be that of the first.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::Report;
use crate::call::{Call, Target};
use crate::claims::{DEFAULT, SECOND, cidrs, range_of};
use crate::life::{name_of, node_of};
use crate::members::CRDS;
use crate::plan::{MOMENTS, Moment, Plan, Script};
use crate::replica::{REPLICAS, kill};
use crate::store::Change;
use crate::world::{Process, State, World};

/// The plans of one pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// See [`Script::Stale`].
    Stale,
    /// See [`Script::Crash`].
    Intermediate,
    /// See [`Script::Unobserved`].
    Unobserved,
}

impl Pattern {
    /// The points of its plans, for `tests/CHECKED.md`.
    pub fn bounds(self) -> &'static str {
        match self {
            Self::Stale => {
                "two replicas start again at the end of a scenario, on API servers frozen at each older version"
            }
            Self::Intermediate => {
                "a replica crashes before, during and after each write of a scenario"
            }
            Self::Unobserved => {
                "no watch shows what happens from an event to the next one of its kind, and of its object"
            }
        }
    }
}

/// How long the API servers show an old view: the lease of the crashed leader ends meanwhile, and the next one lists.
const FROZEN: Duration = Duration::from_secs(75);
/// The kinds that both domains watch.
pub(crate) const WATCHED: [&str; 4] = ["clustercidrs", "kubefedclusters", "nodes", "secrets"];
/// The kinds whose objects are compared at the end.
const COMPARED: [&str; 5] = ["clustercidrs", "configmaps", "kubefedclusters", "nodes", "secrets"];
/// A Node that another allocator gives this pod CIDR, the last one, so that it is always free.
const FOREIGN: (u64, &str) = (6, "10.0.0.112/28");
/// A held watch goes on that long after the last change which it does not show.
const HELD_ON: Duration = Duration::from_millis(100);

/// What a run of a script did.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The writes of processes, but Events.
    writes: u64,
    /// How many of them were sent until the writes of the last edit were over.
    writes_of_scenario: u64,
    /// Version, kind, name and time of each change of a watched kind.
    pub changes: Vec<(u64, &'static str, String, Duration)>,
    /// Whether the process crashed, a watch found what it had not shown forgotten, or a frozen API server was asked.
    has_happened: bool,
    /// The objects at the end, without times, versions and UIDs.
    pub end: Vec<Value>,
}

/// One edit of the scenario.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Join(u64),
    Leave(u64),
    /// Another Node of the same name, at once.
    Replace(u64),
    /// A Node whose pod CIDR another allocator wrote.
    Foreign,
    /// The finalizer of a Node goes.
    Release(u64),
    /// The credential of a member changes, and the member refuses the one before.
    Rotate(usize),
    RemoveMember(usize),
    AddMember(usize),
    /// The only ClusterCIDR for [`SELECTED`], if blocks come from ClusterCIDRs.
    AddClusterCidr,
    RemoveClusterCidr,
    /// The leader ends, and releases its lease.
    HandOver,
}

const CLUSTER_CIDRS: &str = "/apis/networking.x-k8s.io/v1/clustercidrs";
/// The label by which a ClusterCIDR selects a Node.
const LABEL: &str = "pool";

/// The Node with a finalizer.
const FINALIZED: u64 = 3;
/// The Node that a ClusterCIDR selects.
const SELECTED: u64 = 5;
/// Seconds and edits. The finalizer of a ClusterCIDR that is deleted goes before another one of its name comes, also when
/// the leader crashes in between. Four Nodes and the members are there from the beginning.
const SCENARIO: [(u64, Edit); 24] = [
    (12, Edit::AddClusterCidr),
    (13, Edit::Join(4)),
    (14, Edit::Leave(1)),
    (16, Edit::Leave(FINALIZED)),
    (17, Edit::Join(SELECTED)),
    (18, Edit::RemoveClusterCidr),
    (19, Edit::Foreign),
    (21, Edit::Join(1)),
    (23, Edit::Release(FINALIZED)),
    (25, Edit::Replace(2)),
    (27, Edit::Rotate(0)),
    (28, Edit::Rotate(0)),
    (30, Edit::RemoveMember(1)),
    (31, Edit::AddMember(1)),
    (32, Edit::Leave(SELECTED)),
    (33, Edit::HandOver),
    (38, Edit::Rotate(1)),
    (39, Edit::Replace(4)),
    (41, Edit::RemoveMember(0)),
    (41, Edit::AddMember(0)),
    (43, Edit::Leave(0)),
    (45, Edit::Join(0)),
    (51, Edit::AddClusterCidr),
    (52, Edit::Join(SELECTED)),
];
/// When the last Node joins, and where processes restart on an old view.
const LAST: (u64, Edit) = (54, Edit::Join(7));

/// The writes of the last edit are sent within this time.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// Plays the scenario.
pub(crate) async fn play(world: &World, script: Script) {
    let began = Instant::now();
    if let Script::Unobserved { until, .. } = script {
        let world = world.clone();
        tokio::spawn(async move {
            sleep_until(began + until).await;
            world.with(State::lists_again);
            world.wake_watches();
        });
    }
    for (at, edit) in SCENARIO {
        sleep_until(began + Duration::from_secs(at)).await;
        world.with(|state| state.carry_out(edit));
    }
    sleep_until(began + Duration::from_secs(LAST.0)).await;
    if let Script::Stale(version) = script {
        let alive = world.with(|state| {
            state.freeze(Some(version));
            (0..REPLICAS).filter_map(|slot| state.alive(slot)).collect::<Vec<_>>()
        });
        for id in alive {
            kill(world, id, "crashes");
        }
    }
    world.with(|state| state.carry_out(LAST.1));
    if let Script::Stale(_) = script {
        sleep_until(began + Duration::from_secs(LAST.0) + FROZEN).await;
        world.with(|state| state.freeze(None));
        world.wake_watches();
    }
}

impl State {
    /// Makes the kind of ClusterCIDRs, if blocks come from them.
    pub(crate) fn register_cluster_cidrs(&mut self) {
        if self.plan.has_cluster_cidrs {
            let crd = json!({"metadata": {"name": "clustercidrs.networking.x-k8s.io"}});
            self.edit_at(Method::POST, CRDS.to_owned(), &crd);
            // The one that the program would make would serve each Node.
            self.add_cluster_cidr("default-cluster-cidr", DEFAULT, "DoesNotExist");
        }
    }

    fn add_cluster_cidr(&mut self, name: &str, range: &str, operator: &str) {
        let label = json!({"key": LABEL, "operator": operator});
        let selector = json!({"nodeSelectorTerms": [{"matchExpressions": [label]}]});
        let spec = json!({"ipv4": range, "perNodeHostBits": 4, "nodeSelector": selector});
        let object = json!({"metadata": {"name": name}, "spec": spec});
        self.edit_at(Method::POST, CLUSTER_CIDRS.to_owned(), &object);
    }

    /// A Node joins; of a script one has a finalizer, and one a label.
    pub(crate) fn join(&mut self, node: u64) {
        let mut object = node_of(node);
        if node == FINALIZED && self.plan.script.is_some() {
            object["metadata"]["finalizers"] = json!(["example.com/drain"]);
        }
        if node == SELECTED && self.plan.script.is_some() {
            object["metadata"]["labels"] = json!({LABEL: "second"});
        }
        self.edit(Method::POST, &object);
    }

    fn carry_out(&mut self, edit: Edit) {
        self.note(|| format!("{edit:?}"));
        match edit {
            Edit::Join(node) => self.join(node),
            Edit::Leave(node) => self.remove(&name_of(node)),
            Edit::Replace(node) => {
                self.remove(&name_of(node));
                self.join(node);
            }
            Edit::Foreign => {
                let (name, cidr) = (name_of(FOREIGN.0), FOREIGN.1);
                let spec = json!({"podCIDR": cidr, "podCIDRs": [cidr]});
                self.edit(Method::POST, &json!({"metadata": {"name": name}, "spec": spec}));
                if let Ok(cidr) = cidr::parse(cidr) {
                    self.claims.set_by_another(&name, cidr, &self.store);
                }
            }
            Edit::Release(node) => {
                let metadata = json!({"name": name_of(node), "finalizers": null});
                self.edit(Method::PATCH, &json!({"metadata": metadata}));
            }
            Edit::Rotate(member) => self.rotate(member),
            Edit::RemoveMember(member) => self.remove_member(member),
            Edit::AddMember(member) => self.add_member(member),
            Edit::AddClusterCidr | Edit::RemoveClusterCidr if !self.plan.has_cluster_cidrs => {}
            Edit::AddClusterCidr => self.add_cluster_cidr("second", SECOND, "Exists"),
            Edit::RemoveClusterCidr => {
                self.edit_at(Method::DELETE, format!("{CLUSTER_CIDRS}/second"), &Value::Null);
            }
            Edit::HandOver => {
                let leader = self.processes.iter().find(|it| it.is_alive && it.is_leader());
                if let Some(leader) = leader {
                    leader.shutdown.cancel();
                }
            }
        }
    }

    /// The held watches of [`Script::Unobserved`] go on, and find that what they have not shown is forgotten.
    fn lists_again(&mut self) {
        self.has_held = true;
        let shown = (0..REPLICAS).map(|front| self.shown(front)).min().unwrap_or_default();
        self.store.compact(shown);
        self.note(|| format!("versions before {shown} are forgotten"));
    }

    /// The version that watches of a kind show at most.
    pub(crate) fn held_at(&self, kind: &str) -> Option<u64> {
        match self.plan.script {
            Some(Script::Unobserved { resource, from, .. }) if resource == kind => {
                (!self.has_held).then(|| from - 1)
            }
            _ => None,
        }
    }

    /// A process sends a write. Returns when in it the process crashes.
    pub(crate) fn sends_in_script(&mut self, call: &Call) -> Option<Moment> {
        let script = self.plan.script?;
        let target = call.target()?;
        if call.method == Method::GET || target.kind.resource == "events" {
            return None;
        }
        let number = self.record.writes;
        self.record.writes += 1;
        if self.elapsed() < Duration::from_secs(LAST.0) + LAST_WRITES {
            self.record.writes_of_scenario += 1;
        }
        match script {
            Script::Crash(at, moment) if at == number => {
                self.record.has_happened = true;
                Some(moment)
            }
            _ => None,
        }
    }

    /// A watch tells a process that what it has not shown is forgotten.
    pub(crate) fn expires_in_script(&mut self) {
        self.record.has_happened |= self.has_held;
    }

    /// A request of a process comes to an API server. In [`Script::Stale`] it is kept whether a frozen one was asked for
    /// a list that differs from that in its cache.
    pub(crate) fn arrives_in_script(&mut self, front: usize, call: &Call) {
        let Some(Script::Stale(frozen)) = self.plan.script else { return };
        let is_list = |it: &Target| call.method == Method::GET && it.key.name.is_empty();
        let is_first = matches!(call.parameter("resourceVersion"), "" | "0");
        let is_frozen =
            self.elapsed() >= Duration::from_secs(LAST.0) && self.shown(front) == frozen;
        let target = call.target().filter(|it| is_first && is_frozen && is_list(it));
        let Some(target) = target else { return };
        let list = |at| self.store.list(target.kind.resource, &target.key.namespace, at);
        self.record.has_happened |= list(frozen) != list(self.store.revision());
    }

    /// Keeps what is compared at the end.
    pub(crate) fn ends_script(&mut self) {
        if self.plan.script.is_none() {
            return;
        }
        self.judge_pools();
        let watched = |it: &&Change| WATCHED.contains(&it.key.resource);
        let changes = self.store.changes_after(0).iter().filter(watched);
        let changes = changes.map(|it| {
            (it.revision, it.key.resource, it.key.name.clone(), self.shown_since(it.revision))
        });
        self.record.changes = changes.collect();
        let revision = self.store.revision();
        let all = COMPARED.iter().flat_map(|kind| self.store.list(kind, "", revision));
        let mut end: Vec<_> = all.map(|object| without_accidents(Value::clone(object))).collect();
        let leaders = self.processes.iter().filter(|it| it.is_leader()).map(|it| &*it.identity);
        let leaders: Vec<_> = leaders.collect();
        for leader in end.iter_mut().filter_map(|it| it.pointer_mut("/data/leader")) {
            let leads = leader.as_str().is_some_and(|it| leaders.contains(&it));
            *leader = if leads { "that of the Lease".into() } else { "a former one".into() };
        }
        self.record.end = end;
    }

    /// The blocks of each Node lie in the range that is for it.
    fn judge_pools(&mut self) {
        let is_selected = |node: &Value| node["metadata"]["labels"][LABEL].is_string();
        let has_cluster_cidrs = self.plan.has_cluster_cidrs;
        let wrong = self.nodes().into_iter().find_map(|node| {
            let range = if has_cluster_cidrs && is_selected(node) { SECOND } else { DEFAULT };
            let block = cidrs(node).into_iter().find(|it| range_of(*it) != Some(range))?;
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            Some(format!("{name} has {block}, and {range} is for it"))
        });
        if let Some(wrong) = wrong {
            self.violate(wrong);
        }
    }
}

/// What is compared of a pod CIDR: its length and the range that it lies in.
fn place(text: &str) -> String {
    let Ok(block) = cidr::parse(text) else { return text.to_owned() };
    format!("/{} of {}", block.prefix_len(), range_of(block).unwrap_or(text))
}

impl Process {
    fn is_leader(&self) -> bool {
        !self.fence.remaining().is_zero()
    }
}

/// An object without what two runs may differ in.
fn without_accidents(mut object: Value) -> Value {
    remove_times(&mut object);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|name, _| !["uid", "resourceVersion"].contains(&&**name));
    }
    if let Some(Value::Object(data)) = object.get_mut("data") {
        data.retain(|name, _| !["written", "token"].contains(&&**name));
    }
    if let Some(status) = object["status"].as_object_mut() {
        status.remove("families");
    }
    // Which of the free pod CIDRs a Node gets depends on when it gets one.
    let is_foreign = object["metadata"]["name"] == *name_of(FOREIGN.0);
    if let Some(spec) = object["spec"].as_object_mut().filter(|_| !is_foreign) {
        let all = spec.get_mut("podCIDRs").and_then(Value::as_array_mut).into_iter().flatten();
        all.for_each(|it| *it = place(it.as_str().unwrap_or_default()).into());
        if let Some(first) = spec.get_mut("podCIDR") {
            *first = place(first.as_str().unwrap_or_default()).into();
        }
    }
    object
}

fn remove_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.ends_with("Time") && !name.ends_with("Timestamp"));
            fields.values_mut().for_each(remove_times);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_times),
        _ => {}
    }
}

impl Plan {
    /// The plan of a script.
    pub fn of_script(script: Script, has_cluster_cidrs: bool) -> Self {
        Self { script: Some(script), has_cluster_cidrs, ..Self::new(0) }
    }
}

/// The plans of a pattern, by what its first run did.
pub fn plans(pattern: Pattern, plan: &Plan, first: &Record) -> Vec<Plan> {
    let end = Duration::from_secs(LAST.0);
    let changes: Vec<_> = first.changes.iter().filter(|(.., at)| *at < end).collect();
    let scripts: Vec<_> = match pattern {
        Pattern::Stale => changes.iter().map(|(version, ..)| Script::Stale(*version)).collect(),
        Pattern::Intermediate => {
            let numbers = 0..first.writes_of_scenario;
            let at = |moment| numbers.clone().map(move |number| Script::Crash(number, moment));
            MOMENTS.into_iter().flat_map(at).collect()
        }
        Pattern::Unobserved => pairs(&changes),
    };
    scripts.into_iter().map(|it| Plan::of_script(it, plan.has_cluster_cidrs)).collect()
}

/// Each change with the next one of its kind, and with the next one of its object.
fn pairs(changes: &[&(u64, &'static str, String, Duration)]) -> Vec<Script> {
    let mut scripts = Vec::new();
    for (nth, (from, resource, name, _)) in changes.iter().enumerate() {
        let mut later = changes[nth + 1..].iter().filter(|(_, kind, ..)| kind == resource);
        let next = later.clone().next();
        let of_object = later.find(|(_, _, of, _)| of == name);
        // What is there from the beginning is listed, and no watch shows it.
        let begins = Duration::from_secs(SCENARIO[0].0);
        for (.., at) in [next, of_object].into_iter().flatten().filter(|(.., at)| *at >= begins) {
            let script = Script::Unobserved { resource, from: *from, until: *at + HELD_ON };
            if scripts.last() != Some(&script) {
                scripts.push(script);
            }
        }
    }
    scripts
}

/// How a run of a plan differs from the first run, or which claim it violates.
pub fn difference(plan: &Plan, first: &Record, report: &Report) -> Option<String> {
    if let Some(violation) = &report.violation {
        return Some(violation.clone());
    }
    let record = &report.record;
    if plan.script != Some(Script::First) && !record.has_happened {
        return Some("what the script says did not happen".to_owned());
    }
    let without = |these: &[Value], those: &[Value]| {
        let text = these.iter().filter(|it| !those.contains(it)).map(ToString::to_string);
        text.collect::<Vec<_>>().join(" ")
    };
    (record.end != first.end).then(|| {
        let (ends, expected) = (without(&record.end, &first.end), without(&first.end, &record.end));
        format!("it ends with {ends} instead of {expected}")
    })
}
