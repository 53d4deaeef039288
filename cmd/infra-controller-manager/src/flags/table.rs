//! The flags of kube-controller-manager 1.36 that no hosted controller owns, and our own. Controllers
//! bring the tables of theirs. `generic` and `serving` have the flags with an effect; those of
//! controllers that stay with kube-controller-manager are below, accepted without effect.
//!
//! When a flag gets its implementation its support changes here, and only here.

pub(crate) mod generic;
pub(crate) mod serving;

use flags::{FlagSupport, Kind, Spec};

/// Help section of flags without effect.
pub(crate) const ACCEPTED_GROUP: &str = "accepted for compatibility";

/// All tables of this crate.
pub const GROUPS: &[&[Spec]] = &[
    generic::FLAGS,
    generic::LEADER_ELECTION,
    generic::MIGRATION,
    generic::MISC,
    generic::GLOBAL,
    serving::FLAGS,
    serving::AUTHENTICATION,
    serving::AUTHORIZATION,
    serving::METRICS,
    serving::LOGS,
    serving::DEBUGGING,
    ACCEPTED,
    DEPRECATED,
];

const DEPRECATED: &[Spec] = &[
    deprecated("allow-untagged-cloud", Kind::Bool, "false"),
    deprecated("node-sync-period", Kind::Duration, "0s"),
];

const fn deprecated(name: &'static str, kind: Kind, default: &'static str) -> Spec {
    Spec::honoured(ACCEPTED_GROUP, name, kind, default, "No effect.").with_support(
        FlagSupport::Deprecated("the in-tree cloud providers were removed; omit this flag"),
    )
}

/// Declares flags without effect.
macro_rules! accepted {
    ($($name:literal: $kind:ident = $default:literal, $help:literal;)+) => {
        const ACCEPTED: &[Spec] = &[$(
            Spec::honoured(ACCEPTED_GROUP, $name, Kind::$kind, $default, $help)
                .with_support(FlagSupport::Accepted)
        ),+];
    };
}

