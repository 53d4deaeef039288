//! Flags of controllers that stay with kube-controller-manager: accepted, without effect.

use flags::{Kind, Spec, Verdict};

/// Help section of flags without effect.
pub(crate) const ACCEPTED_GROUP: &str = "accepted for compatibility";

pub(super) const fn accepted(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> Spec {
    Spec::honoured(ACCEPTED_GROUP, name, kind, default, help).with_verdict(Verdict::Accepted)
}

const NO_CLOUD: &str = "the in-tree cloud providers were removed; omit this flag";

pub(super) const CLOUD: &[Spec] = &[
    accepted("cluster-name", Kind::String, "kubernetes", "Prefix for names of cloud objects."),
    accepted("external-cloud-volume-plugin", Kind::String, "", "In-tree volume plugin to load."),
    accepted("node-monitor-period", Kind::Duration, "5s", "Interval of checks of Node status."),
    accepted("route-reconciliation-period", Kind::Duration, "10s", "Interval of route checks."),
    accepted("concurrent-service-syncs", Kind::Int32, "1", "Workers for load balancers."),
    deprecated("allow-untagged-cloud", Kind::Bool, "false"),
    deprecated("node-sync-period", Kind::Duration, "0s"),
];

const fn deprecated(name: &'static str, kind: Kind, default: &'static str) -> Spec {
    Spec::honoured(ACCEPTED_GROUP, name, kind, default, "No effect.")
        .with_verdict(Verdict::Deprecated(NO_CLOUD))
}

pub(super) const NODES: &[Spec] = &[
    accepted(
        "node-monitor-grace-period",
        Kind::Duration,
        "50s",
        "Time without status update after which a Node is not ready.",
    ),
    accepted(
        "node-startup-grace-period",
        Kind::Duration,
        "1m0s",
        "Time without status update after which a starting Node is not ready.",
    ),
    accepted(
        "node-eviction-rate",
        Kind::Float32,
        "0.1",
        "Nodes per second whose Pods are evicted.",
    ),
    accepted(
        "secondary-node-eviction-rate",
        Kind::Float32,
        "0.01",
        "Nodes per second whose Pods are evicted in an unhealthy zone.",
    ),
    accepted(
        "unhealthy-zone-threshold",
        Kind::Float32,
        "0.55",
        "Fraction of Nodes not ready that makes a zone unhealthy.",
    ),
    accepted(
        "large-cluster-size-threshold",
        Kind::Int32,
        "50",
        "Number of Nodes that makes a zone large.",
    ),
];

pub(super) const SIGNING: &[Spec] = &[
    accepted("cluster-signing-cert-file", Kind::String, "", "CA certificate of the CSR signers."),
    accepted(
        "cluster-signing-key-file",
        Kind::String,
        "",
        "CA key of the CSR signers; never opened.",
    ),
    accepted(
        "cluster-signing-duration",
        Kind::Duration,
        "8760h0m0s",
        "Maximum validity of a signed certificate.",
    ),
    signer("cluster-signing-kubelet-serving-cert-file"),
    signer("cluster-signing-kubelet-serving-key-file"),
    signer("cluster-signing-kubelet-client-cert-file"),
    signer("cluster-signing-kubelet-client-key-file"),
    signer("cluster-signing-kube-apiserver-client-cert-file"),
    signer("cluster-signing-kube-apiserver-client-key-file"),
    signer("cluster-signing-legacy-unknown-cert-file"),
    signer("cluster-signing-legacy-unknown-key-file"),
    accepted("root-ca-file", Kind::String, "", "CA bundle in service account token Secrets."),
    accepted(
        "service-account-private-key-file",
        Kind::String,
        "",
        "Key that signs service account tokens; never opened.",
    ),
    accepted(
        "concurrent-serviceaccount-token-syncs",
        Kind::Int32,
        "5",
        "Workers for token Secrets.",
    ),
    accepted(
        "legacy-service-account-token-clean-up-period",
        Kind::Duration,
        "8760h0m0s",
        "Time without use after which a token Secret is deleted.",
    ),
];

const fn signer(name: &'static str) -> Spec {
    accepted(name, Kind::String, "", "File of one CSR signer; never opened.")
}

pub(super) const MISCELLANEOUS: &[Spec] = &[
    accepted(
        "emulated-version",
        Kind::ComponentVersions,
        "",
        "Release whose behaviour is emulated.",
    ),
    accepted(
        "min-compatibility-version",
        Kind::ComponentVersions,
        "",
        "Oldest release that other components may have.",
    ),
];

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
        "Number of finished Pods above which the oldest are deleted.",
    ),
];

