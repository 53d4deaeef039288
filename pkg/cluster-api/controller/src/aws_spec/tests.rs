use aws_network::{DEFAULT_OWNER_TAG, Desired, LoadBalancerKind, Scheme};
use serde_json::{Value, json};

use super::*;
use crate::api::aws_cluster::AwsCluster;

mod balancers;
mod fields;

fn given(owner: Dialect) -> Circumstances {
    Circumstances {
        identity: Identity {
            cluster: "testnetwork3".to_owned(),
            owner_id: "u".to_owned(),
            owner_tag: DEFAULT_OWNER_TAG.to_owned(),
            adopt: false,
        },
        namespace: "default".to_owned(),
        owner,
        zones: ["a", "b", "c"].map(|zone| format!("us-east-2{zone}")).to_vec(),
        known_zones: Vec::new(),
        api_port: 6443,
        pods_in_vpc: false,
        applied_tags: BTreeSet::new(),
        default_nat_mode: NatMode::PerZone,
        keep_foreign_rules: false,
        prune_subnets: false,
        allow_load_balancer_recreate: false,
        created_load_balancer: None,
    }
}

const OLDER: Dialect = Dialect::V1Alpha2;
const NEWER: Dialect = Dialect::V1Beta2;

fn wanted(spec: Value, owner: Dialect) -> Result<Wanted, Vec<SpecError>> {
    read(&serde_json::from_value(spec).unwrap(), &given(owner))
}

fn sample() -> AwsClusterSpec {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../config/samples/cluster-api.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    serde_json::from_value(objects[1]["spec"].clone()).unwrap()
}

#[test]
fn the_sample_is_six_subnets_in_three_zones_with_the_defaults_of_its_dialect() {
    let mut given = given(OLDER);
    given.pods_in_vpc = true;
    let Wanted { spec, unsupported } = read(&sample(), &given).unwrap();
    assert_eq!(unsupported, []);
    assert_eq!((&*spec.region, spec.vpc_cidr.as_deref()), ("us-east-2", Some("10.66.0.0/24")));
    assert_eq!(spec.subnets.len(), 6);
    assert_eq!(spec.subnets.iter().filter(|subnet| subnet.is_public).count(), 3);
    assert_eq!(spec.cni, CniSpec::AmazonVpc);
    assert_eq!(spec.bastion.as_ref().unwrap().key.as_deref(), Some("guohao"));
    assert_eq!(spec.load_balancer.as_ref().unwrap().kind, LoadBalancerKind::Classic);
    let desired = Desired::from_spec(&spec).unwrap();
    assert_eq!(desired.subnets.len(), 6);
}

#[test]
fn an_endpoint_of_the_user_is_no_load_balancer_that_is_lost() {
    let is_published = |host: &str| {
        let endpoint = json!({"host": host, "port": 6443});
        let spec = json!({"region": "us-east-2", "controlPlaneEndpoint": endpoint});
        wanted(spec, NEWER).unwrap().spec.endpoint_published
    };
    for host in ["a-1.us-east-2.elb.amazonaws.com", "a-1.elb.cn-north-1.amazonaws.com.cn"] {
        assert!(is_published(host), "{host}");
    }
    for host in ["api.example.org", "api.elb.example.org", "elb-of-one.example.org", "10.0.0.1", ""]
    {
        assert!(!is_published(host), "{host}");
    }
}

/// Both dialects describe one network.
#[test]
fn both_dialects_mean_the_same() {
    let network = json!({"vpc": {"cidrBlock": "10.0.0.0/20"}, "natGateways": {"mode": "Single"}});
    let [older, newer] = ["networkSpec", "network"]
        .map(|field| wanted(json!({"region": "us-east-2", field: network}), NEWER).unwrap().spec);
    assert_eq!(older, newer);
    assert_eq!(older.nat_mode, NatMode::Single);
}

#[test]
fn the_owner_shows_whose_defaults_the_bastion_has() {
    let bastion = |spec: Value, owner| wanted(spec, owner).unwrap().spec.bastion;
    let key = |spec: Value, owner| bastion(spec, owner).unwrap().key;
    let plain = json!({"region": "r"});
    assert_eq!(bastion(plain.clone(), NEWER), None);
    assert_eq!(key(plain, OLDER).as_deref(), Some("default"));
    let enabled = json!({"region": "r", "bastion": {"enabled": true}});
    assert_eq!(key(enabled, NEWER), None);
    let keyless = json!({"region": "r", "sshKeyName": "", "bastion": {"enabled": true}});
    assert_eq!(key(keyless, OLDER), None);
    let disabled = json!({"region": "r", "bastion": {}});
    assert_eq!(bastion(disabled, OLDER), None);
}

