//! A management cluster with the kinds of Cluster API, and manifests to make of it what a test needs.

use serde_json::{Value, json};
use tests::kubectl::Kubectl;
use tests::pool::{Lent, Pool};

/// Full names: other groups have Clusters and Machines, too.
pub(crate) const CLUSTERS: &str = "clusters.v1alpha2.cluster.x-k8s.io";
pub(crate) const AWS_CLUSTERS: &str = "awsclusters.v1alpha2.infrastructure.cluster.x-k8s.io";
const KINDS: &str = "clusters.cluster.x-k8s.io,machines.cluster.x-k8s.io,\
                     awsclusters.infrastructure.cluster.x-k8s.io,secrets,events";

/// A management cluster for one test.
pub(crate) async fn hub() -> Lent<Kubectl> {
    static HUBS: Pool<Kubectl> = Pool::new();
    let clean = async |hub: &Kubectl| drop(hub.run(&format!("delete {KINDS} --all -n default")));
    HUBS.lend(Kubectl::with_crds, clean).await
}

/// An AWSCluster of this version and with this spec.
pub(crate) fn aws_cluster(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("infrastructure.cluster.x-k8s.io/{version}"), "kind": "AWSCluster",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    })
}