pub(super) const ENDPOINTS: &[Spec] = &[
    workers("concurrent-endpoint-syncs", "5"),
    batching("endpoint-updates-batch-period"),
    workers("concurrent-service-endpoint-syncs", "5"),
    accepted("max-endpoints-per-slice", Kind::Int32, "100", "Maximum of endpoints per slice."),
    batching("endpointslice-updates-batch-period"),
    workers("mirroring-concurrent-service-endpoint-syncs", "5"),
    batching("mirroring-endpointslice-updates-batch-period"),
    accepted(
        "mirroring-max-endpoints-per-subset",
        Kind::Int32,
        "1000",
        "Maximum of endpoints per mirrored subset.",
    ),
];

pub(super) const HOUSEKEEPING: &[Spec] = &[
    accepted("enable-garbage-collector", Kind::Bool, "true", "Delete objects without owners."),
    workers("concurrent-gc-syncs", "20"),
    workers("concurrent-namespace-syncs", "10"),
    accepted("namespace-sync-period", Kind::Duration, "5m0s", "Interval of namespace checks."),
    workers("concurrent-resource-quota-syncs", "5"),
    accepted("resource-quota-sync-period", Kind::Duration, "5m0s", "Interval of quota counts."),
    workers("concurrent-validating-admission-policy-status-syncs", "5"),
];

pub(super) const AUTOSCALING: &[Spec] = &[
    workers("concurrent-horizontal-pod-autoscaler-syncs", "5"),
    autoscaler("horizontal-pod-autoscaler-sync-period", "15s", "Interval of scaling decisions."),
    autoscaler(
        "horizontal-pod-autoscaler-downscale-stabilization",
        "5m0s",
        "Time window that is considered before scaling down.",
    ),
    accepted(
        "horizontal-pod-autoscaler-tolerance",
        Kind::Float,
        "0.1",
        "Difference from the wanted ratio that is ignored.",
    ),
    autoscaler(
        "horizontal-pod-autoscaler-cpu-initialization-period",
        "5m0s",
        "Age of a Pod up to which its CPU samples may be ignored.",
    ),
    autoscaler(
        "horizontal-pod-autoscaler-initial-readiness-delay",
        "30s",
        "Age of a Pod up to which a readiness change counts as initial readiness.",
    ),
];

const fn autoscaler(name: &'static str, default: &'static str, help: &'static str) -> Spec {
    accepted(name, Kind::Duration, default, help)
}

pub(super) const ATTACHING: &[Spec] = &[
    accepted(
        "attach-detach-reconcile-sync-period",
        Kind::Duration,
        "1m0s",
        "Interval of checks of attached volumes.",
    ),
    accepted(
        "disable-attach-detach-reconcile-sync",
        Kind::Bool,
        "false",
        "Disable the checks of attached volumes.",
    ),
    accepted(
        "disable-force-detach-on-timeout",
        Kind::Bool,
        "false",
        "Never detach a volume by force.",
    ),
];

pub(super) const VOLUMES: &[Spec] = &[
    accepted(
        "concurrent-ephemeralvolume-syncs",
        Kind::Int32,
        "5",
        "Workers of the named controller.",
    ),
    accepted("enable-dynamic-provisioning", Kind::Bool, "true", "Provision volumes on demand."),
    accepted(
        "enable-hostpath-provisioner",
        Kind::Bool,
        "false",
        "Provision host paths, for tests.",
    ),
    accepted(
        "flex-volume-plugin-dir",
        Kind::String,
        "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
        "Directory of flex volume plugins; never created.",
    ),
    accepted("pvclaimbinder-sync-period", Kind::Duration, "15s", "Interval of volume bindings."),
    recycler("pv-recycler-increment-timeout-nfs", "30", "Seconds added per GiB for NFS."),
    recycler("pv-recycler-minimum-timeout-nfs", "300", "Minimum seconds for NFS."),
    recycler("pv-recycler-minimum-timeout-hostpath", "60", "Minimum seconds for host paths."),
    recycler(
        "pv-recycler-timeout-increment-hostpath",
        "30",
        "Seconds added per GiB for host paths.",
    ),
    accepted("pv-recycler-pod-template-filepath-nfs", Kind::String, "", "Pod template for NFS."),
    accepted(
        "pv-recycler-pod-template-filepath-hostpath",
        Kind::String,
        "",
        "Pod template for host paths.",
    ),
];

const fn recycler(name: &'static str, default: &'static str, help: &'static str) -> Spec {
    accepted(name, Kind::Int32, default, help)
}
