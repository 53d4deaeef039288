//! `metadata.name`.

use super::shapes::Kind;
use crate::findings::Findings;
use crate::formats::{label_problem, subdomain_problem};
use crate::place::Place;

pub(crate) fn check(kind: Kind, object: &Place<'_>, findings: &mut Findings) {
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
