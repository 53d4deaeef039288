//! The judgement of each object, and [`Identity`]: which object it is.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use kube_api::printable;
use serde_json::Value;
use tokio::time::Instant;
use validation::{
    Environment, ErrorType, FieldError, Findings, Kind, NetworkChecks, Operation, Question,
    Unchecked, validate,
};

use super::arguments::Wanted;
use crate::network_checker::{DialPolicy, NetworkChecker, NetworkOptions};
use crate::{Asker, StoredObjects};

/// Kinds without rules that a manifest may contain too: group or version, and kind.
const WITHOUT_RULES: [(&str, &str); 4] = [
    ("v1", "Namespace"),
    ("v1", "Secret"),
    ("cluster.x-k8s.io", "Cluster"),
    ("cluster.x-k8s.io", "Machine"),
];

/// An object, and what is said of it.
pub(super) struct Judged {
    pub(super) identity: Identity,
    pub(super) findings: Findings,
}

impl Judged {
    pub(super) fn is_valid(&self) -> bool {
        self.findings.errors.is_empty()
    }
}

/// Judges one object after the other; each counts as stored for those after it.
pub(super) async fn all(
    objects: &[Value],
    old: &[Value],
    wanted: Option<Wanted>,
    mut environment: Environment,
    network: Option<&Network>,
) -> Vec<Judged> {
    let mut judged = Vec::new();
    for object in objects {
        let identity = Identity::of(object);
        let findings = match Kind::of(object) {
            Some(kind) => {
                let stored = identity.find(old).filter(|_| wanted != Some(Wanted::Create));
                let mut findings = one(kind, object, stored, wanted, &environment);
                let questions = questions(&findings);
                if let Some(network) = network.filter(|_| !questions.is_empty()) {
                    environment.network_checks = network.ask(&questions, object).await;
                    findings = one(kind, object, stored, wanted, &environment);
                }
                if findings.errors.is_empty() {
                    store(kind, object, &mut environment);
                }
                findings
            }
            None => of_no_kind(&identity),
        };
        judged.push(Judged { identity, findings });
    }
    judged
}

/// Network checks of an object without other errors.
fn questions(findings: &Findings) -> Vec<Question> {
    if !findings.errors.is_empty() {
        return Vec::new();
    }
    findings.unchecked.iter().filter_map(|unchecked| unchecked.asks.clone()).collect()
}

fn one(
    kind: Kind,
    object: &Value,
    stored: Option<&Value>,
    wanted: Option<Wanted>,
    environment: &Environment,
) -> Findings {
    match (stored, wanted) {
        (Some(old), _) => validate(kind, object, Operation::Update { old }, environment),
        (None, Some(Wanted::Update)) => {
            let why = "Not found: it is not among the objects of --old";
            error("metadata.name", ErrorType::Invalid, why.to_owned())
        }
        (None, _) => validate(kind, object, Operation::Create, environment),
    }
}

fn of_no_kind(identity: &Identity) -> Findings {
    let Identity { api_version, kind, .. } = identity;
    let group = api_version.split_once('/').map_or(&**api_version, |(group, _)| group);
    if WITHOUT_RULES.contains(&(group, kind)) {
        let question = format!("there are no rules for {kind} of {api_version}");
        let unchecked = Unchecked { field: "kind".to_owned(), question, told_by: None, asks: None };
        return Findings { unchecked: vec![unchecked], ..Findings::default() };
    }
    let known = Kind::ALL.map(|kind| format!("\"{} of {}\"", kind.name(), kind.api_version()));
    let detail = format!(
        "Unsupported value: \"{kind} of {api_version}\": supported values: {}",
        known.join(", ")
    );
    error("kind", ErrorType::NotSupported, detail)
}

fn error(field: &str, error_type: ErrorType, detail: String) -> Findings {
    let error = FieldError { field: field.to_owned(), error_type, detail };
    Findings { errors: vec![error], ..Findings::default() }
}

/// Into a list that is known; in one that is not known it would stand alone.
fn store(kind: Kind, object: &Value, environment: &mut Environment) {
    let list = match kind {
        Kind::Cluster => &mut environment.clusters,
        Kind::Machine => &mut environment.machines,
        Kind::ClusterCredential => &mut environment.cluster_credentials,
        Kind::KubeFedCluster => &mut environment.kube_fed_clusters,
        Kind::KubeFedConfig | Kind::ClusterCidr | Kind::AwsCluster => return,
    };
    if let Some(list) = list {
        let identity = Identity::of(object);
        list.retain(|stored| identity.name.is_empty() || Identity::of(stored) != identity);
        list.push(Arc::new(object.clone()));
    }
}

/// Group, version, kind, namespace and name, as far as an object says them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Identity {
    pub(super) fn of(object: &Value) -> Self {
        let text = |path: &str| {
            object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Self {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        }
    }

    /// The stored object of the same name.
    pub(super) fn find<'a>(&self, objects: &'a [Value]) -> Option<&'a Value> {
        let mut objects = objects.iter().filter(|_| !self.name.is_empty());
        objects.find(|object| Self::of(object) == *self)
    }
}

/// `Machine/mc-1`, `KubeFedCluster/fed/one`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |text: &str, other| if text.is_empty() { other } else { printable(text) };
        f.write_str(&or(&self.kind, "(no kind)".to_owned()))?;
        if !self.namespace.is_empty() {
            write!(f, "/{}", printable(&self.namespace))?;
        }
        write!(f, "/{}", or(&self.name, "(no name)".to_owned()))
    }
}

/// For all questions about one object.
const LIMIT: Duration = Duration::from_secs(20);

/// Asks for one object after the other.
pub(super) struct Network {
    checker: NetworkChecker,
    /// Every object that is named, with the credentials among them.
    objects: StoredObjects,
}

impl Network {
    /// Every address may be dialled that the controller dials without further flags.
    pub(super) fn new(objects: Vec<Value>) -> anyhow::Result<Self> {
        let policy = DialPolicy::default();
        let options = NetworkOptions {
            ssh: true,
            import: true,
            policy,
            insecure_without_ca: false,
            secret_namespace: None,
        };
        let checker = NetworkChecker::new(options).context("cannot start the network checks")?;
        Ok(Self { checker, objects: StoredObjects::new(objects, None) })
    }

    /// The answers that there are.
    pub(super) async fn ask(&self, questions: &[Question], object: &Value) -> NetworkChecks {
        let end = Instant::now() + LIMIT;
        self.checker.answers(Asker::Command, questions, object, &self.objects, end).await.known
    }
}

#[cfg(test)]
mod tests;
