//! [`Subject`]: the new and the stored state of an object, with its environment.

use std::collections::HashMap;
use std::sync::Arc;

use kube_api::quantity::Quantity;
use serde_json::Value;

use super::field::Field;
use super::findings::Findings;
use super::formats;
use super::formats::host_and_port;
use super::network_checks::{CheckResult, Environment, Question};

/// The object under judgement.
pub(crate) struct Subject<'a> {
    object: &'a Value,
    old: Option<&'a Value>,
    pub(crate) environment: &'a Environment,
}

impl<'a> Subject<'a> {
    /// `old` is what is stored, and `None` of an object that is made.
    pub(crate) fn new(
        object: &'a Value,
        old: Option<&'a Value>,
        environment: &'a Environment,
    ) -> Self {
        Self { object, old, environment }
    }

    pub(crate) fn object(&self) -> &'a Value {
        self.object
    }

    pub(crate) fn old(&self) -> Option<&'a Value> {
        self.old
    }

    pub(crate) fn is_new(&self) -> bool {
        self.old.is_none()
    }

    pub(crate) fn root(&self) -> Field<'a> {
        Field::root(self.object)
    }

    pub(crate) fn spec(&self) -> Field<'a> {
        self.root().field("spec")
    }

    pub(crate) fn old_spec(&self) -> Option<Field<'a>> {
        self.old.map(|old| Field::root(old).field("spec"))
    }

    pub(crate) fn name(&self) -> Option<&'a str> {
        name_of(self.object)
    }

    /// Whether this object of the environment is not the stored one of the subject.
    pub(crate) fn is_other(&self, object: &Value) -> bool {
        let own = self.name();
        own.is_none() || name_of(object) != own
    }
}

/// The name of an object.
pub(crate) fn name_of(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("name")?.as_str().filter(|name| !name.is_empty())
}

/// Whether an update changes only metadata and status; the main resource takes the
/// metadata alone.
pub(crate) fn only_metadata_differs(old: &Value, new: &Value) -> bool {
    let is_judged = |name: &str| !matches!(name, "metadata" | "status" | "apiVersion" | "kind");
    match (old.as_object(), new.as_object()) {
        (Some(one), Some(other)) => {
            let names = one.keys().chain(other.keys()).filter(|name| is_judged(name));
            names.into_iter().all(|name| one.get(name) == other.get(name))
        }
        _ => old == new,
    }
}

/// Nodes of a Cluster: as many as its summary says, and without one its masters and Machines.
pub(crate) fn nodes(cluster: &Value, machines: &HashMap<&str, usize>) -> u64 {
    let root = Field::root(cluster);
    let summary = root.at(&["status", "resource", "nodes", "total"]).number();
    if let Some(total) = summary.and_then(|total| u64::try_from(total).ok()) {
        return total;
    }
    let masters = root.at(&["spec", "machines"]).items().count();
    let workers = name_of(cluster).and_then(|name| machines.get(name)).copied().unwrap_or(0);
    u64::try_from(masters.saturating_add(workers)).unwrap_or(u64::MAX)
}

/// How many Machines each Cluster has.
pub(crate) fn machine_counts(machines: &[Arc<Value>]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for machine in machines {
        let Some(cluster) = cluster_of(machine) else { continue };
        let count: &mut usize = counts.entry(cluster).or_default();
        *count = count.saturating_add(1);
    }
    counts
}

/// Whole cores of a Cluster by its summary, rounded down Node by Node; a summary without them, as an
/// API server of TKEStack's own stores it, has the sum only.
pub(crate) fn cpus(cluster: &Value) -> u64 {
    let each = Field::root(cluster).at(&["status", "resource", "cores"]).number();
    if let Some(cores) = each.and_then(|cores| u64::try_from(cores).ok()) {
        return cores;
    }
    let at = Field::root(cluster).at(&["status", "resource", "capacity", "cpu"]);
    let cpu = at.text().map(str::to_owned).or_else(|| at.number().map(|cpu| cpu.to_string()));
    let cpu = cpu.and_then(|text| text.parse::<Quantity>().ok());
    let cores = cpu.and_then(|cpu| cpu.as_milli().checked_div(1000));
    cores.and_then(|cores| u64::try_from(cores).ok()).unwrap_or_default()
}

/// The Machines of a Cluster.
pub(crate) fn machines_of<'a>(
    machines: &'a [Arc<Value>],
    cluster: &str,
) -> impl Iterator<Item = &'a Value> {
    machines.iter().map(|machine| &**machine).filter(move |it| cluster_of(it) == Some(cluster))
}

fn cluster_of(machine: &Value) -> Option<&str> {
    Field::root(machine).at(&["spec", "clusterName"]).text()
}

/// The fields that a connection is made with.
const CONNECTION: [&str; 7] =
    ["ip", "port", "username", "password", "privateKey", "passPhrase", "proxy"];

const JUMP_SERVER: &str = "SSHJumpServer";

