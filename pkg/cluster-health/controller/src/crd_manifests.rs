//! The CRDs of this domain.

/// What `config/crd` holds of them.
pub(crate) const CRDS: &[&str] = &[
    include_str!("../../../../config/crd/core.kubefed.io_kubefedclusters.yaml"),
    include_str!("../../../../config/crd/core.kubefed.io_kubefedconfigs.yaml"),
    include_str!("../../../../config/crd/platform.tkestack.io_clustercredentials.yaml"),
    include_str!("../../../../config/crd/platform.tkestack.io_clusters.yaml"),
    include_str!("../../../../config/crd/platform.tkestack.io_machines.yaml"),
];
