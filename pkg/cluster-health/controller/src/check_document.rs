//! The checks of `--cluster-health-checks-config`: [`Document`] is the text in the ConfigMap, [`ConfiguredChecks`] the
//! checks that hold now. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use flags::GoDuration;
use health::{Check, CheckKind, Thresholds, Workload};
use kube_api::LabelSelector;
use parking_lot::RwLock;
use serde::Deserialize;

use crate::api::is_name;

/// Checks in a document, and checks of one member.
const CHECKS_MAX: usize = 16;
const PER_MEMBER_MAX: usize = 8;
const INTERVALS: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(24 * 60 * 60)];
const TIMEOUTS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(30)];
const AGES: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(600)];
const THRESHOLD_MAX: u32 = 100;
const NAME_MAX: usize = 63;
const FLAVOURS: [&str; 4] = ["kubefed", "tke", "clusterprofile", "capi"];
/// Conditions that this program writes anyway. Those of TKEStack's installers begin with `Ensure`.
const TAKEN: [&str; 8] = [
    "Healthy",
    "Reachable",
    "WithinObjective",
    "HealthCheck",
    "SyncVersion",
    "NodesReady",
    "ResourceSynced",
    "CredentialValid",
];

/// The labels of the object of a member.
pub(crate) type Labels = BTreeMap<String, String>;

/// The checks that hold now.
#[derive(Default)]
pub(crate) struct ConfiguredChecks(RwLock<Configured>);

#[derive(Default)]
struct Configured {
    /// Counts the documents; 0 until the first one that can be used.
    generation: u64,
    document: Arc<Document>,
    is_on: bool,
    /// The ConfigMap cannot be read, or its text cannot be used.
    is_unusable: bool,
}

impl ConfiguredChecks {
    /// No checks; with `is_on` it is not known yet which.
    pub(crate) fn new(is_on: bool) -> Self {
        let generation = u64::from(!is_on);
        Self(RwLock::new(Configured { generation, is_on, ..Configured::default() }))
    }

    /// Whether it is known which checks there are.
    pub(crate) fn are_known(&self) -> bool {
        self.0.read().generation > 0
    }

    /// Forgets the checks, as at a start.
    #[cfg(test)]
    pub(crate) fn await_first(&self) {
        *self.0.write() = Configured::default();
    }

    /// The checks are these from now on.
    pub(crate) fn set(&self, document: Document) {
        let mut configured = self.0.write();
        configured.generation += 1;
        configured.document = Arc::new(document);
        configured.is_unusable = false;
    }

    /// The ConfigMap cannot be read, or its text cannot be used: the checks stay as they are.
    pub(crate) fn note_unusable(&self) {
        self.0.write().is_unusable = true;
    }

    /// Whether the ConfigMap cannot be read, or its text not used; `None` where none is asked for.
    pub(crate) fn is_unusable(&self) -> Option<bool> {
        let configured = self.0.read();
        configured.is_on.then_some(configured.is_unusable)
    }

    /// The document, with its generation, unless that is `known`.
    pub(crate) fn newer_than(&self, known: u64) -> Option<(u64, Arc<Document>)> {
        let configured = self.0.read();
        let is_newer = configured.generation != known;
        is_newer.then(|| (configured.generation, Arc::clone(&configured.document)))
    }
}

/// The checks, and the members that each is for.
#[derive(Debug, Default)]
pub(crate) struct Document(Vec<Selected>);

#[derive(Debug)]
struct Selected {
    check: Arc<Check>,
    selector: Option<LabelSelector>,
    /// Empty for all.
    flavours: BTreeSet<String>,
}

/// Why a document cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DocumentError {
    #[error("it cannot be read: {0}")]
    Form(String),
    #[error("{0} checks are more than {CHECKS_MAX}")]
    TooMany(usize),
    #[error("check {number} ({name:?}): {why}")]
    Check { number: usize, name: String, why: String },
}

impl Document {
    /// Reads the text of the key `checks.yaml`.
    ///
    /// # Errors
    /// The first thing that cannot be used.
    pub(crate) fn parse(text: &str) -> Result<Self, DocumentError> {
        let read = serde_saphyr::from_str::<Text>(text);
        let Text { checks } = read.map_err(|error| {
            // The first line says what and where; the others show the text.
            let text = error.to_string();
            DocumentError::Form(text.lines().next().unwrap_or_default().to_owned())
        })?;
        if checks.len() > CHECKS_MAX {
            return Err(DocumentError::TooMany(checks.len()));
        }
        let mut names = BTreeSet::new();
        let judged = checks.into_iter().zip(1..).map(|(entry, number)| {
            let name = entry.name.clone();
            let is_new = names.insert(name.clone());
            let unique =
                if is_new { Ok(()) } else { Err("another check has this name".to_owned()) };
            let judged = unique.and_then(|()| entry.judge());
            judged.map_err(|why| DocumentError::Check { number, name, why })
        });
        judged.collect::<Result<_, _>>().map(Self)
    }

    /// The checks of a member, and how many more select it than one member can have.
    pub(crate) fn of_member(&self, flavour: &str, labels: &Labels) -> (Vec<Arc<Check>>, usize) {
        let selects = |it: &&Selected| {
            let label = |key: &str| labels.get(key).map(String::as_str);
            let by_labels = it.selector.as_ref().is_none_or(|selector| selector.selects(label));
            by_labels && (it.flavours.is_empty() || it.flavours.contains(flavour))
        };
        let mut checks: Vec<_> =
            self.0.iter().filter(selects).map(|it| Arc::clone(&it.check)).collect();
        let ignored = checks.len().saturating_sub(PER_MEMBER_MAX);
        checks.truncate(PER_MEMBER_MAX);
        (checks, ignored)
    }

