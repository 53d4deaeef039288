//! The flags that this crate owns; their values are judged in `options.rs`.

#[cfg(feature = "aws")]
pub(crate) mod aws;

use flags::{Flag, GoDuration, Spec};

use crate::NAME as GROUP;

pub(crate) const CAPI_MODE: Flag<String> = Flag::string(
    GROUP,
    "capi-mode",
    "auto",
    "Who keeps Clusters: standalone for this program, provider for Cluster API's own core, auto for this program where the CRD of Clusters is labelled as ours.",
);

pub(crate) const CLUSTER_CONCURRENCY: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-concurrency",
    "10",
    "Clusters that are worked on at once; 1 to 1000.",
);

pub(crate) const SYNC_PERIOD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "sync-period",
    "10m",
    "How often every Cluster and every AWSCluster is looked at though nothing tells of a change; at least 10s.",
);

pub(crate) const NAMESPACE: Flag<String> = Flag::string(
    GROUP,
    "namespace",
    "",
    "The one namespace whose Clusters and AWSClusters are kept; empty for all.",
);

pub(crate) const WATCH_FILTER: Flag<String> = Flag::string(
    GROUP,
    "watch-filter",
    "",
    "Only Clusters and AWSClusters are kept whose label cluster.x-k8s.io/watch-filter has this value; empty for all.",
);

pub(crate) const GENERATE_CLUSTER_CA: Flag<bool> = Flag::bool(
    GROUP,
    "generate-cluster-ca",
    "true",
    "Make the authorities and keys of a Cluster that has an endpoint and none of its own; false where a bootstrap provider makes them.",
);

pub(crate) const INFRA_CONTRACT: Flag<String> = Flag::string(
    GROUP,
    "infra-contract",
    "v1beta2",
    "Contract of Cluster API that AWSClusters keep, in their status and in the label that --install-crds puts on their CRD: v1beta2 for cores since 1.11, v1beta1 for older ones and for upstream's controllers of AWSMachines. Who applies config/crd by hand changes the label there.",
);

const OF_EVERY_BUILD: [Spec; 7] = [
    CAPI_MODE.spec(),
    CLUSTER_CONCURRENCY.spec(),
    SYNC_PERIOD.spec(),
    NAMESPACE.spec(),
    WATCH_FILTER.spec(),
    GENERATE_CLUSTER_CA.spec(),
    INFRA_CONTRACT.spec(),
];

#[cfg(not(feature = "aws"))]
pub(crate) const FLAGS: &[Spec] = &OF_EVERY_BUILD;

#[cfg(feature = "aws")]
pub(crate) const FLAGS: &[Spec] = &{
    let mut all = [OF_EVERY_BUILD[0]; OF_EVERY_BUILD.len() + aws::FLAGS.len()];
    let mut at = 0;
    while at < all.len() {
        let ours = at < OF_EVERY_BUILD.len();
        all[at] = if ours { OF_EVERY_BUILD[at] } else { aws::FLAGS[at - OF_EVERY_BUILD.len()] };
        at += 1;
    }
    all
};

/// Objects of one kind that are worked on at once.
pub(super) const CONCURRENCY_MAX: i64 = 1000;
