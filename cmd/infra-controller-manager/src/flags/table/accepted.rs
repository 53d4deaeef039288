//! Flags of kube-controller-manager's cloud, node lifecycle and signing controllers.

use flags::{Kind, Spec, Verdict};

use super::verdicts::{ACCEPTED_GROUP, accepted};

const NO_CLOUD: &str = "the in-tree cloud providers are gone; leave it out";

pub(super) const CLOUD: &[Spec] = &[
    accepted("cluster-name", Kind::String, "kubernetes", "Prefix for names of cloud objects."),
    accepted("external-cloud-volume-plugin", Kind::String, "", "In-tree volume plugin to load."),
    accepted("node-monitor-period", Kind::Duration, "5s", "Pause between looks at Node status."),
    accepted("route-reconciliation-period", Kind::Duration, "10s", "Pause between route checks."),
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
        "Silence before a Node is not ready.",
    ),
    accepted("node-startup-grace-period", Kind::Duration, "1m0s", "The same for a starting Node."),
    accepted("node-eviction-rate", Kind::Float32, "0.1", "Nodes per second to evict from."),
    accepted(
        "secondary-node-eviction-rate",
        Kind::Float32,
        "0.01",
        "The same in an unhealthy zone.",
    ),
    accepted(
        "unhealthy-zone-threshold",
        Kind::Float32,
        "0.55",
        "Share that makes a zone unhealthy.",
    ),
    accepted("large-cluster-size-threshold", Kind::Int32, "50", "Nodes that make a zone large."),
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
        "Longest life of a signature.",
    ),
    signer("cluster-signing-kubelet-serving-cert-file"),
    signer("cluster-signing-kubelet-serving-key-file"),
    signer("cluster-signing-kubelet-client-cert-file"),
    signer("cluster-signing-kubelet-client-key-file"),
    signer("cluster-signing-kube-apiserver-client-cert-file"),
    signer("cluster-signing-kube-apiserver-client-key-file"),
    signer("cluster-signing-legacy-unknown-cert-file"),
    signer("cluster-signing-legacy-unknown-key-file"),
    accepted("root-ca-file", Kind::String, "", "CA bundle put into service account tokens."),
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
        "Disuse after which a token Secret is deleted.",
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