/// Whether the type of a Cluster or Machine is one of those that the environment allows.
pub(crate) fn check_type(spec: &Field<'_>, known: &[String], findings: &mut Findings) {
    let of = spec.field("type");
    if of.text().is_some_and(|text| !known.iter().any(|known| known == text)) {
        findings.not_supported(&of, &of.shown(), known.iter().map(String::as_str));
    }
}

/// `at` has the fields of a connection.
pub(crate) fn check(at: &Field<'_>, findings: &mut Findings) {
    let ip = at.field("ip");
    if ip.word().is_some_and(|text| formats::ip(text).is_none()) {
        findings.invalid(&ip, formats::IP);
    }
    let password = at.field("password");
    let is_missing = |name: &str| at.field(name).word().is_none();
    if ["password", "privateKey"].into_iter().all(is_missing) {
        findings.required(&password, "password or privateKey, in base64");
    }
}

/// Where SSH must answer, and which host: the machine, or its jump server, behind which nothing is visible without a
/// login. Through another proxy nothing is checked.
fn asked(at: &Field<'_>) -> Option<(String, &'static str)> {
    let proxy = at.field("proxy");
    match proxy.field("type").word() {
        None => Some((target(at)?, "SSH")),
        Some(JUMP_SERVER) => Some((target(&proxy)?, "the jump server")),
        Some(_) => None,
    }
}

fn target(at: &Field<'_>) -> Option<String> {
    let port = formats::port(at.field("port").number()?)?;
    let ip = at.field("ip").word().filter(|text| formats::ip(text).is_some())?;
    Some(host_and_port(ip, port))
}

/// Whether SSH reaches both in the same way.
pub(crate) fn is_same(one: &Field<'_>, other: &Field<'_>) -> bool {
    CONNECTION.iter().all(|name| one.field(name).value() == other.field(name).value())
}

/// Reports the network's answer about a machine.
pub(crate) fn answers(subject: &Subject<'_>, at: &Field<'_>, findings: &mut Findings) {
    let Some((target, who)) = asked(at) else { return };
    let question = Question::Ssh(target.clone());
    match subject.environment.network_checks.answer(&question) {
        Some(CheckResult::Passed) => {}
        Some(CheckResult::Failed(code)) => {
            findings.forbidden(at, &format!("{who} does not answer at {target}: {code}"));
        }
        None => findings.unasked(at, question),
    }
}

/// The cluster that is not counted: the one that this runs in.
const GLOBAL: &str = "global";

/// New Clusters.
pub(crate) fn clusters(subject: &Subject<'_>, findings: &mut Findings) {
    let most = subject.environment.licence.max_clusters;
    if most == 0 || !subject.is_new() || subject.name() == Some(GLOBAL) {
        return;
    }
    let Some(clusters) = counted(subject, findings) else { return };
    let is_counted =
        |other: &&Arc<Value>| subject.is_other(other) && name_of(other) != Some(GLOBAL);
    let others = clusters.iter().filter(is_counted).count();
    let others = u64::try_from(others).unwrap_or(u64::MAX);
    if others >= most {
        let why = format!("the licence is for {most} clusters, and there are {others}");
        findings.forbidden(&at(subject), &why);
    }
}

/// Nodes, with those that the subject adds.
pub(crate) fn licensed_nodes(subject: &Subject<'_>, added: usize, findings: &mut Findings) {
    let most = subject.environment.licence.max_nodes;
    if most == 0 {
        return;
    }
    let Some(clusters) = counted(subject, findings) else { return };
    let machines = subject.environment.machines.as_deref().unwrap_or_default();
    let machines = machine_counts(machines);
    let each = clusters.iter().map(|cluster| nodes(cluster, &machines));
    let now = each.fold(0_u64, u64::saturating_add);
    let after = now.saturating_add(u64::try_from(added).unwrap_or(u64::MAX));
    if now >= most || after > most {
        let why = format!("the licence is for {most} nodes; there are {now}, and {added} are new");
        findings.forbidden(&at(subject), &why);
    }
}

/// Cores.
pub(crate) fn licensed_cpus(subject: &Subject<'_>, findings: &mut Findings) {
    let most = subject.environment.licence.max_cpus;
    if most == 0 {
        return;
    }
    let Some(clusters) = counted(subject, findings) else { return };
    let now = clusters.iter().map(|cluster| cpus(cluster)).fold(0_u64, u64::saturating_add);
    if now >= most {
        let why = format!("the licence is for {most} CPUs, and there are {now}");
        findings.forbidden(&at(subject), &why);
    }
}

/// Upstream's field of these errors, though no kind has it.
fn at<'a>(subject: &Subject<'a>) -> Field<'a> {
    subject.spec().field("name")
}

fn counted<'a>(subject: &Subject<'a>, findings: &mut Findings) -> Option<&'a [Arc<Value>]> {
    let clusters = subject.environment.clusters.as_deref();
    if clusters.is_none() {
        findings.unchecked(&at(subject), "whether the licence allows it", "clusters");
    }
    clusters
}