    /// How many checks there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    checks: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Entry {
    name: String,
    #[serde(default)]
    selector: Option<String>,
    #[serde(default)]
    flavours: BTreeSet<String>,
    nodes_ready: Option<NodesReady>,
    node_leases: Option<NodeLeases>,
    api_service: Option<ApiService>,
    available: Option<Available>,
    interval: Option<String>,
    timeout: Option<String>,
    failure_threshold: Option<u32>,
    success_threshold: Option<u32>,
    #[serde(default)]
    gates_ready: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NodesReady {
    min_ratio: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NodeLeases {
    min_fresh: Option<f64>,
    max_age: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiService {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Available {
    kind: Kind,
    namespace: String,
    name: String,
}

#[derive(Clone, Copy, Deserialize)]
enum Kind {
    Deployment,
    StatefulSet,
    DaemonSet,
}

impl Entry {
    fn judge(self) -> Result<Selected, String> {
        name(&self.name)?;
        let kinds = [
            self.nodes_ready.map(nodes_ready),
            self.node_leases.map(node_leases),
            self.api_service.map(api_service),
            self.available.map(available),
        ];
        let mut kinds = kinds.into_iter().flatten();
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return Err(
                "it needs one of nodesReady, nodeLeases, apiService and available".to_owned()
            );
        };
        let unknown = self.flavours.iter().find(|it| !FLAVOURS.contains(&it.as_str()));
        if let Some(unknown) = unknown {
            return Err(format!("flavours: {unknown:?} is none of {}", FLAVOURS.join(", ")));
        }
        let selector = self.selector.as_deref().map(LabelSelector::parse).transpose();
        let selector = selector.map_err(|error| format!("selector: {error}"))?;
        let check = Check {
            name: self.name.into(),
            kind: kind?,
            interval: span("interval", self.interval.as_deref(), "1m", INTERVALS)?,
            timeout: span("timeout", self.timeout.as_deref(), "5s", TIMEOUTS)?,
            thresholds: Thresholds {
                failure: threshold("failureThreshold", self.failure_threshold, 3)?,
                success: threshold("successThreshold", self.success_threshold, 1)?,
            },
            gates_ready: self.gates_ready,
        };
        Ok(Selected { check: Arc::new(check), selector, flavours: self.flavours })
    }
}

/// A type of a condition that no other condition has.
fn name(name: &str) -> Result<(), String> {
    let is_camel_case = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_camel_case || name.len() > NAME_MAX {
        return Err(format!("name: it is not one CamelCase word of at most {NAME_MAX} characters"));
    }
    if TAKEN.contains(&name) || name.starts_with("Ensure") {
        return Err("name: another condition has it".to_owned());
    }
    Ok(())
}

fn nodes_ready(NodesReady { min_ratio }: NodesReady) -> Result<CheckKind, String> {
    Ok(CheckKind::NodesReady { min_ratio: share("nodesReady.minRatio", min_ratio, 0.5)? })
}

fn node_leases(NodeLeases { min_fresh, max_age }: NodeLeases) -> Result<CheckKind, String> {
    Ok(CheckKind::NodeLeases {
        min_fresh: share("nodeLeases.minFresh", min_fresh, 0.4)?,
        max_age: span("nodeLeases.maxAge", max_age.as_deref(), "40s", AGES)?,
    })
}

fn api_service(ApiService { name }: ApiService) -> Result<CheckKind, String> {
    Ok(CheckKind::ApiService { name: object_name("apiService.name", name)? })
}

fn available(Available { kind, namespace, name }: Available) -> Result<CheckKind, String> {
    Ok(CheckKind::Available {
        kind: match kind {
            Kind::Deployment => Workload::Deployment,
            Kind::StatefulSet => Workload::StatefulSet,
            Kind::DaemonSet => Workload::DaemonSet,
        },
        namespace: object_name("available.namespace", namespace)?,
        name: object_name("available.name", name)?,
    })
}

fn object_name(field: &str, name: String) -> Result<Box<str>, String> {
    if is_name(&name) { Ok(name.into()) } else { Err(format!("{field}: {name:?} is no name")) }
}

fn share(field: &str, value: Option<f64>, default: f64) -> Result<f64, String> {
    let value = value.unwrap_or(default);
    if value > 0.0 && value <= 1.0 {
        return Ok(value);
    }
    Err(format!("{field}: {value} is not above 0 and at most 1"))
}

fn span(
    field: &str,
    text: Option<&str>,
    default: &str,
    [least, most]: [Duration; 2],
) -> Result<Duration, String> {
    let text = text.unwrap_or(default);
    let value = text.parse::<GoDuration>().map_err(|error| format!("{field}: {error}"))?;
    let value = value.to_std();
    if value < least || value > most {
        return Err(format!("{field}: {text} is not between {least:?} and {most:?}"));
    }
    Ok(value)
}

fn threshold(field: &str, value: Option<u32>, default: u32) -> Result<u32, String> {
    let value = value.unwrap_or(default);
    if (1..=THRESHOLD_MAX).contains(&value) {
        return Ok(value);
    }
    Err(format!("{field}: {value} is not between 1 and {THRESHOLD_MAX}"))
}

#[cfg(test)]
mod tests;
