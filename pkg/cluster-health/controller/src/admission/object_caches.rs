//! [`ObjectCaches`]: the stored objects that rules compare a new object with.

use std::sync::Arc;

use informer::Informer;
use kube_api::{Kind as Source, Resource};
use manager::Context;
use serde_json::Value;
use validation::{Environment, Kind, Licence};

use super::pruned_object::{Fields, PrunedObject};
use crate::api::kubefed::KUBEFED_CLUSTERS;
use crate::api::tke::{CLUSTERS, MACHINES};

/// The fields of Clusters.
pub(super) enum OfCluster {}

impl Fields for OfCluster {
    const PATHS: &'static [&'static str] = &[
        "spec.type",
        "spec.clusterCIDR",
        "spec.machines[].ip",
        "spec.properties.maxNodePodNum",
        "status.nodeCIDRMaskSize",
        "status.nodeCIDRMaskSizeIPv4",
        "status.resource.nodes.total",
        "status.resource.capacity.cpu",
    ];
}

/// The fields of Machines.
pub(super) enum OfMachine {}

impl Fields for OfMachine {
    const PATHS: &'static [&'static str] = &["spec.clusterName", "spec.ip"];
}

/// The fields of KubeFedClusters.
pub(super) enum OfMember {}

impl Fields for OfMember {
    const PATHS: &'static [&'static str] = &["spec.apiEndpoint"];
}

/// The caches of stored objects. A kind that is not listed yet, or not served, is not known.
pub(super) struct ObjectCaches {
    clusters: Informer<PrunedObject<OfCluster>>,
    machines: Informer<PrunedObject<OfMachine>>,
    members: Informer<PrunedObject<OfMember>>,
}

impl ObjectCaches {
    /// KubeFedClusters of this namespace only, if there is one.
    pub(super) fn new(context: &Context, namespace: Option<&str>) -> Self {
        let source = |resource: Resource| context.informers.source(Source::Custom(resource));
        let mut members = source(KUBEFED_CLUSTERS);
        members.namespace = namespace.map(Into::into);
        Self {
            clusters: context.informers.get_from(source(CLUSTERS)),
            machines: context.informers.get_from(source(MACHINES)),
            members: context.informers.get_from(members),
        }
    }

    /// Whether a Cluster of this name is stored; `None` when that is not known.
    pub(super) fn has_cluster(&self, name: &str) -> Option<bool> {
        self.clusters.is_synced().then(|| self.clusters.get(name).is_some())
    }

    /// `base` with the objects that rules about such an object read.
    pub(super) fn environment(
        &self,
        kind: Kind,
        object: &Value,
        base: &Environment,
    ) -> Environment {
        let mut environment = base.clone();
        let counts_all = base.licence != Licence::default();
        match kind {
            Kind::Cluster if counts_all => {
                environment.clusters = all(&self.clusters, |_| true);
                environment.machines = all(&self.machines, |_| true);
            }
            Kind::Machine => {
                let of = object["spec"]["clusterName"].as_str();
                environment.clusters = all(&self.clusters, |cluster| {
                    counts_all || cluster["metadata"]["name"].as_str() == of
                });
                environment.machines = all(&self.machines, |machine| {
                    counts_all || machine["spec"]["clusterName"].as_str() == of
                });
            }
            Kind::KubeFedCluster => {
                environment.kube_fed_clusters = all(&self.members, |_| true);
            }
            _ => {}
        }
        environment
    }
}

fn all<F: Fields>(
    informer: &Informer<PrunedObject<F>>,
    is_wanted: impl Fn(&Value) -> bool,
) -> Option<Vec<Arc<Value>>> {
    if !informer.is_synced() {
        return None;
    }
    informer.frozen(|objects| {
        let fields = objects.values().map(|object| &object.fields);
        Some(fields.filter(|fields| is_wanted(fields)).cloned().collect())
    })
}