#[test]
fn a_load_balancer_is_of_its_kind_and_scheme_however_they_are_spelled() {
    let load_balancer = |said: Value| {
        wanted(json!({"region": "r", "controlPlaneLoadBalancer": said}), NEWER)
            .unwrap()
            .spec
            .load_balancer
    };
    assert_eq!(
        load_balancer(json!({"scheme": "Internet-facing"})).unwrap().scheme,
        Scheme::InternetFacing
    );
    let internal = load_balancer(json!({"scheme": "internal", "loadBalancerType": "nlb"})).unwrap();
    assert_eq!((internal.scheme, internal.kind), (Scheme::Internal, LoadBalancerKind::Network));
    assert_eq!(load_balancer(json!({"loadBalancerType": "disabled"})), None);
}

/// Objects may be stored from before the schema refused them.
#[test]
fn every_wrong_word_is_reported_with_its_path() {
    let errors = wanted(
        json!({"region": "r",
            "network": {"natGateways": {"mode": "Many"}, "securityGroupOverrides": {"king": "sg-1"},
                "additionalNodeIngressRules": [{"protocol": "tcp", "fromPort": 1, "toPort": 1,
                    "sourceSecurityGroupRoles": ["queen", "node-eks-additional"]}]},
            "controlPlaneLoadBalancer": {"scheme": "public", "loadBalancerType": "alb"}}),
        NEWER,
    );
    let messages: Vec<_> = errors.unwrap_err().iter().map(ToString::to_string).collect();
    for words in [
        "cannot use spec.network.natGateways.mode: \"Many\" is not PerAZ, Single, None or Regional",
        "spec.network.securityGroupOverrides: \"king\"",
        "spec.network.additionalNodeIngressRules[0].sourceSecurityGroupRoles: \"queen\"",
        "sourceSecurityGroupRoles: \"node-eks-additional\" is not bastion, node",
        "spec.controlPlaneLoadBalancer.loadBalancerType: \"alb\" cannot forward TCP",
    ] {
        assert!(messages.iter().any(|it| it.contains(words)), "{words}: {messages:?}");
    }
}

#[test]
fn fields_of_upstream_that_are_not_acted_upon_are_named_and_those_it_only_writes_are_not() {
    let spec = json!({"region": "r", "network": {
        "vpc": {"tags": {"a": "b"}, "internetGatewayId": "igw-1",
            "ipv6": {"cidrBlock": "2001:db8::/56", "poolId": "p", "egressOnlyInternetGatewayId": "eigw-1"}},
        "subnets": [{"cidrBlock": "10.0.0.0/24", "natGatewayId": "nat-1"}]}});
    let unsupported = wanted(spec, NEWER).unwrap().unsupported;
    let errors = refuse_unsupported(&unsupported).unwrap_err();
    let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let expected = ["vpc.ipv6.cidrBlock", "vpc.ipv6.poolId"]
        .map(|field| format!("cannot use spec.network.{field}: not supported yet"));
    assert_eq!(messages, expected);
}

/// Upstream writes CIDR and gateway of its own into the spec, and each of its Clusters has them.
#[test]
fn a_vpc_with_ipv6_of_amazon_is_read_as_upstream_stores_it() {
    let spec = json!({"region": "r", "network": {
        "vpc": {"ipv6": {"cidrBlock": "2600:db8::/56", "poolId": "Amazon",
            "egressOnlyInternetGatewayId": "eigw-1"}},
        "subnets": [{"cidrBlock": "10.0.0.0/24", "isIpv6": true, "ipv6CidrBlock": "2600:db8::/64"}]},
        "controlPlaneLoadBalancer": {"loadBalancerType": "nlb", "targetGroupIPType": "ipv6",
            "additionalListeners": [{"port": 8443, "targetGroupIPType": "ipv4"}]}});
    let Wanted { spec, unsupported } = wanted(spec, NEWER).unwrap();
    assert_eq!(unsupported, []);
    assert!(spec.ipv6 && spec.subnets[0].is_ipv6);
    assert_eq!(spec.subnets[0].ipv6_cidr_block.as_deref(), Some("2600:db8::/64"));
    let balancer = spec.load_balancer.unwrap();
    let asked_for = (balancer.ipv6_targets, balancer.listeners[0].ipv6_targets);
    assert_eq!(asked_for, (Some(true), Some(false)));
}

