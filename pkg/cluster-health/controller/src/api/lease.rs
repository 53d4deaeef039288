//! Group `coordination.k8s.io`: the Lease that a member cluster renews, as far as it is read.

use health::Renewal;
use kube_api::Resource;
use objects::{Object, Schema};
use serde::{Deserialize, Serialize};

use crate::api::{WithSpec, tolerant};

/// Where Leases are.
pub(crate) const LEASES: Resource =
    Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
/// What the cluster says about its own `/readyz`: `ok`, or a short code.
pub(crate) const READYZ: &str = "infra-controller-manager/readyz";

#[derive(Debug)]
pub(crate) enum Lease {}

impl Schema for Lease {
    type Body = WithSpec<LeaseSpec>;
    type Status = ();
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LeaseSpec {
    #[serde(deserialize_with = "tolerant::null_is_default")]
    pub renew_time: String,
    pub lease_duration_seconds: Option<i64>,
}

/// What a Lease says.
pub(crate) fn renewal(lease: &Object<Lease>) -> Renewal {
    let spec = &lease.body.spec;
    let readyz = lease.metadata.annotations.get(READYZ);
    Renewal {
        time: (!spec.renew_time.is_empty()).then(|| spec.renew_time.as_str().into()),
        duration: spec.lease_duration_seconds,
        readyz: readyz.map(|said| said.as_str().into()),
    }
}
