//! [`Wanted`]: what AWS shall have for an AWSCluster, from the object, its Cluster and the flags. Pure.

use std::collections::BTreeSet;

use aws_network::{
    Desired, Identity, LoadBalancerKind, LogicalId, Removal, ServiceResources, SpecError, Zone,
    default_load_balancer_name,
};
use objects::{Object, ObjectMeta};

use super::owner::Owner;
use super::stored_memory;
use crate::api::aws_cluster::{AwsCluster, AwsClusterSpec, LoadBalancer};
use crate::api::cluster::Cluster;
use crate::api::{
    ABANDON_ANNOTATION, ADOPT_ANNOTATION, APPLIED_TAGS_ANNOTATION, CNI_ANNOTATION,
    EXTERNAL_RESOURCES_ANNOTATION, FREE_INTERFACES_ANNOTATION, RECREATE_ANNOTATION,
};
use crate::aws_spec::{self, Circumstances, PORT_OF_CLUSTER};
use crate::options::AwsOptions;

/// The desired resources on AWS, and the identity of their owner.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) desired: Desired,
    /// Port of the API server as clients see it.
    pub(super) api_port: u16,
    /// Fields that are set and not acted upon, by path, with the cause.
    pub(super) unsupported: Vec<String>,
}

/// The identity of an AWSCluster on AWS.
pub(super) fn identity(
    object: &Object<AwsCluster>,
    cluster: &str,
    options: &AwsOptions,
) -> Identity {
    let metadata = &object.metadata;
    Identity {
        cluster: cluster.to_owned(),
        owner_id: stored_memory::owner_id(metadata).to_owned(),
        owner_tag: options.owner_tag_key.clone(),
        adopt: adopts(metadata),
    }
}

/// Zones of the region, as far as a spec needs them.
#[derive(Clone, Debug, Default)]
pub(super) struct Zones {
    /// Those for default subnets, in order.
    pub(super) of_default_subnets: Vec<String>,
    /// Those of subnets that AWS was asked about.
    pub(super) known: Vec<Zone>,
}

/// Reads what shall be there.
pub(super) fn present(
    object: &Object<AwsCluster>,
    owner: &Owner,
    cluster: &Object<Cluster>,
    zones: Zones,
    options: &AwsOptions,
) -> Result<Wanted, Vec<SpecError>> {
    let metadata = &object.metadata;
    let wanted_port = aws_spec::api_port(&cluster.body.spec)?;
    let api_port = published_port(object).unwrap_or(wanted_port);
    let memory = stored_memory::read(object);
    let given = Circumstances {
        identity: identity(object, &owner.name, options),
        namespace: metadata.namespace().unwrap_or_default().to_owned(),
        owner: owner.dialect,
        zones: zones.of_default_subnets,
        known_zones: zones.known,
        api_port,
        pods_in_vpc: says(&cluster.metadata, CNI_ANNOTATION, "AmazonVPC"),
        applied_tags: applied_tags(metadata),
        default_nat_mode: options.default_nat_mode,
        keep_foreign_rules: options.keep_foreign_rules,
        prune_subnets: options.prune_subnets,
        allow_load_balancer_recreate: says(metadata, RECREATE_ANNOTATION, "true"),
        created_load_balancer: memory.id(&LogicalId::LoadBalancer).map(str::to_owned),
    };
    let read = aws_spec::read(&object.body.spec, &given)?;
    let desired = Desired::from_spec(&read.spec)?;
    let unsupported = [read.unsupported, desired.contradictions.clone()].concat();
    if !was_begun(object) {
        aws_spec::refuse_unsupported(&unsupported)?;
    }
    let mut unsupported: Vec<_> = unsupported.into_iter().map(aws_spec::named).collect();
    if wanted_port != api_port && aws_spec::names_port(&cluster.body.spec) {
        let fact = format!("{PORT_OF_CLUSTER} (the published endpoint has port {api_port})");
        unsupported.push(fact);
    }
    Ok(Wanted { desired, api_port, unsupported })
}