#[test]
fn fields_of_ipv6_without_effect_are_refused() {
    let refused = |spec: Value| -> Vec<String> {
        let all = wanted(spec, NEWER).unwrap().unsupported;
        all.iter().map(|it| format!("{}: {}", it.path, it.problem)).collect()
    };
    let subnets = json!([{"cidrBlock": "10.0.0.0/24", "isIpv6": true},
        {"cidrBlock": "10.0.1.0/24", "isIpv6": true, "ipv6CidrBlock": "2600:db8::/64"}]);
    let without = json!({"region": "r", "network": {"subnets": subnets}});
    let expected = ["[0].isIpv6", "[1].ipv6CidrBlock"]
        .map(|field| format!("spec.network.subnets{field}: requires vpc.ipv6"));
    assert_eq!(refused(without), expected);
    let classic = json!({"region": "r", "network": {"vpc": {"ipv6": {}}},
        "controlPlaneLoadBalancer": {"targetGroupIPType": "ipv6"}});
    let expected =
        ["spec.controlPlaneLoadBalancer.targetGroupIPType: ipv6 requires loadBalancerType nlb"];
    assert_eq!(refused(classic), expected);
}

/// Upstream's schema admits them, so they are kept; without this an object would lose them silently.
#[test]
fn fields_of_upstream_outside_of_the_network_are_kept_and_refused_where_they_change_what_is_made() {
    let spec = json!({"region": "cn-north-1", "partition": "aws-cn", "imageLookupOrg": "1",
        "imageLookupFormat": "f", "imageLookupBaseOS": "ubuntu", "s3Bucket": {"name": "b"},
        "secondaryControlPlaneLoadBalancer": {"name": "s", "scheme": "internal"},
        "network": {"vpc": {"carrierGatewayId": "cagw-1"}},
        "controlPlaneLoadBalancer": {"loadBalancerType": "nlb", "disableHostsRewrite": true,
            "targetGroupIPType": "ipv6", "additionalListeners": [{"port": 8443}]}});
    let errors = refuse_unsupported(&wanted(spec.clone(), NEWER).unwrap().unsupported).unwrap_err();
    let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let refused = [
        "s3Bucket: not supported yet",
        "controlPlaneLoadBalancer.targetGroupIPType: ipv6 requires vpc.ipv6",
    ]
    .map(|rest| format!("cannot use spec.{rest}"));
    assert_eq!(messages, refused);
    let read: AwsClusterSpec = serde_json::from_value(spec.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), spec, "nothing is lost");
    let usual = json!({"region": "r", "partition": "", "s3Bucket": null,
        "controlPlaneLoadBalancer": {"targetGroupIPType": "ipv4", "additionalListeners": []}});
    assert_eq!(wanted(usual, NEWER).unwrap().unsupported, []);
}

