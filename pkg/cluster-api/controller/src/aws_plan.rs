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
    /// Kind and name of the identity whose credentials are used, if the spec names one.
    pub(crate) identity: Option<String>,
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
    let identity = spec.as_ref().ok().and_then(|spec| spec.identity_ref.as_ref());
    let identity = identity.map(|it| format!("{} {}", it.kind, it.name));
    let cluster = objects.iter().find(|it| {
        is_of(it, GROUP, "Cluster")
            && namespace_of(it) == namespace
            && it["spec"]["infrastructureRef"]["kind"] == AWS_CLUSTER
            && it["spec"]["infrastructureRef"]["name"] == name.as_str()
    });
    let outcome = spec.and_then(|spec| forecast_of(object, &spec, cluster, given));
    Planned { namespace, name, region, identity, outcome }
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
        // AWS is not asked: the names of zones tell their types.
        known_zones: Vec::new(),
        api_port: aws_spec::api_port(&owner)?,
        pods_in_vpc: named["metadata"]["annotations"][CNI_ANNOTATION] == "AmazonVPC",
        applied_tags: BTreeSet::new(),
        default_nat_mode: given.default_nat_mode,
        keep_foreign_rules: false,
        prune_subnets: false,
        allow_load_balancer_recreate: false,
        created_load_balancer: None,
    };
    if given.zones.is_empty() && aws_spec::needs_zones(spec) {
        let problem = "no subnets are set: name the zones with --zones";
        return Err(vec![SpecError::new("spec.network.subnets", problem)]);
    }
    let wanted = aws_spec::read(spec, &circumstances)?;
    let desired = Desired::from_spec(&wanted.spec)?;
    let unsupported = [wanted.unsupported, desired.contradictions.clone()].concat();
    aws_spec::refuse_unsupported(&unsupported)?;
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
mod tests {
    use serde_json::json;

    use super::*;

    const SAMPLE: &str = include_str!("../../../../config/samples/cluster-api.yaml");

    fn given() -> Given {
        Given { zones: Vec::new(), default_nat_mode: NatMode::PerZone }
    }

    fn count(said: &Forecast, operation: &str) -> usize {
        said.writes.iter().filter(|planned| planned.action.operation() == operation).count()
    }

    #[test]
    fn the_sample_is_planned_as_its_cluster_says() {
        let objects: Vec<Value> = serde_saphyr::from_multiple(SAMPLE).unwrap();
        let planned = of_manifests(&objects, &given());
        let [Planned { namespace, name, region, identity: None, outcome: Ok(said) }] = &planned[..]
        else {
            panic!("{planned:?}")
        };
        assert_eq!((&**namespace, &**name, &**region), ("default", "testnetwork3", "us-east-2"));
        assert!(said.is_reached && said.problems.is_empty(), "{said:?}");
        for (operation, number) in [
            ("CreateVpc", 1),
            ("CreateSubnet", 6),
            ("CreateNatGateway", 3),
            ("CreateRouteTable", 6),
            ("CreateSecurityGroup", 5),
            ("RunInstances", 1),
            ("CreateLoadBalancer", 1),
        ] {
            assert_eq!(count(said, operation), number, "{operation} of {said:#?}");
        }
        // Without its Cluster the version of the AWSCluster says how it is meant.
        let alone =
            of_manifests(&objects[1..], &Given { default_nat_mode: NatMode::None, ..given() });
        let said = alone[0].outcome.as_ref().unwrap();
        assert_eq!((count(said, "RunInstances"), count(said, "CreateNatGateway")), (1, 0));
    }

