//! Flags of the whole process: which controllers run, and how they talk to the API server.

use pflag::{Kind, Spec};

use super::not_enforced;

const GROUP: &str = "generic";

const fn flag(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Spec {
    Spec::honoured(GROUP, name, kind, default, help)
}

pub(super) const FLAGS: &[Spec] = &[
    flag(
        "controllers",
        Kind::Strings,
        "*",
        "Controllers to run: 'name' turns one on, '-name' turns it off, '*' turns on all that are on by default; the first entry that names a controller decides. Names of controllers that only kube-controller-manager has are accepted.",
    ),
    flag(
        "controller-shutdown-timeout",
        Kind::Duration,
        "10s",
        "How long controllers may finish their current work after SIGTERM; 0 waits without limit. When it passes the lease is kept and the exit code is 1.",
    ),
    flag(
        "controller-start-interval",
        Kind::Duration,
        "0s",
        "Pause between the starts of two controllers, made up to twice as long at random.",
    ),
    flag(
        "feature-gates",
        Kind::FeatureGates,
        "",
        "Feature gates to set, as [component:]Gate=bool; the component is kube unless named.",
    ),
    flag(
        "kube-api-qps",
        Kind::Float32,
        "500",
        "Requests per second that each controller may send to the API server; -1 is unlimited.",
    ),
    flag(
        "kube-api-burst",
        Kind::Int32,
        "1000",
        "Requests that each controller may send at once before --kube-api-qps limits it.",
    ),
    flag(
        "kube-api-content-type",
        Kind::String,
        "application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf or application/json. Either way Nodes are read as protobuf where the server offers it, and everything else is JSON.",
    ),
    flag(
        "event-qps",
        Kind::Float32,
        "0",
        "Events per second that may be sent; 0 means as many as --kube-api-qps, -1 is unlimited.",
    ),
    flag(
        "event-burst",
        Kind::Int32,
        "0",
        "Events that may be sent at once before --event-qps limits them; 0 means as many as --kube-api-burst.",
    ),
    not_enforced(
        GROUP,
        "min-resync-period",
        Kind::Duration,
        "12h0m0s",
        "Shortest time between two re-deliveries of all cached objects; the real one is random up to twice as long.",
    ),
    flag(
        "use-service-account-credentials",
        Kind::Bool,
        "false",
        "Give each controller its own service account in kube-system, and a token of it, instead of the identity of --kubeconfig.",
    ),
];
