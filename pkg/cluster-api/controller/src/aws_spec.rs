//! [`read`]: an AWSCluster of either dialect as the network planner takes it. Pure. What only AWS
//! or the planner can judge, such as ranges of subnets, is left to it.

mod balancers;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use aws_network::{
    BastionSpec, CniSpec, Dialect, Identity, NatMode, Role, Spec, SpecError, SubnetSpec, Zone,
    ZoneType,
};
use serde_json::Value;

use crate::api::aws_cluster::{AwsClusterSpec, Network};
use crate::api::aws_identity::IdentityKind;
use crate::api::cluster::{ClusterSpec, Endpoint};
use balancers::Errors;
use rules::{asks_for_more, wrong_word};
pub(crate) use rules::{named_edges, usable_zones};

/// Where a Cluster says its port.
pub(crate) const PORT_OF_CLUSTER: &str = "spec.clusterNetwork.apiServerPort of the Cluster";
/// Where the Cluster names no port.
const API_PORT: u16 = 6443;
/// The key pair that upstream's v1alpha2 takes where none is named.
const LEGACY_KEY: &str = "default";
/// Fields of upstream's VPC that are only what its controller writes there.
const OBSERVED_OF_VPC: [&str; 3] = ["carrierGatewayId", "internetGatewayId", "tags"];
/// Fields of a VPC's IPv6 that only upstream's controller writes; the CIDR, when the pool is Amazon's.
const OBSERVED_OF_IPV6: [&str; 3] = ["egressOnlyInternetGatewayId", "cidrBlock", "poolId"];
/// The pool of an IPv6 CIDR that AWS chooses.
const AMAZON: &str = "Amazon";
/// Fields of a subnet that only upstream's controller writes.
const OBSERVED_OF_SUBNET: [&str; 3] = ["resourceID", "natGatewayId", "routeTableId"];

/// Fields of the spec that only concern upstream's machines.
const FOR_MACHINES: [&str; 3] = ["imageLookupFormat", "imageLookupOrg", "imageLookupBaseOS"];
/// Partitions of AWS, by how the names of their regions begin; the last one has all others.
const PARTITIONS: [(&str, &str); 8] = [
    ("cn-", "aws-cn"),
    ("us-gov-", "aws-us-gov"),
    ("us-iso-", "aws-iso"),
    ("us-isob-", "aws-iso-b"),
    ("eu-isoe-", "aws-iso-e"),
    ("us-isof-", "aws-iso-f"),
    ("eusc-", "aws-eusc"),
    ("", "aws"),
];

/// Why a field is refused that is not built.
const NOT_BUILT: &str = "not supported yet";

/// Inputs from outside of the spec.
#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own, in an object or a flag"
)]
pub(crate) struct Circumstances {
    pub(crate) identity: Identity,
    pub(crate) namespace: String,
    /// Dialect of the Cluster that owns it.
    pub(crate) owner: Dialect,
    /// Zones of the region, in order.
    pub(crate) zones: Vec<String>,
    /// The zones of the spec that AWS was asked about.
    pub(crate) known_zones: Vec<Zone>,
    /// Port of the API server as clients see it.
    pub(crate) api_port: u16,
    /// The addresses of Pods are of the VPC.
    pub(crate) pods_in_vpc: bool,
    /// Keys of additional tags that were applied before.
    pub(crate) applied_tags: BTreeSet<String>,
    /// Where the spec names no mode.
    pub(crate) default_nat_mode: NatMode,
    /// Rules of others in our groups stay.
    pub(crate) keep_foreign_rules: bool,
    /// Owned subnets that the spec does not name are deleted.
    pub(crate) prune_subnets: bool,
    /// A lost load balancer may be created again although its name was published.
    pub(crate) allow_load_balancer_recreate: bool,
    /// The load balancer of the API server that was created, by name or ARN.
    pub(crate) created_load_balancer: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) spec: Spec,
    /// Fields that are set and not acted upon, and why.
    pub(crate) unsupported: Vec<SpecError>,
}

