//! The flags that this crate owns. Their values are judged in `options.rs`, numbers of objects and
//! periods here.

#[cfg(feature = "aws")]
pub(crate) mod aws;

use std::time::Duration;

use flags::{Flag, GoDuration, Problem, Spec, Values};

use crate::NAME;

flags::declare! {
    /// Flags of every build.
    pub(crate) OF_EVERY_BUILD in NAME;

    CAPI_MODE: String = string("capi-mode", "auto")
        "Which program reconciles Clusters: standalone for this program, provider for the core of Cluster API, auto for this program if the CRD of Clusters has the label of this program.";
    CLUSTER_CONCURRENCY: i64 = int32("cluster-concurrency", "10")
        "Maximum of Clusters that are reconciled at once; 1 to 1000.";
    SYNC_PERIOD: GoDuration = duration("sync-period", "10m")
        "How often every Cluster and every AWSCluster is reconciled without a change; at least 10s.";
    NAMESPACE: String = string("namespace", "")
        "Reconcile Clusters and AWSClusters of this namespace only; empty for all namespaces.";
    WATCH_FILTER: String = string("watch-filter", "")
        "Reconcile only Clusters and AWSClusters whose label cluster.x-k8s.io/watch-filter has this value; empty for all.";
    GENERATE_CLUSTER_CA: bool = bool("generate-cluster-ca", "true")
        "Create the CAs and keys of a Cluster that has an endpoint but no CAs; set to false if a bootstrap provider creates them.";
    INFRA_CONTRACT: String = string("infra-contract", "v1beta2")
        "Contract of Cluster API that AWSClusters follow, in their status and in the label that --install-crds sets on their CRD: v1beta2 for Cluster API 1.11 and later, v1beta1 for older releases and for upstream's controllers of AWSMachines. If you apply config/crd by hand, change the label there.";
}

#[cfg(not(feature = "aws"))]
pub(crate) const FLAGS: &[Spec] = OF_EVERY_BUILD;

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

const CONCURRENCY_MAX: i64 = 1000;
pub(super) const PERIOD_MIN: Duration = Duration::from_secs(10);

/// Objects of one kind that are worked on at once.
pub(super) fn concurrency(values: &Values, flag: &Flag<i64>, problems: &mut Vec<Problem>) -> usize {
    let number = values.get(flag);
    if !(1..=CONCURRENCY_MAX).contains(&number) {
        problems.push(flag.problem(format!("{number} is not between 1 and {CONCURRENCY_MAX}")));
    }
    usize::try_from(number).unwrap_or(1)
}

/// How often something is done.
pub(super) fn period(
    values: &Values,
    flag: &Flag<GoDuration>,
    problems: &mut Vec<Problem>,
) -> Duration {
    let period = values.get(flag).to_std();
    if period < PERIOD_MIN {
        problems.push(flag.problem(format!("{period:?} is less than 10s")));
    }
    period
}
