use aws_network::{
    Address, BalancerState, Goal, HealthCheck, Identity, Instance, InstanceState,
    NetworkLoadBalancer, Query, Reconciliation, Reply, Scope, SecurityGroup, Subnet, Tags,
    Timestamp, Vpc,
};
use serde_json::json;

use super::super::*;
use crate::aws_spec;
use crate::aws_spec::Circumstances;

fn identity() -> Identity {
    Identity {
        cluster: "c".to_owned(),
        owner_id: "u".to_owned(),
        owner_tag: "owner".to_owned(),
        adopt: false,
    }
}

fn desired() -> Desired {
    let spec = json!({"region": "us-east-2", "bastion": {"enabled": true}, "network": {
        "vpc": {"id": "vpc-1", "cidrBlock": "10.0.0.0/16"}, "securityGroupOverrides": {"node": "sg-given"}, "subnets": [
        {"cidrBlock": "10.0.0.0/24", "availabilityZone": "us-east-2a", "isPublic": true},
        {"cidrBlock": "10.0.1.0/24", "availabilityZone": "us-east-2a"},
        {"cidrBlock": "10.0.2.0/24", "availabilityZone": "us-east-2b"}]}});
    let given = Circumstances {
        identity: identity(),
        namespace: "ns".to_owned(),
        owner: crate::api::Dialect::V1Beta2,
        zones: Vec::new(),
        known_zones: Vec::new(),
        api_port: 6443,
        pods_in_vpc: false,
        applied_tags: std::collections::BTreeSet::new(),
        default_nat_mode: aws_network::NatMode::None,
        keep_foreign_rules: false,
        prune_subnets: false,
        allow_load_balancer_recreate: false,
        created_load_balancer: None,
    };
    let spec = serde_json::from_value(spec).unwrap();
    Desired::from_spec(&aws_spec::read(&spec, &given).unwrap().spec).unwrap()
}

fn observed(replies: Vec<(Query, Reply)>) -> Observed {
    let mut reconciliation =
        Reconciliation::new(Goal::Present(Box::new(desired())), Memory::default());
    for (query, reply) in replies {
        reconciliation.answer(query, reply, Timestamp(1));
    }
    reconciliation.observed().clone()
}

fn subnet(id: &str, cidr: &str, zone: &str) -> Subnet {
    Subnet {
        id: id.to_owned(),
        vpc: "vpc-1".to_owned(),
        cidr: cidr.parse().unwrap(),
        ipv6: None,
        zone: zone.to_owned(),
        map_public_ip: false,
        assigns_ipv6: false,
        available: true,
        tags: identity().base_tags("private"),
    }
}

fn everything() -> Observed {
    let scope = || Scope::Vpc("vpc-1".to_owned());
    let vpc = |id: &str, tags: Tags| Vpc {
        id: id.to_owned(),
        cidr: "10.0.0.0/16".parse().unwrap(),
        secondary: Vec::new(),
        ipv6: None,
        more_ipv6: Vec::new(),
        dns_support: None,
        dns_hostnames: None,
        tags,
    };
    let group = |id: &str, role: &str, tags: Tags| SecurityGroup {
        id: id.to_owned(),
        vpc: "vpc-1".to_owned(),
        name: format!("c-{role}"),
        rules: Vec::new(),
        tags,
    };
    let balancer = aws_network::ClassicLoadBalancer {
        name: "c-apiserver".to_owned(),
        vpc: "vpc-1".to_owned(),
        scheme: Scheme::InternetFacing,
        dns_name: "c.example.org".to_owned(),
        listeners: Vec::new(),
        health_check: HealthCheck {
            protocol: "TCP".to_owned(),
            port: 6443,
            path: None,
            interval: 5,
            timeout: 4,
            healthy: 2,
            unhealthy: 6,
        },
        subnets: vec!["subnet-a".to_owned()],
        groups: vec!["sg-lb".to_owned()],
        attributes: None,
        tags: None,
    };
    let instance = Instance {
        id: "i-1".to_owned(),
        vpc: "vpc-1".to_owned(),
        state: InstanceState::Running,
        launched: 1,
        public_ip: Some([192, 0, 2, 1].into()),
        tags: identity().base_tags("bastion"),
    };
    let address = Address {
        id: "eipalloc-1".to_owned(),
        ip: [192, 0, 2, 9].into(),
        association: None,
        tags: identity().base_tags("common"),
    };
    let subnets = vec![
        subnet("subnet-a", "10.0.0.0/24", "us-east-2a"),
        subnet("subnet-b", "10.0.1.0/24", "us-east-2a"),
        subnet("subnet-c", "10.0.2.0/24", "us-east-2b"),
    ];
    let vpcs = vec![vpc("vpc-0", Tags::new()), vpc("vpc-1", identity().base_tags("common"))];
    let groups = vec![
        group("sg-foreign", "controlplane", Tags::new()),
        group("sg-1", "controlplane", identity().base_tags("controlplane")),
    ];
    observed(vec![
        (Query::TaggedVpcs, Reply::Vpcs(vpcs)),
        (Query::Subnets(scope()), Reply::Subnets(subnets)),
        (Query::Addresses, Reply::Addresses(vec![address])),
        (Query::SecurityGroups(scope()), Reply::SecurityGroups(groups)),
        (Query::Bastions(None), Reply::Bastions(vec![instance])),
        (
            Query::ClassicLoadBalancers(aws_network::Lookup::default()),
            Reply::ClassicLoadBalancers(vec![balancer]),
        ),
    ])
}