pub(crate) fn read(spec: &AwsClusterSpec, given: &Circumstances) -> Result<Wanted, Vec<SpecError>> {
    let mut errors = Vec::new();
    check_region(spec, &mut errors);
    check_partition(spec, &mut errors);
    errors.extend(unknown_identity(spec));
    let none = Network::default();
    let network = spec.network().unwrap_or(&none);
    let vpc = network.vpc.clone().unwrap_or_default();
    let secondary = vpc.secondary_cidr_blocks.iter();
    let mut refused = Vec::new();
    let subnets = subnets(network, &mut refused);
    let mut both = Errors { fatal: &mut errors, refused: &mut refused };
    let owner = balancers::Owner {
        cluster: &given.identity.cluster,
        namespace: &given.namespace,
        api_port: given.api_port,
        has_ipv6: vpc.ipv6.is_some(),
        created: given.created_load_balancer.as_deref(),
    };
    let load_balancer = balancers::primary(spec, &owner, &mut both);
    let secondary_load_balancer =
        balancers::secondary(spec, load_balancer.as_ref(), &owner, &mut both);
    let endpoint_published = spec.control_plane_endpoint.as_ref().is_some_and(is_of_load_balancer);
    let read = Spec {
        identity: given.identity.clone(),
        namespace: given.namespace.clone(),
        dialect: given.owner,
        region: spec.region.clone(),
        zones: given.zones.clone(),
        known_zones: given.known_zones.clone(),
        api_port: given.api_port,
        additional_tags: spec.additional_tags.clone(),
        applied_tags: given.applied_tags.clone(),
        vpc_id: vpc.id.clone().filter(|id| !id.is_empty()),
        vpc_cidr: vpc.cidr_block.clone().filter(|cidr| !cidr.is_empty()),
        ipv6: vpc.ipv6.is_some(),
        secondary_cidrs: secondary.map(|it| it.ipv4_cidr_block.clone()).collect(),
        subnets,
        nat_mode: nat_mode(network, given.default_nat_mode, &mut errors),
        nat_zone: network.nat_gateways.as_ref().and_then(|it| it.availability_zone.clone()),
        cni: cni(network, given.pods_in_vpc, &mut errors),
        control_plane_rules: rules::ingress_rules(
            "spec.network.additionalControlPlaneIngressRules",
            &network.additional_control_plane_ingress_rules,
            &mut errors,
        ),
        node_rules: rules::ingress_rules(
            "spec.network.additionalNodeIngressRules",
            &network.additional_node_ingress_rules,
            &mut errors,
        ),
        node_port_cidr_blocks: network.node_port_ingress_rule_cidr_blocks.clone(),
        group_overrides: group_overrides(network, &mut errors),
        keep_foreign_rules: given.keep_foreign_rules,
        prune_subnets: given.prune_subnets,
        load_balancer,
        secondary_load_balancer: secondary_load_balancer.map(Box::new),
        endpoint_published,
        allow_load_balancer_recreate: given.allow_load_balancer_recreate,
        bastion: bastion(spec, given.owner),
    };
    if errors.is_empty() {
        let unsupported = [unsupported(spec), refused].concat();
        Ok(Wanted { spec: read, unsupported })
    } else {
        Err(errors)
    }
}

/// The ends of AWS's own names, for each partition.
const DOMAINS: [&str; 7] = [
    ".amazonaws.com",
    ".amazonaws.com.cn",
    ".amazonaws.eu",
    ".c2s.ic.gov",
    ".sc2s.sgov.gov",
    ".cloud.adc-e.uk",
    ".csp.hci.ic.gov",
];

/// Whether clients know the API server by the name that AWS has given a load balancer, and not by a name of the user.
fn is_of_load_balancer(endpoint: &Endpoint) -> bool {
    let labels: Vec<_> = endpoint.host.split('.').map(str::to_ascii_lowercase).collect();
    // NAME.REGION.elb.DOMAIN of a classic one, NAME.elb.REGION.DOMAIN of a network one.
    let is_after_name = |it: &[String]| it.len() > 4 && (it[1] == "elb" || it[2] == "elb");
    is_after_name(&labels) && DOMAINS.iter().any(|it| endpoint.host.ends_with(it))
}

/// Whether subnets have to be chosen, for which the zones of the region count.
pub(crate) fn needs_zones(spec: &AwsClusterSpec) -> bool {
    let Some(network) = spec.network() else { return true };
    let has_vpc =
        network.vpc.as_ref().and_then(|vpc| vpc.id.as_ref()).is_some_and(|id| !id.is_empty());
    network.subnets.is_empty() && !has_vpc
}

/// Port of the API server as clients see it.
pub(crate) fn api_port(cluster: &ClusterSpec) -> Result<u16, Vec<SpecError>> {
    let Some(port) = named_port(cluster) else { return Ok(API_PORT) };
    let error = || SpecError::new(PORT_OF_CLUSTER, format!("{port} is not a port"));
    u16::try_from(port).map_err(|_| vec![error()])
}

