use serde_json::json;

use super::*;

const SAMPLE: &str = include_str!("../../../../../config/samples/cluster-api.yaml");

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
    let [Planned { namespace, name, region, outcome: Ok(said) }] = &planned[..] else {
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
    let alone = of_manifests(&objects[1..], &Given { default_nat_mode: NatMode::None, ..given() });
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
            "subnets": [subnet("subnet-1", "us-east-2a", true), subnet("subnet-2", "us-east-2b", false)]}}});
    let planned = of_manifests(&[object], &given());
    let said = planned[0].outcome.as_ref().unwrap();
    assert!(said.is_reached && said.problems.is_empty(), "{said:#?}");
    let made = ["CreateVpc", "CreateSubnet", "CreateNatGateway", "CreateLoadBalancer"];
    assert_eq!(made.map(|operation| count(said, operation)), [0, 0, 0, 1]);
}
