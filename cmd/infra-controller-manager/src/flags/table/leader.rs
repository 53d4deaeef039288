//! Leader election over a Lease, and the migration of controllers that is refused
//! (`host.md` 3.2, 3.6).

use pflag::{Kind, Spec};

const GROUP: &str = "generic";
const MIGRATION: &str = "leader-migration";

const fn flag(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Spec {
    Spec::honoured(GROUP, name, kind, default, help)
}

pub(super) const FLAGS: &[Spec] = &[
    flag(
        "leader-elect",
        Kind::Bool,
        "true",
        "Hold a Lease while controllers run, so that one replica works and the others stand by.",
    ),
    flag(
        "leader-elect-lease-duration",
        Kind::Duration,
        "15s",
        "How long a standby waits after the last renewal it saw before it takes the Lease over.",
    ),
    flag(
        "leader-elect-renew-deadline",
        Kind::Duration,
        "10s",
        "How long the leader tries to renew before it gives up and exits; less than the lease duration.",
    ),
    flag(
        "leader-elect-retry-period",
        Kind::Duration,
        "2s",
        "Pause between renewals, and between tries to acquire.",
    ),
    flag(
        "leader-elect-resource-lock",
        Kind::String,
        "leases",
        "Type of the lock object; leases is the only one.",
    ),
    flag(
        "leader-elect-resource-name",
        Kind::String,
        "infra-controller-manager",
        "Name of the Lease. Sharing kube-controller-manager's would silence one of the two programs.",
    ),
    flag("leader-elect-resource-namespace", Kind::String, "kube-system", "Namespace of the Lease."),
    flag(
        "leader-elect-release-on-exit",
        Kind::Bool,
        "true",
        "Release the Lease on a clean exit, so that a standby takes over at once. Needs the feature gate ControllerManagerReleaseLeaderElectionLockOnExit, which is on.",
    ),
    flag(
        "allow-stock-lease-name",
        Kind::Bool,
        "false",
        "Allow --leader-elect-resource-name=kube-controller-manager in kube-system. For clusters where the stock program never runs.",
    ),
    Spec::honoured(
        MIGRATION,
        "enable-leader-migration",
        Kind::Bool,
        "false",
        "Refused when true: leader migration cannot move a controller to another program.",
    ),
    Spec::honoured(
        MIGRATION,
        "leader-migration-config",
        Kind::String,
        "",
        "Refused when set, like --enable-leader-migration.",
    ),
];