/// Whether the Cluster says a port of its own.
pub(crate) fn names_port(cluster: &ClusterSpec) -> bool {
    named_port(cluster).is_some()
}

fn named_port(cluster: &ClusterSpec) -> Option<i32> {
    let network = cluster.cluster_network.as_ref();
    network.and_then(|it| it.api_server_port).filter(|port| *port != 0)
}

fn check_region(spec: &AwsClusterSpec, errors: &mut Vec<SpecError>) {
    if !is_region(&spec.region) {
        let problem = format!("{:?} is not the name of a region", spec.region);
        errors.push(SpecError::new("spec.region", problem));
    }
}

/// The partition of AWS that a region belongs to.
pub(crate) fn partition(region: &str) -> &'static str {
    let found = PARTITIONS.iter().find(|(prefix, _)| region.starts_with(prefix));
    found.map_or("aws", |(_, partition)| partition)
}

fn check_partition(spec: &AwsClusterSpec, errors: &mut Vec<SpecError>) {
    let named = spec.others.get("partition").and_then(Value::as_str).unwrap_or_default();
    let region = &spec.region;
    let right = partition(region);
    if !named.is_empty() && named != right {
        let problem =
            format!("{named:?} does not contain the region {region}, which belongs to {right}");
        errors.push(SpecError::new("spec.partition", problem));
    }
}

/// Whether it may be the name of a region: it becomes a part of host names.
pub(crate) fn is_region(name: &str) -> bool {
    let is_letter =
        |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    !name.is_empty() && name.bytes().all(is_letter)
}

/// The error of a spec whose identity has a kind that does not exist.
fn unknown_identity(spec: &AwsClusterSpec) -> Option<SpecError> {
    let kind = &spec.identity_ref.as_ref()?.kind;
    let kinds = IdentityKind::ALL.map(IdentityKind::as_str).join(", ");
    let is_known = IdentityKind::of(kind).is_some();
    (!is_known).then(|| wrong_word("spec.identityRef.kind", kind, &kinds))
}

fn subnets(network: &Network, errors: &mut Vec<SpecError>) -> Vec<SubnetSpec> {
    let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let mut zone_type = |index: usize, word: String| {
        let found = ZoneType::from_word(&word);
        if found.is_none() {
            let path = format!("spec.network.subnets[{index}].zoneType");
            errors.push(wrong_word(&path, &word, &ZoneType::WORDS.join(" or ")));
        }
        found
    };
    let read = network.subnets.iter().enumerate().map(|(index, subnet)| SubnetSpec {
        id: said(&subnet.id),
        cidr_block: said(&subnet.cidr_block),
        availability_zone: said(&subnet.availability_zone),
        is_public: subnet.is_public.unwrap_or_default(),
        is_ipv6: subnet.is_ipv6.unwrap_or_default(),
        ipv6_cidr_block: said(&subnet.ipv6_cidr_block),
        zone_type: said(&subnet.zone_type).and_then(|word| zone_type(index, word)),
        parent_zone: said(&subnet.parent_zone_name),
        tags: subnet.tags.clone(),
    });
    read.collect()
}

fn nat_mode(network: &Network, default: NatMode, errors: &mut Vec<SpecError>) -> NatMode {
    let mode = network.nat_gateways.as_ref().and_then(|it| it.mode.as_deref());
    let Some(word) = mode else { return default };
    NatMode::from_word(word).unwrap_or_else(|| {
        errors.push(wrong_word(
            "spec.network.natGateways.mode",
            word,
            "PerAZ, Single, None or Regional",
        ));
        default
    })
}

/// The annotation of the Cluster wins over rules: they would open ports that nothing uses.
fn cni(network: &Network, pods_in_vpc: bool, errors: &mut Vec<SpecError>) -> CniSpec {
    if pods_in_vpc {
        return CniSpec::AmazonVpc;
    }
    match network.cni.as_ref().and_then(|cni| cni.cni_ingress_rules.as_ref()) {
        Some(rules) => {
            CniSpec::Rules(rules::ingress_rules("spec.network.cni.cniIngressRules", rules, errors))
        }
        None => CniSpec::Calico,
    }
}

