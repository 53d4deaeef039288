//! Flags of kube-controller-manager's workload, endpoint, clean-up and autoscaling controllers.

use flags::{Kind, Spec};

use super::verdicts::accepted;

const fn workers(name: &'static str, default: &'static str) -> Spec {
    accepted(name, Kind::Int32, default, "Workers of the named controller.")
}

const fn batching(name: &'static str) -> Spec {
    accepted(name, Kind::Duration, "0s", "Time over which Pod changes are gathered.")
}

pub(super) const WORKLOADS: &[Spec] = &[
    workers("concurrent-deployment-syncs", "5"),
    workers("concurrent-statefulset-syncs", "5"),
    workers("concurrent-daemonset-syncs", "2"),
    workers("concurrent-replicaset-syncs", "5"),
    workers("concurrent-rc-syncs", "5"),
    workers("concurrent-job-syncs", "5"),
    workers("concurrent-cron-job-syncs", "5"),
    workers("concurrent-ttl-after-finished-syncs", "5"),
    workers("concurrent-device-taint-eviction-syncs", "8"),
    workers("concurrent-resourceclaim-syncs", "50"),
    accepted(
        "terminated-pod-gc-threshold",
        Kind::Int32,
        "12500",
        "Finished Pods to keep before the oldest are deleted.",
    ),
];

pub(super) const ENDPOINTS: &[Spec] = &[
    workers("concurrent-endpoint-syncs", "5"),
    batching("endpoint-updates-batch-period"),
    workers("concurrent-service-endpoint-syncs", "5"),
    accepted("max-endpoints-per-slice", Kind::Int32, "100", "Most endpoints of one slice."),
    batching("endpointslice-updates-batch-period"),
    workers("mirroring-concurrent-service-endpoint-syncs", "5"),
    batching("mirroring-endpointslice-updates-batch-period"),
    accepted(
        "mirroring-max-endpoints-per-subset",
        Kind::Int32,
        "1000",
        "Most endpoints of one mirrored subset.",
    ),
];

pub(super) const HOUSEKEEPING: &[Spec] = &[
    accepted("enable-garbage-collector", Kind::Bool, "true", "Delete objects without owners."),
    workers("concurrent-gc-syncs", "20"),
    workers("concurrent-namespace-syncs", "10"),
    accepted("namespace-sync-period", Kind::Duration, "5m0s", "Pause between namespace checks."),
    workers("concurrent-resource-quota-syncs", "5"),
    accepted("resource-quota-sync-period", Kind::Duration, "5m0s", "Pause between quota counts."),
    workers("concurrent-validating-admission-policy-status-syncs", "5"),
];

pub(super) const AUTOSCALING: &[Spec] = &[
    workers("concurrent-horizontal-pod-autoscaler-syncs", "5"),
    autoscaler("horizontal-pod-autoscaler-sync-period", "15s", "Pause between scaling decisions."),
    autoscaler(
        "horizontal-pod-autoscaler-downscale-stabilization",
        "5m0s",
        "Time looked back over before scaling down.",
    ),
    accepted(
        "horizontal-pod-autoscaler-tolerance",
        Kind::Float,
        "0.1",
        "Deviation from the wanted ratio that is ignored.",
    ),
    autoscaler(
        "horizontal-pod-autoscaler-cpu-initialization-period",
        "5m0s",
        "Age up to which CPU samples of a Pod may be skipped.",
    ),
    autoscaler(
        "horizontal-pod-autoscaler-initial-readiness-delay",
        "30s",
        "Age up to which a readiness change counts as the first.",
    ),
];

const fn autoscaler(name: &'static str, default: &'static str, help: &'static str) -> Spec {
    accepted(name, Kind::Duration, default, help)
}
