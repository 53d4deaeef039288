//! [`of_manifests`]: what would be made on AWS for the AWSClusters of manifests, if there were
//! nothing of them yet. Pure; the command `plan` calls it. The plan of a reconciliation is made by
//! `aws-network`.

use std::collections::BTreeSet;

use aws_network::{
    DEFAULT_OWNER_TAG, Desired, Forecast, Goal, Identity, Memory, NatMode, Reconciliation,
    SpecError, Timestamp, forecast,
};
use serde_json::Value;

use crate::api::Dialect;
use crate::api::aws_cluster::AwsClusterSpec;
use crate::api::cluster::ClusterSpec;
use crate::api::{CNI_ANNOTATION, DIALECT_ANNOTATION, GROUP, INFRASTRUCTURE_GROUP};
use crate::aws_spec::{self, Circumstances};

const AWS_CLUSTER: &str = "AWSCluster";
/// Namespace of an object that names none.
const DEFAULT_NAMESPACE: &str = "default";

/// Inputs that a manifest does not contain.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// Zones of the region, for specs that name no subnets.
    pub(crate) zones: Vec<String>,
    /// Where a spec names no mode.
    pub(crate) default_nat_mode: NatMode,
}

/// The plan of one AWSCluster.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) region: String,
    /// The writes, or the errors of the spec.
    pub(crate) outcome: Result<Forecast, Vec<SpecError>>,
}

/// Plans each AWSCluster among the objects. Its Cluster is the one among them that refers to it.
pub(crate) fn of_manifests(objects: &[Value], given: &Given) -> Vec<Planned> {
    let is_aws_cluster = |object: &&Value| is_of(object, INFRASTRUCTURE_GROUP, AWS_CLUSTER);
    objects.iter().filter(is_aws_cluster).map(|object| plan(object, objects, given)).collect()
}

fn plan(object: &Value, objects: &[Value], given: &Given) -> Planned {
    let name = text(&object["metadata"]["name"]).to_owned();
    let namespace = namespace_of(object).to_owned();
    let spec: Result<AwsClusterSpec, _> = read(&object["spec"], "spec");
    let region = spec.as_ref().map(|spec| spec.region.clone()).unwrap_or_default();
    let cluster = objects.iter().find(|it| {
        is_of(it, GROUP, "Cluster")
            && namespace_of(it) == namespace
            && it["spec"]["infrastructureRef"]["kind"] == AWS_CLUSTER
            && it["spec"]["infrastructureRef"]["name"] == name.as_str()
    });
    let outcome = spec.and_then(|spec| forecast_of(object, &spec, cluster, given));
    Planned { namespace, name, region, outcome }
}

fn forecast_of(
    object: &Value,
    spec: &AwsClusterSpec,
    cluster: Option<&Value>,
    given: &Given,
) -> Result<Forecast, Vec<SpecError>> {
    let owner: ClusterSpec = match cluster {
        Some(cluster) => read(&cluster["spec"], "spec of the Cluster")?,
        None => ClusterSpec::default(),
    };
    let dialect = dialect_of(cluster.unwrap_or(object));
    let named = cluster.unwrap_or(object);
    let circumstances = Circumstances {
        identity: Identity {
            cluster: text(&named["metadata"]["name"]).to_owned(),
            owner_id: "planned".to_owned(),
            owner_tag: DEFAULT_OWNER_TAG.to_owned(),
            adopt: false,
        },
        namespace: namespace_of(object).to_owned(),
        owner: dialect,
        zones: given.zones.clone(),
        api_port: aws_spec::api_port(&owner)?,
        pods_in_vpc: named["metadata"]["annotations"][CNI_ANNOTATION] == "AmazonVPC",
        applied_tags: BTreeSet::new(),
        default_nat_mode: given.default_nat_mode,
        keep_foreign_rules: false,
        prune_subnets: false,
        allow_load_balancer_recreate: false,
    };
    if given.zones.is_empty() && aws_spec::needs_zones(spec) {
        let problem = "no subnets are set: name the zones with --zones";
        return Err(vec![SpecError::new("spec.network.subnets", problem)]);
    }
    let wanted = aws_spec::read(spec, &circumstances)?;
    let desired = Desired::from_spec(&wanted.spec)?;
    aws_spec::refuse_unsupported(&wanted.unsupported)?;
    let reconciliation = Reconciliation::new(Goal::Present(Box::new(desired)), Memory::default());
    Ok(forecast(&reconciliation, Timestamp::default()))
}

/// The dialect of a manifest. One that was exported has the version in which the API server
/// answers, whichever its user wrote.
fn dialect_of(manifest: &Value) -> Dialect {
    let remembered = text(&manifest["metadata"]["annotations"][DIALECT_ANNOTATION]);
    let reference = text(&manifest["spec"]["infrastructureRef"]["apiVersion"]);
    let versions = [text(&manifest["apiVersion"]), reference].map(Dialect::of_version);
    let older = versions.into_iter().find(|dialect| *dialect == Dialect::V1Alpha2);
    Dialect::from_name(remembered).or(older).unwrap_or(Dialect::V1Beta2)
}

fn read<T: serde::de::DeserializeOwned>(value: &Value, path: &str) -> Result<T, Vec<SpecError>> {
    T::deserialize(value).map_err(|error| vec![SpecError::new(path, error.to_string())])
}

fn is_of(object: &Value, group: &str, kind: &str) -> bool {
    let version = text(&object["apiVersion"]);
    object["kind"] == kind && version.split_once('/').is_some_and(|(of, _)| of == group)
}

fn namespace_of(object: &Value) -> &str {
    let named = text(&object["metadata"]["namespace"]);
    if named.is_empty() { DEFAULT_NAMESPACE } else { named }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