/// Each field that upstream's webhook refuses with a load balancer that is disabled.
#[test]
fn fields_of_a_load_balancer_that_is_disabled_are_named() {
    let rule = json!({"description": "", "protocol": "tcp", "fromPort": 1, "toPort": 1});
    let set = json!({"name": "n", "crossZoneLoadBalancing": true, "subnets": ["subnet-f0000001"],
        "healthCheckProtocol": "TCP", "additionalSecurityGroups": ["sg-1"],
        "additionalListeners": [{"port": 1}], "ingressRules": [rule], "preserveClientIP": true,
        "disableHostsRewrite": true, "targetGroupIPType": "ipv6"});
    let of = |mut balancer: Value| {
        balancer["loadBalancerType"] = json!("disabled");
        let spec = json!({"region": "r", "controlPlaneLoadBalancer": balancer});
        let unsupported = wanted(spec, NEWER).unwrap().unsupported;
        unsupported.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (field, value) in set.as_object().unwrap() {
        let path = format!("cannot use spec.controlPlaneLoadBalancer.{field}");
        let expected = format!("{path}: must be empty when loadBalancerType is disabled");
        assert_eq!(of(json!({field: value})), [expected]);
    }
    assert_eq!(of(set).len(), 10);
    let empty = json!({"name": "", "subnets": [], "preserveClientIP": false, "scheme": "internal",
        "targetGroupIPType": "ipv4"});
    assert_eq!(of(empty), [""; 0]);
}

#[test]
fn a_partition_that_does_not_have_the_region_is_refused() {
    for (region, partition, is_right) in [
        ("eu-west-1", "aws", true),
        ("eu-west-1", "aws-cn", false),
        ("us-gov-east-1", "aws-us-gov", true),
        ("us-iso-east-1", "aws-iso", true),
        ("us-isob-east-1", "aws-iso", false),
        ("cn-north-1", "aws", false),
    ] {
        let read = wanted(json!({"region": region, "partition": partition}), NEWER);
        assert_eq!(read.is_ok(), is_right, "{region} {partition}");
    }
}

#[test]
fn the_defaults_that_upstream_stores_in_a_spec_ask_for_nothing_more() {
    let of_vpc = json!({"availabilityZoneUsageLimit": 3, "availabilityZoneSelection": "Ordered",
        "subnetSchema": "PreferPrivate", "emptyRoutesDefaultVPCSecurityGroup": false,
        "privateDnsHostnameTypeOnLaunch": "ip-name", "secondaryCidrBlocks": [], "ipamPool": null});
    let of_subnet = json!({"cidrBlock": "10.0.0.0/24", "zoneType": "availability-zone",
        "isIpv6": false, "ipv6CidrBlock": "", "parentZoneName": null});
    let spec = json!({"region": "r", "network": {"vpc": of_vpc, "subnets": [of_subnet]}});
    assert_eq!(wanted(spec, NEWER).unwrap().unsupported, []);
    let other = json!({"availabilityZoneUsageLimit": 2, "emptyRoutesDefaultVPCSecurityGroup": true,
        "ipamPool": {"id": "ipam-pool-1"}, "secondaryCidrBlocks": [{"ipv4CidrBlock": "10.1.0.0/16"}]});
    let spec = json!({"region": "r", "network": {"vpc": other}});
    let Wanted { spec, unsupported } = wanted(spec, NEWER).unwrap();
    assert_eq!((unsupported.len(), &*spec.secondary_cidrs), (3, &["10.1.0.0/16".to_owned()][..]));
}

#[test]
fn an_identity_of_another_kind_is_refused() {
    let of = |kind: &str| {
        wanted(json!({"region": "r", "identityRef": {"kind": kind, "name": "n"}}), NEWER)
    };
    for kind in ["Controller", "Role", "Static"] {
        assert_eq!(of(&format!("AWSCluster{kind}Identity")).unwrap().unsupported, []);
    }
    let errors = of("Identity").unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().starts_with("cannot use spec.identityRef.kind: "), "{errors:?}");
}

/// The typed view loses nothing that a write would then take away.
#[test]
fn a_spec_is_written_as_it_was_read() {
    let spec = json!({"region": "r", "sshKeyName": "", "network": {
        "vpc": {"id": "vpc-1", "ipv6": {"cidrBlock": "x"}},
        "subnets": [{"id": "a", "isPublic": false, "resourceID": "subnet-f0000009"}],
        "cni": {"cniIngressRules": []}},
        "controlPlaneLoadBalancer": {"preserveClientIP": false}, "bastion": {"allowedCIDRBlocks": ["10.0.0.0/8"]}});
    let object: objects::Object<AwsCluster> = objects::Object::read(json!({
        "metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "1"}, "spec": spec,
    }))
    .unwrap();
    assert_eq!(serde_json::to_value(&object.body.spec).unwrap(), spec);
}

#[test]
fn zones_are_asked_for_only_where_subnets_have_to_be_chosen() {
    let needs = |spec: Value| needs_zones(&serde_json::from_value(spec).unwrap());
    assert!(needs(json!({})));
    assert!(needs(json!({"network": {"vpc": {"cidrBlock": "10.0.0.0/16"}}})));
    assert!(!needs(json!({"network": {"vpc": {"id": "vpc-1"}}})));
    assert!(!needs(json!({"networkSpec": {"subnets": [{"cidrBlock": "10.0.0.0/24"}]}})));
}

