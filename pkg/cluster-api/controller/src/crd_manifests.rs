//! The CRDs of this domain.

/// What `config/crd` holds of them.
pub(crate) const CRDS: &[&str] = &[
    include_str!("../../../../config/crd/cluster.x-k8s.io_clusters.yaml"),
    include_str!("../../../../config/crd/cluster.x-k8s.io_machines.yaml"),
    include_str!("../../../../config/crd/infrastructure.cluster.x-k8s.io_awsclusters.yaml"),
];
