//! What is wrong with an object, before it is stored: the judgement that the command `validate`,
//! and whoever admits objects, give alike. Pure: no I/O, no clock, and no panic on any input
//! (`rule:any-json-is-survived`). The rules stand in `RULES.md`.
//!
//! [`validate`] judges one request. What it must know of other objects, of the licence and of the
//! network it takes from an [`Environment`]; a check that this tells nothing about is named as not
//! done, never guessed.
//!
//! | file | holds |
//! |---|---|
//! | `kind.rs`, `operation.rs` | what is judged, and what is to happen to it |
//! | `environment.rs`, `network_checks.rs`, `question.rs` | what is known beside the object, and what the network could be asked |
//! | `field_error.rs`, `findings.rs` | what is wrong, in the API server's words, and the list of it |
//! | `place.rs`, `shape.rs`, `shapes.rs` | a field of an object, and the types that fields have |
//! | `limit.rs`, `limits.rs` | what fields may hold beside that |
//! | `subject.rs` | an object as it is and as it was |
//! | `stored.rs` | errors that are not new |
//! | `name.rs`, `formats.rs`, `login.rs`, `endpoint.rs`, `taints.rs` | names, texts, SSH, URLs and taints, which several kinds have |
//! | `cluster.rs`, `credential.rs`, `machine.rs` | rules of TKEStack's kinds |
//! | `licence.rs`, `known_clusters.rs` | limits, and what is counted against them |
//! | `kubefed_cluster.rs`, `kubefed_config.rs` | rules of KubeFed's kinds |
//! | `cluster_cidr.rs`, `node_selector.rs` | rules of ClusterCIDR |
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

mod aws_cluster;
mod cluster;
mod credential;
mod endpoint;
mod findings;
mod formats;
mod kubefed_cluster;
mod limits;
mod machine;
mod name;
mod network_checks;
mod node_selector;
mod operation;
mod place;
mod shape;
mod shapes;
mod stored;
mod subject;

pub use endpoint::{Endpoint, EndpointError};
pub use findings::{ErrorType, FieldError};
pub use findings::{Findings, Unchecked};
pub use network_checks::Question;
pub use network_checks::{CheckResult, NetworkChecks};
pub use network_checks::{Environment, Licence};
pub use operation::Operation;
pub use shapes::Kind;

use serde_json::Value;

use crate::subject::Subject;

/// Judges a request: `object` is what is to be stored, and for a deletion what is stored.
///
/// Static rules come first, then those about other objects, and those about the network only when
/// nothing is wrong yet.
pub fn validate(
    kind: Kind,
    object: &Value,
    operation: Operation<'_>,
    environment: &Environment,
) -> Findings {
    let mut findings = Findings::default();
    match operation {
        Operation::UpdateStatus { .. } if kind == Kind::KubeFedCluster => {
            kubefed_cluster::status(object, &mut findings);
        }
        // rule:deletions-and-status-writes-are-free
        Operation::Delete | Operation::UpdateStatus { .. } => {}
        Operation::Update { old } if subject::only_metadata_differs(old, object) => {}
        Operation::Create => spec(kind, &Subject::new(object, None, environment), &mut findings),
        Operation::Update { old } => {
            spec(kind, &Subject::new(object, Some(old), environment), &mut findings);
        }
    }
    findings
}

fn spec(kind: Kind, subject: &Subject<'_>, findings: &mut Findings) {
    *findings = static_rules(kind, subject);
    if let Some(old) = subject.old() {
        let before = static_rules(kind, &Subject::new(old, None, subject.environment));
        stored::forget(findings, &before, subject.object(), old);
    }
    match kind {
        Kind::Cluster => cluster::about_others(subject, findings),
        Kind::Machine => machine::about_others(subject, findings),
        Kind::KubeFedCluster => kubefed_cluster::about_others(subject, findings),
        Kind::ClusterCredential | Kind::KubeFedConfig | Kind::ClusterCidr | Kind::AwsCluster => {}
    }
    if !findings.errors.is_empty() {
        return;
    }
    match kind {
        Kind::Cluster => cluster::network(subject, findings),
        Kind::Machine => machine::network(subject, findings),
        Kind::ClusterCredential
        | Kind::KubeFedCluster
        | Kind::KubeFedConfig
        | Kind::ClusterCidr
        | Kind::AwsCluster => {}
    }
}

fn static_rules(kind: Kind, subject: &Subject<'_>) -> Findings {
    let mut findings = Findings::default();
    shape::check(&subject.root(), shapes::of(kind), &mut findings);
    shape::check_limit(&subject.root(), limits::of(kind), &mut findings);
    name::check(kind, &subject.root(), &mut findings);
    match kind {
        Kind::Cluster => cluster::check(subject, &mut findings),
        Kind::ClusterCredential => credential::check(&subject.root(), &mut findings),
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
