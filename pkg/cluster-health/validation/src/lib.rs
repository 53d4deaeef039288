//! Errors of an object before it is stored: the one judgement that the command `validate`
//! and the admission webhook share. Pure: no I/O, no clock, and no panic on any input
//! (`rule:any-json-is-survived`). The rules stand in `RULES.md`.
//!
//! [`validate`] judges one request. Other objects, the licence and the network come from an
//! [`Environment`]; a check that needs a missing part of it is reported as not done, never guessed.
//!
//! | file | holds |
//! |---|---|
//! | `kind.rs`, `subject.rs` | the kind, the operation and words for missing fields; an object with its stored state, and its SSH and licence |
//! | `schema.rs` | types, limits and required fields, read from the CRDs |
//! | `network_checks.rs` | the [`Environment`], and questions to the network |
//! | `findings.rs` | the errors in the API server's words, warnings, and checks not made |
//! | `field.rs` | a field of an object |
//! | `formats.rs`, `address.rs` | names, texts and times; addresses of API servers and proxies |
//! | `cluster.rs`, `machine.rs` | rules of TKEStack's kinds |
//! | `kubefed_cluster.rs` | rules of KubeFed's kinds |
//! | `node_selector.rs` | rules of ClusterCIDR |
//! | `aws_cluster.rs` | rules of AWSCluster |

#![cfg_attr(
    not(test),
    forbid(
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::arithmetic_side_effects
    )
)]

mod address;
mod aws_cluster;
mod cluster;
mod field;
mod findings;
mod formats;
mod kind;
mod kubefed_cluster;
mod machine;
mod network_checks;
mod node_selector;
mod schema;
mod subject;

use field::Field;
use formats::{label_problem, subdomain_problem};
use serde_json::Value;
use subject::Subject;

pub use address::{Address, AddressError};
pub use findings::{ErrorType, FieldError, Findings, Unchecked};
pub use kind::{Kind, Operation};
pub use network_checks::{CheckResult, Environment, Licence, NetworkChecks, Question};

/// Judges a request to store `object`.
///
/// Static rules come first, then those about other objects, and those about the network only when
/// nothing is wrong yet.
pub fn validate(
    kind: Kind,
    object: &Value,
    operation: Operation<'_>,
    environment: &Environment,
) -> Findings {
    let old = match operation {
        // rule:deletions-and-status-writes-are-free
        Operation::Update { old } if subject::only_metadata_differs(old, object) => {
            return Findings::default();
        }
        Operation::Update { old } => Some(old),
        Operation::Create => None,
    };
    let subject = &Subject::new(object, old, environment);
    let mut findings = static_rules(kind, subject);
    if let Some(old) = old {
        let before = static_rules(kind, &Subject::new(old, None, environment));
        forget(&mut findings, &before, object, old);
    }
    match kind {
        Kind::Cluster => cluster::about_others(subject, &mut findings),
        Kind::Machine => machine::about_others(subject, &mut findings),
        Kind::KubeFedCluster => kubefed_cluster::about_others(subject, &mut findings),
        Kind::ClusterCredential | Kind::KubeFedConfig | Kind::ClusterCidr | Kind::AwsCluster => {}
    }
    match kind {
        _ if !findings.errors.is_empty() => {}
        Kind::Cluster => cluster::network(subject, &mut findings),
        Kind::Machine => machine::network(subject, &mut findings),
        Kind::ClusterCredential
        | Kind::KubeFedCluster
        | Kind::KubeFedConfig
        | Kind::ClusterCidr
        | Kind::AwsCluster => {}
    }
    findings
}

fn static_rules(kind: Kind, subject: &Subject<'_>) -> Findings {
    let mut findings = Findings::default();
    schema::of(kind).check_fields(&subject.root(), &mut findings);
    check_name(kind, &subject.root(), &mut findings);
    match kind {
        Kind::Cluster => cluster::check(subject, &mut findings),
        Kind::ClusterCredential => cluster::check_credential(&subject.root(), &mut findings),
        Kind::Machine => machine::check(subject, &mut findings),
        Kind::KubeFedCluster => kubefed_cluster::check(&subject.root(), &mut findings),
        Kind::KubeFedConfig => {
            kubefed_cluster::check_kubefed_config(&subject.root(), &mut findings);
        }
        Kind::ClusterCidr => node_selector::check_cluster_cidr(subject, &mut findings),
        Kind::AwsCluster => aws_cluster::check(subject, &mut findings),
    }
    findings
}

/// Takes away what was wrong before in the same way, in a part of the spec that did not change.
fn forget(findings: &mut Findings, before: &Findings, object: &Value, old: &Value) {
    let is_old = |error: &FieldError| {
        before.errors.contains(error) && part(object, &error.field) == part(old, &error.field)
    };
    findings.errors.retain(|error| !is_old(error));
    findings.warnings.retain(|warning| !before.warnings.contains(warning));
}

/// The field of the spec that a path leads into, such as `spec.machines`.
fn part<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut names = path.split(['.', '[']);
    let first = object.get(names.next()?);
    match names.next() {
        Some(second) => first?.get(second),
        None => first,
    }
}

fn check_name(kind: Kind, object: &Field<'_>, findings: &mut Findings) {
    let metadata = object.field("metadata");
    let name = metadata.field("name");
    let Some(text) = name.word() else {
        // The API server makes a name of it.
        if metadata.field("generateName").word().is_none() {
            findings.required(&name, "name or generateName is required");
        }
        return;
    };
    let problem = match kind {
        Kind::Cluster | Kind::Machine | Kind::ClusterCidr => label_problem(text),
        Kind::ClusterCredential | Kind::KubeFedCluster | Kind::KubeFedConfig | Kind::AwsCluster => {
            subdomain_problem(text)
        }
    };
    if let Some(problem) = problem {
        findings.invalid(&name, problem);
    }
}