#[test]
fn what_cannot_be_a_region_is_reported_and_none_is_asked() {
    let errors = wanted(json!({"region": "US EAST"}), NEWER).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "cannot use spec.region: \"US EAST\" is not the name of a region"
    );
    assert!(is_region("us-gov-east-1") && !is_region("") && !is_region("evil.example.org/"));
}

/// A value of each field of a schema of upstream, other than its default.
fn filled(schema: &Value) -> Value {
    if let Some(word) = schema["enum"].as_array().and_then(|words| words.last()) {
        return word.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let mut made: Value =
                fields.map(|(name, field)| (name.clone(), filled(field))).collect();
            if schema["additionalProperties"].is_object() {
                made["key"] = filled(&schema["additionalProperties"]);
            }
            made
        }
        Some("array") => json!([filled(&schema["items"])]),
        Some("boolean") => json!(true),
        Some("integer") => json!(7),
        _ => json!("text"),
    }
}

#[test]
fn each_field_of_upstream_is_kept_and_acted_upon_or_named_or_known_to_change_nothing() {
    const UPSTREAM: &str =
        include_str!("../../../../../tests/cluster-api-provider-aws/awsclusters.yaml");
    let crd: Value = serde_saphyr::from_str(UPSTREAM).unwrap();
    for version in crd["spec"]["versions"].as_array().unwrap() {
        let schema = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let mut spec = filled(schema);
        for (balancer, scheme) in [
            ("controlPlaneLoadBalancer", "internet-facing"),
            ("secondaryControlPlaneLoadBalancer", "internal"),
        ] {
            let fields = spec.get_mut(balancer).and_then(Value::as_object_mut);
            let Some(fields) = fields else { continue };
            fields.insert("loadBalancerType".to_owned(), json!("nlb"));
            fields.insert("scheme".to_owned(), json!(scheme));
            fields.insert("name".to_owned(), json!(balancer));
        }
        let read: AwsClusterSpec = serde_json::from_value(spec.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), spec, "nothing is lost");
        let network = read.network.as_ref().unwrap();
        let balancer = read.control_plane_load_balancer.as_ref().unwrap();
        let second = read.secondary_control_plane_load_balancer.clone().unwrap_or_default();
        let none = BTreeMap::new();
        let vpc = network.vpc.as_ref().unwrap();
        let levels = [
            ("spec.network.vpc.ipv6", vpc.ipv6.as_ref().unwrap_or(&none)),
            ("spec", &read.others),
            ("spec.controlPlaneLoadBalancer", &balancer.others),
            ("spec.secondaryControlPlaneLoadBalancer", &second.others),
            ("spec.network.vpc", &vpc.others),
            ("spec.network.subnets[0]", &network.subnets[0].others),
        ];
        let changes_nothing = [
            &FOR_MACHINES[..],
            &OBSERVED_OF_VPC,
            &OBSERVED_OF_SUBNET,
            &["partition", "disableHostsRewrite", "egressOnlyInternetGatewayId"],
        ]
        .concat();
        let in_levels = levels.into_iter().flat_map(|(path, others)| {
            let mut fields: Vec<_> = others.keys().map(String::as_str).collect();
            fields.retain(|field| !changes_nothing.contains(field));
            fields.into_iter().map(move |field| format!("{path}.{field}"))
        });
        let (mut fatal, mut refused) = (Vec::new(), Vec::new());
        let mut errors = Errors { fatal: &mut fatal, refused: &mut refused };
        let has_ipv6 = vpc.ipv6.is_some();
        let owner = super::balancers::Owner {
            cluster: "c",
            namespace: "ns",
            api_port: 6443,
            has_ipv6,
            created: None,
        };
        let first = super::balancers::primary(&read, &owner, &mut errors);
        super::balancers::secondary(&read, first.as_ref(), &owner, &mut errors);
        let named = unsupported(&read).into_iter().chain(refused).map(|it| it.path);
        let named: BTreeSet<_> = named.collect();
        assert_eq!(named, in_levels.collect(), "{}", version["name"]);
        assert!(named.len() >= 5, "{named:?}");
    }
}