/// Whether its user asks for what upstream's provider made.
pub(super) fn adopts(metadata: &ObjectMeta) -> bool {
    says(metadata, ADOPT_ANNOTATION, "true")
}

/// Whether anything was made for it, or may have been: then it goes on as it was begun.
fn was_begun(object: &Object<AwsCluster>) -> bool {
    let status = &object.status;
    let has_vpc = status.resources.as_ref().is_some_and(|resources| resources.vpc.is_some());
    has_vpc || !stored_memory::read(object).records.is_empty()
}

/// The port that was published; it never changes.
fn published_port(object: &Object<AwsCluster>) -> Option<u16> {
    let endpoint = object.body.spec.control_plane_endpoint.as_ref();
    u16::try_from(endpoint.filter(|it| it.is_set())?.port).ok()
}

/// The resources to delete. They do not depend on the spec, which may be invalid.
pub(super) fn absent(object: &Object<AwsCluster>, cluster: &str, options: &AwsOptions) -> Removal {
    let (metadata, spec) = (&object.metadata, &object.body.spec);
    let namespace = metadata.namespace().unwrap_or_default();
    let named = balancers(spec).filter_map(|it| it.name.clone());
    let mut names: Vec<_> = named.filter(|name| !name.is_empty()).collect();
    // Upstream's names of a classic one, and of a network load balancer.
    let kinds = [LoadBalancerKind::Classic, LoadBalancerKind::Network];
    names.extend(kinds.map(|kind| default_load_balancer_name(kind, namespace, cluster)));
    names.dedup();
    Removal {
        identity: identity(object, cluster, options),
        vpc_id: spec
            .network()
            .and_then(|it| it.vpc.as_ref()?.id.clone())
            .filter(|id| !id.is_empty()),
        load_balancer_names: names,
        named_groups: named_groups(object),
        service_resources: service_resources(metadata),
        deletes_free_interfaces: says(metadata, FREE_INTERFACES_ANNOTATION, "true"),
    }
}

fn balancers(spec: &AwsClusterSpec) -> impl Iterator<Item = &LoadBalancer> {
    spec.control_plane_load_balancer.iter().chain(&spec.secondary_control_plane_load_balancer)
}

/// Security groups that the spec names: they are the user's.
fn named_groups(object: &Object<AwsCluster>) -> BTreeSet<String> {
    let spec = &object.body.spec;
    let network = spec.network().into_iter();
    let overrides = network.flat_map(|it| it.security_group_overrides.values());
    let of_balancer = balancers(spec).flat_map(|it| &it.additional_security_groups);
    overrides.chain(of_balancer).cloned().collect()
}

fn service_resources(metadata: &ObjectMeta) -> ServiceResources {
    match metadata.annotations.get(EXTERNAL_RESOURCES_ANNOTATION).map(String::as_str) {
        Some("false") => ServiceResources::Stay,
        Some("true") => ServiceResources::Go,
        _ => ServiceResources::GoWithOurVpc,
    }
}

/// Whether the user allows the deletion although AWS cannot be read.
pub(super) fn may_be_abandoned(object: &Object<AwsCluster>) -> bool {
    says(&object.metadata, ABANDON_ANNOTATION, "true")
}

/// Whether the name of the load balancer has to resolve before it is published.
pub(super) fn checks_dns(object: &Object<AwsCluster>, options: &AwsOptions) -> bool {
    let said = object.body.spec.control_plane_load_balancer.as_ref();
    match said.and_then(|it| it.dns_resolution_check.as_deref()) {
        Some(word) => word != "None",
        None => options.checks_dns,
    }
}

/// Keys of additional tags that may have been set on AWS.
pub(super) fn applied_tags(metadata: &ObjectMeta) -> BTreeSet<String> {
    let noted = metadata.annotations.get(APPLIED_TAGS_ANNOTATION);
    noted.into_iter().flat_map(|keys| keys.lines()).map(str::to_owned).collect()
}

fn says(metadata: &ObjectMeta, annotation: &str, value: &str) -> bool {
    metadata.annotations.get(annotation).is_some_and(|said| said == value)
}

#[cfg(test)]
mod tests;