accepted! {
    // Clouds.
    "cluster-name": String = "kubernetes", "Prefix for names of cloud objects.";
    "external-cloud-volume-plugin": String = "", "In-tree volume plugin to load.";
    "node-monitor-period": Duration = "5s", "Interval of checks of Node status.";
    "route-reconciliation-period": Duration = "10s", "Interval of route checks.";
    "concurrent-service-syncs": Int32 = "1", "Workers for load balancers.";
    // Node lifecycle.
    "node-monitor-grace-period": Duration = "50s",
        "Time without status update after which a Node is not ready.";
    "node-startup-grace-period": Duration = "1m0s",
        "Time without status update after which a starting Node is not ready.";
    "node-eviction-rate": Float32 = "0.1", "Nodes per second whose Pods are evicted.";
    "secondary-node-eviction-rate": Float32 = "0.01",
        "Nodes per second whose Pods are evicted in an unhealthy zone.";
    "unhealthy-zone-threshold": Float32 = "0.55",
        "Fraction of Nodes not ready that makes a zone unhealthy.";
    "large-cluster-size-threshold": Int32 = "50", "Number of Nodes that makes a zone large.";
    // Certificates and tokens.
    "cluster-signing-cert-file": String = "", "CA certificate of the CSR signers.";
    "cluster-signing-key-file": String = "", "CA key of the CSR signers; never opened.";
    "cluster-signing-duration": Duration = "8760h0m0s", "Maximum validity of a signed certificate.";
    "cluster-signing-kubelet-serving-cert-file": String = "",
        "File of one CSR signer; never opened.";
    "cluster-signing-kubelet-serving-key-file": String = "",
        "File of one CSR signer; never opened.";
    "cluster-signing-kubelet-client-cert-file": String = "",
        "File of one CSR signer; never opened.";
    "cluster-signing-kubelet-client-key-file": String = "", "File of one CSR signer; never opened.";
    "cluster-signing-kube-apiserver-client-cert-file": String = "",
        "File of one CSR signer; never opened.";
    "cluster-signing-kube-apiserver-client-key-file": String = "",
        "File of one CSR signer; never opened.";
    "cluster-signing-legacy-unknown-cert-file": String = "",
        "File of one CSR signer; never opened.";
    "cluster-signing-legacy-unknown-key-file": String = "", "File of one CSR signer; never opened.";
    "root-ca-file": String = "", "CA bundle in service account token Secrets.";
    "service-account-private-key-file": String = "",
        "Key that signs service account tokens; never opened.";
    "concurrent-serviceaccount-token-syncs": Int32 = "5", "Workers for token Secrets.";
    "legacy-service-account-token-clean-up-period": Duration = "8760h0m0s",
        "Time without use after which a token Secret is deleted.";
    // All components.
    "emulated-version": ComponentVersions = "", "Release whose behaviour is emulated.";
    "min-compatibility-version": ComponentVersions = "",
        "Oldest release that other components may have.";
    "show-hidden-metrics-for-version": String = "",
        "Release whose hidden metrics are shown; this program hides none.";
    "contention-profiling": Bool = "false", "Profile blocked goroutines; this program has none.";
    // Workloads.
    "concurrent-deployment-syncs": Int32 = "5", "Workers of the named controller.";
    "concurrent-statefulset-syncs": Int32 = "5", "Workers of the named controller.";
    "concurrent-daemonset-syncs": Int32 = "2", "Workers of the named controller.";
    "concurrent-replicaset-syncs": Int32 = "5", "Workers of the named controller.";
    "concurrent-rc-syncs": Int32 = "5", "Workers of the named controller.";
    "concurrent-job-syncs": Int32 = "5", "Workers of the named controller.";
    "concurrent-cron-job-syncs": Int32 = "5", "Workers of the named controller.";
    "concurrent-ttl-after-finished-syncs": Int32 = "5", "Workers of the named controller.";
    "concurrent-device-taint-eviction-syncs": Int32 = "8", "Workers of the named controller.";
    "concurrent-resourceclaim-syncs": Int32 = "50", "Workers of the named controller.";
    "terminated-pod-gc-threshold": Int32 = "12500",
        "Number of finished Pods above which the oldest are deleted.";
    // Endpoints.
    "concurrent-endpoint-syncs": Int32 = "5", "Workers of the named controller.";
    "endpoint-updates-batch-period": Duration = "0s", "Time over which Pod changes are gathered.";
    "concurrent-service-endpoint-syncs": Int32 = "5", "Workers of the named controller.";
    "max-endpoints-per-slice": Int32 = "100", "Maximum of endpoints per slice.";
    "endpointslice-updates-batch-period": Duration = "0s",
        "Time over which Pod changes are gathered.";
    "mirroring-concurrent-service-endpoint-syncs": Int32 = "5", "Workers of the named controller.";
    "mirroring-endpointslice-updates-batch-period": Duration = "0s",
        "Time over which Pod changes are gathered.";
    "mirroring-max-endpoints-per-subset": Int32 = "1000",
        "Maximum of endpoints per mirrored subset.";
    // Garbage, namespaces, quotas, policies.
    "enable-garbage-collector": Bool = "true", "Delete objects without owners.";
    "concurrent-gc-syncs": Int32 = "20", "Workers of the named controller.";
    "concurrent-namespace-syncs": Int32 = "10", "Workers of the named controller.";
    "namespace-sync-period": Duration = "5m0s", "Interval of namespace checks.";
    "concurrent-resource-quota-syncs": Int32 = "5", "Workers of the named controller.";
    "resource-quota-sync-period": Duration = "5m0s", "Interval of quota counts.";
    "concurrent-validating-admission-policy-status-syncs": Int32 = "5",
        "Workers of the named controller.";
    // Autoscaling.
    "concurrent-horizontal-pod-autoscaler-syncs": Int32 = "5", "Workers of the named controller.";
    "horizontal-pod-autoscaler-sync-period": Duration = "15s", "Interval of scaling decisions.";
    "horizontal-pod-autoscaler-downscale-stabilization": Duration = "5m0s",
        "Time window that is considered before scaling down.";
    "horizontal-pod-autoscaler-tolerance": Float = "0.1",
        "Difference from the wanted ratio that is ignored.";
    "horizontal-pod-autoscaler-cpu-initialization-period": Duration = "5m0s",
        "Age of a Pod up to which its CPU samples may be ignored.";
    "horizontal-pod-autoscaler-initial-readiness-delay": Duration = "30s",
        "Age of a Pod up to which a readiness change counts as initial readiness.";
    // Attached volumes.
    "attach-detach-reconcile-sync-period": Duration = "1m0s",
        "Interval of checks of attached volumes.";
    "disable-attach-detach-reconcile-sync": Bool = "false",
        "Disable the checks of attached volumes.";
    "disable-force-detach-on-timeout": Bool = "false", "Never detach a volume by force.";
    // Volumes.
    "concurrent-ephemeralvolume-syncs": Int32 = "5", "Workers of the named controller.";
    "enable-dynamic-provisioning": Bool = "true", "Provision volumes on demand.";
    "enable-hostpath-provisioner": Bool = "false", "Provision host paths, for tests.";
    "flex-volume-plugin-dir": String = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
        "Directory of flex volume plugins; never created.";
    "pvclaimbinder-sync-period": Duration = "15s", "Interval of volume bindings.";
    "pv-recycler-increment-timeout-nfs": Int32 = "30", "Seconds added per GiB for NFS.";
    "pv-recycler-minimum-timeout-nfs": Int32 = "300", "Minimum seconds for NFS.";
    "pv-recycler-minimum-timeout-hostpath": Int32 = "60", "Minimum seconds for host paths.";
    "pv-recycler-timeout-increment-hostpath": Int32 = "30", "Seconds added per GiB for host paths.";
    "pv-recycler-pod-template-filepath-nfs": String = "", "Pod template for NFS.";
    "pv-recycler-pod-template-filepath-hostpath": String = "", "Pod template for host paths.";
}