    #[test]
    fn what_is_wrong_is_reported_and_others_are_planned_all_the_same() {
        let aws_cluster = |name: &str, spec: Value| {
            json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
                "metadata": {"name": name}, "spec": spec})
        };
        let objects = [
            aws_cluster(
                "word",
                json!({"region": "us-east-2", "network": {"natGateways": {"mode": "Many"}}}),
            ),
            aws_cluster("form", json!({"region": 7})),
            aws_cluster("zones", json!({"region": "us-east-2"})),
            json!({"apiVersion": "v1", "kind": "AWSCluster", "metadata": {"name": "of another group"}}),
        ];
        let zones = vec!["us-east-2a".to_owned(), "us-east-2b".to_owned()];
        let planned = of_manifests(&objects, &Given { zones, ..given() });
        let [word, form, zones] = &planned[..] else { panic!("{planned:?}") };
        assert_eq!(word.outcome.as_ref().unwrap_err()[0].path, "spec.network.natGateways.mode");
        assert_eq!(form.outcome.as_ref().unwrap_err()[0].path, "spec");
        assert_eq!(count(zones.outcome.as_ref().unwrap(), "CreateNatGateway"), 2);
    }

    #[test]
    fn without_zones_to_choose_subnets_of_nothing_else_is_reported() {
        let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
            "metadata": {"name": "zones"}, "spec": {"region": "us-east-2"}});
        let planned = of_manifests(&[object], &given());
        let messages: Vec<_> =
            planned[0].outcome.as_ref().unwrap_err().iter().map(ToString::to_string).collect();
        assert!(messages.len() == 1 && messages[0].contains("--zones"), "{messages:?}");
    }

    /// Upstream writes the ids of what it made into the spec; so does `--mirror-ids-to-spec`.
    #[test]
    fn what_an_exported_manifest_names_by_its_id_is_taken_to_exist() {
        let subnet = |id: &str, zone: &str, public: bool| json!({"id": id, "availabilityZone": zone, "isPublic": public});
        let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
            "metadata": {"name": "exported"}, "spec": {"region": "us-east-2", "network": {
                "vpc": {"id": "vpc-1", "cidrBlock": "10.0.0.0/16"},
                "subnets": [subnet("subnet-f0000001", "us-east-2a", true), subnet("subnet-f0000002", "us-east-2b", false)]}}});
        let planned = of_manifests(&[object], &given());
        let said = planned[0].outcome.as_ref().unwrap();
        assert!(said.is_reached && said.problems.is_empty(), "{said:#?}");
        let made = ["CreateVpc", "CreateSubnet", "CreateNatGateway", "CreateLoadBalancer"];
        assert_eq!(made.map(|operation| count(said, operation)), [0, 0, 0, 1]);
    }

    /// All kinds of resources that upstream's provider makes for an AWSCluster, by what creates them.
    const KINDS: [&str; 12] = [
        "CreateVpc",
        "CreateSubnet",
        "CreateInternetGateway",
        "CreateEgressOnlyInternetGateway",
        "AllocateAddress",
        "CreateNatGateway",
        "CreateRouteTable",
        "CreateSecurityGroup",
        "RunInstances",
        "CreateLoadBalancer",
        "CreateTargetGroup",
        "CreateListener",
    ];

    /// By upstream's book: a VPC of three zones, in each a public and a private subnet with route tables and a NAT
    /// gateway; four groups; a load balancer.
    const CLASSIC: [usize; 12] = [1, 6, 1, 0, 3, 3, 6, 4, 0, 1, 0, 0];
    const NETWORK: [usize; 12] = [1, 6, 1, 0, 3, 3, 6, 4, 0, 1, 1, 1];
    const DUAL_STACK: [usize; 12] = [1, 6, 1, 1, 3, 3, 6, 4, 0, 1, 1, 1];

    #[test]
    fn the_templates_of_upstream_lead_to_its_inventory_or_are_refused() {
        let all = "../../../tests/cluster-api-provider-aws/objects.yaml";
        let all =
            std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(all));
        let zones = ["a", "b", "c", "d"].map(|zone| format!("us-west-2{zone}")).to_vec();
        let all = all.unwrap().replace("aws-availability-zone-1", &zones[0]);
        let all = all.replace("aws-availability-zone-2", &zones[1]);
        let all = all.replace("\"subnet-0\"", "\"subnet-00000000\"");
        let all = all.replace("\"subnet-1\"", "\"subnet-00000001\"");
        let all: Vec<Value> = serde_saphyr::from_str(&all).unwrap();
        let mut objects = Vec::new();
        for mut object in all {
            if object["kind"] == "AWSClusterTemplate" {
                object["kind"] = json!("AWSCluster");
                object["spec"] = object["spec"]["template"]["spec"].clone();
                object["spec"]["region"] = json!("us-west-2");
            }
            if object["kind"] == "AWSCluster" {
                objects.push(object);
            }
        }
        let bucket = Err("spec.s3Bucket");
        let limit = Err("spec.network.vpc.availabilityZoneUsageLimit");
        let wanted = [
            Ok(DUAL_STACK),
            Ok(DUAL_STACK),
            bucket,
            Ok(DUAL_STACK),
            Ok(NETWORK),
            Ok(NETWORK),
            limit,
            Ok(CLASSIC),
            Ok(CLASSIC),
            limit,
            bucket,
            // In a VPC of its user.
            limit,
            Ok([1, 4, 1, 0, 2, 2, 4, 4, 0, 1, 0, 0]),
            limit,
            limit,
            limit,
            Ok(CLASSIC),
        ];
        let planned = of_manifests(&objects, &Given { zones, ..given() });
        assert_eq!(planned.len(), wanted.len());
        for ((object, planned), wanted) in objects.iter().zip(&planned).zip(wanted) {
            let found = match &planned.outcome {
                Ok(said) => Ok(KINDS.map(|operation| count(said, operation))),
                Err(errors) => Err(&*errors[0].path),
            };
            assert_eq!(found, wanted, "{object}: {:#?}", planned.outcome);
        }
    }
}
