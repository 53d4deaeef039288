//! The CRDs of this domain.

/// What `config/crd` holds of them.
pub(crate) const CRDS: &[&str] =
    &[include_str!("../../../../config/crd/networking.x-k8s.io_clustercidrs.yaml")];