#[test]
fn what_machines_and_people_need_is_published_in_upstreams_words() {
    let found = Findings::of(&desired(), &everything(), &Memory::default());
    assert_eq!(found.vpc, Some(VpcStatus { id: "vpc-1".to_owned(), managed: true }));
    assert_eq!(found.host.as_deref(), Some("c.example.org"));
    let zones = [("us-east-2a", true), ("us-east-2b", false)];
    assert_eq!(found.failure_domains, zones.map(|(zone, served)| (zone.to_owned(), served)));
    let network = serde_json::to_value(found.network.unwrap()).unwrap();
    let groups = json!({"controlplane": {"id": "sg-1", "name": "c-controlplane"}, "node": {"id": "sg-given"}});
    assert_eq!(network["securityGroups"], groups);
    assert_eq!(network["natGatewaysIPs"], json!(["192.0.2.9"]));
    assert_eq!(network["apiServerElb"]["dnsName"], "c.example.org");
    assert_eq!(network["apiServerElb"]["scheme"], "internet-facing");
    assert_eq!(found.nat_mode, Some(desired().nat.word()));
    let bastion = found.bastion.unwrap();
    assert_eq!((&*bastion.id, bastion.instance_state.as_deref()), ("i-1", Some("running")));
    assert_eq!(bastion.public_ip.as_deref(), Some("192.0.2.1"));
}

#[test]
fn a_secondary_load_balancer_is_published_and_is_not_the_endpoint() {
    let mut wanted = desired();
    let first = wanted.load_balancer.clone().unwrap();
    let (kind, name) = (LoadBalancerKind::Network, "second".to_owned());
    wanted.secondary_load_balancer = Some(DesiredLoadBalancer { kind, name, ..first });
    let second = NetworkLoadBalancer {
        arn: "arn:second".to_owned(),
        name: "second".to_owned(),
        vpc: "vpc-1".to_owned(),
        scheme: Scheme::Internal,
        is_dualstack: false,
        dns_name: "second.example.org".to_owned(),
        state: BalancerState::Active,
        subnets: vec!["subnet-b".to_owned()],
        groups: vec!["sg-1".to_owned()],
        cross_zone: None,
        listeners: Vec::new(),
        tags: Tags::new(),
    };
    let found = Findings::of(
        &wanted,
        &observed(vec![
            (Query::SecurityGroups(Scope::Tagged), Reply::SecurityGroups(Vec::new())),
            (
                Query::NetworkLoadBalancers(aws_network::Lookup::default()),
                Reply::NetworkLoadBalancers(vec![second], Vec::new()),
            ),
        ]),
        &Memory::default(),
    );
    assert_eq!(found.host, None);
    let network = serde_json::to_value(found.network.unwrap()).unwrap();
    assert_eq!(network.get("apiServerElb"), None);
    let second = &network["secondaryAPIServerELB"];
    assert_eq!(second["dnsName"], "second.example.org");
    assert_eq!(
        (&second["scheme"], &second["loadBalancerType"]),
        (&json!("internal"), &json!("nlb"))
    );
}

#[test]
fn what_was_not_looked_at_says_nothing() {
    let mut unnamed = desired();
    unnamed.vpc_id = None;
    let found = Findings::of(&unnamed, &Observed::default(), &Memory::default());
    assert_eq!(found, Findings::default());
}

#[test]
fn the_mode_that_takes_the_place_of_a_refused_one_is_published() {
    let nat = NatPolicy::Regional { region: "us-east-2".to_owned(), is_offered: true };
    let mut wanted = Desired { nat, ..desired() };
    let modes = |wanted: &Desired| {
        [None, Some("UnsupportedOperation")].map(|code| {
            let regional_nat_refusal = code.map(str::to_owned);
            let memory = Memory { regional_nat_refusal, ..Memory::default() };
            Findings::of(wanted, &everything(), &memory).nat_mode
        })
    };
    assert_eq!(modes(&wanted), [Some("Regional"), None], "us-east-2b has no public subnet");
    wanted.subnets.truncate(2);
    assert_eq!(modes(&wanted), [Some("Regional"), Some("PerAZ")]);
}