fn group_overrides(network: &Network, errors: &mut Vec<SpecError>) -> BTreeMap<Role, String> {
    let overrides = network.security_group_overrides.iter().filter_map(|(name, id)| {
        let role = rules::role(name);
        if role.is_none() {
            errors.push(wrong_word("spec.network.securityGroupOverrides", name, rules::ROLES));
        }
        Some((role?, id.clone()))
    });
    overrides.collect()
}

/// Absent, one of v1alpha2 is made and one of today is not.
fn bastion(spec: &AwsClusterSpec, dialect: Dialect) -> Option<BastionSpec> {
    let legacy = dialect == Dialect::V1Alpha2;
    let said = spec.bastion.clone();
    let enabled = match &said {
        Some(bastion) => bastion.enabled.unwrap_or_default(),
        None => legacy,
    };
    let said = said.unwrap_or_default();
    let named = spec.ssh_key_name.clone().or_else(|| legacy.then(|| LEGACY_KEY.to_owned()));
    enabled.then(|| BastionSpec {
        allowed_cidr_blocks: said.allowed_cidr_blocks,
        disable_ingress_rules: said.disable_ingress_rules.unwrap_or_default(),
        instance_type: said.instance_type,
        image: said.ami,
        key: named.filter(|key| !key.is_empty()),
    })
}

fn unsupported(spec: &AwsClusterSpec) -> Vec<SpecError> {
    fn name<'a>(
        found: &mut Vec<SpecError>,
        path: &str,
        fields: impl IntoIterator<Item = (&'a String, &'a Value)>,
        harmless: &[&str],
    ) {
        let fields = fields
            .into_iter()
            .filter(|(field, value)| !harmless.contains(&&***field) && asks_for_more(field, value));
        let error = |field| SpecError::new(format!("{path}.{field}"), NOT_BUILT);
        found.extend(fields.map(|(field, _)| error(field)));
    }
    let mut found = Vec::new();
    name(&mut found, "spec", &spec.others, &[&FOR_MACHINES[..], &["partition"]].concat());
    for (path, balancer) in [
        ("spec.controlPlaneLoadBalancer", &spec.control_plane_load_balancer),
        ("spec.secondaryControlPlaneLoadBalancer", &spec.secondary_control_plane_load_balancer),
    ] {
        // `disableHostsRewrite` only concerns machines, and is one of the fields of a load balancer
        // that is disabled.
        let others = balancer.iter().flat_map(|it| &it.others);
        name(&mut found, path, others, &["disableHostsRewrite"]);
    }
    let Some(network) = spec.network() else { return found };
    let ipv6 = network.vpc.as_ref().and_then(|vpc| vpc.ipv6.as_ref());
    if let Some(vpc) = &network.vpc {
        name(&mut found, "spec.network.vpc", &vpc.others, &OBSERVED_OF_VPC);
    }
    if let Some(fields) = ipv6 {
        let is_amazons = fields.get("poolId").is_some_and(|pool| pool == AMAZON);
        let observed = if is_amazons { &OBSERVED_OF_IPV6[..] } else { &OBSERVED_OF_IPV6[..1] };
        name(&mut found, "spec.network.vpc.ipv6", fields, observed);
    }
    for (index, subnet) in network.subnets.iter().enumerate() {
        let path = format!("spec.network.subnets[{index}]");
        name(&mut found, &path, &subnet.others, &OBSERVED_OF_SUBNET);
        let has_cidr = subnet.ipv6_cidr_block.as_ref().is_some_and(|cidr| !cidr.is_empty());
        if ipv6.is_none() && (has_cidr || subnet.is_ipv6 == Some(true)) {
            let field = if has_cidr { "ipv6CidrBlock" } else { "isIpv6" };
            found.push(SpecError::new(format!("{path}.{field}"), "requires vpc.ipv6"));
        }
    }
    found
}

/// An unsupported field as a condition names it: with the cause, where that is not that it is not
/// built.
pub(crate) fn named(field: SpecError) -> String {
    if field.problem == NOT_BUILT {
        field.path
    } else {
        format!("{}: {}", field.path, field.problem)
    }
}

/// Unsupported fields as errors, for a cluster that has nothing on AWS yet. A plain VPC could never
/// become what they ask for. A cluster that has something keeps the condition `SpecSupported=False`
/// instead: an error would stop its upkeep.
pub(crate) fn refuse_unsupported(fields: &[SpecError]) -> Result<(), Vec<SpecError>> {
    if fields.is_empty() { Ok(()) } else { Err(fields.to_vec()) }
}

#[cfg(test)]
mod tests;
