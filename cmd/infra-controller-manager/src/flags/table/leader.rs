//! Leader election over a Lease, and the migration of controllers that is refused.

use flags::{Flag, GoDuration, Spec};

const LEADER_GROUP: &str = "generic";
const MIGRATION: &str = "leader-migration";

pub(crate) const LEADER_ELECT: Flag<bool> = Flag::bool(
    LEADER_GROUP,
    "leader-elect",
    "true",
    "Hold a Lease while controllers run, so that one replica works and the others stand by.",
);

pub(crate) const LEADER_ELECT_LEASE_DURATION: Flag<GoDuration> = Flag::duration(
    LEADER_GROUP,
    "leader-elect-lease-duration",
    "15s",
    "How long a standby waits after the last renewal it saw before it takes the Lease over.",
);

pub(crate) const LEADER_ELECT_RENEW_DEADLINE: Flag<GoDuration> = Flag::duration(
    LEADER_GROUP,
    "leader-elect-renew-deadline",
    "10s",
    "How long the leader tries to renew before it gives up and exits; less than the lease duration.",
);

pub(crate) const LEADER_ELECT_RETRY_PERIOD: Flag<GoDuration> = Flag::duration(
    LEADER_GROUP,
    "leader-elect-retry-period",
    "2s",
    "Pause between renewals, and between tries to acquire.",
);

pub(crate) const LEADER_ELECT_RESOURCE_LOCK: Flag<String> = Flag::string(
    LEADER_GROUP,
    "leader-elect-resource-lock",
    "leases",
    "Type of the lock object; leases is the only one.",
);

pub(crate) const LEADER_ELECT_RESOURCE_NAME: Flag<String> = Flag::string(
    LEADER_GROUP,
    "leader-elect-resource-name",
    "infra-controller-manager",
    "Name of the Lease. Sharing kube-controller-manager's would silence one of the two programs.",
);

pub(crate) const LEADER_ELECT_RESOURCE_NAMESPACE: Flag<String> = Flag::string(
    LEADER_GROUP,
    "leader-elect-resource-namespace",
    "kube-system",
    "Namespace of the Lease.",
);

pub(crate) const LEADER_ELECT_RELEASE_ON_EXIT: Flag<bool> = Flag::bool(
    LEADER_GROUP,
    "leader-elect-release-on-exit",
    "true",
    "Release the Lease on a clean exit, so that a standby takes over at once. Needs the feature gate ControllerManagerReleaseLeaderElectionLockOnExit, which is on.",
);

pub(crate) const ALLOW_STOCK_LEASE_NAME: Flag<bool> = Flag::bool(
    LEADER_GROUP,
    "allow-stock-lease-name",
    "false",
    "Allow --leader-elect-resource-name=kube-controller-manager in kube-system. For clusters where the stock program never runs.",
);

pub(crate) const ENABLE_LEADER_MIGRATION: Flag<bool> = Flag::bool(
    MIGRATION,
    "enable-leader-migration",
    "false",
    "Refused when true: leader migration cannot move a controller to another program.",
);

pub(crate) const LEADER_MIGRATION_CONFIG: Flag<String> = Flag::string(
    MIGRATION,
    "leader-migration-config",
    "",
    "Refused when set, like --enable-leader-migration.",
);

pub(super) const LEADER_ELECTION: &[Spec] = &[
    LEADER_ELECT.spec(),
    LEADER_ELECT_LEASE_DURATION.spec(),
    LEADER_ELECT_RENEW_DEADLINE.spec(),
    LEADER_ELECT_RETRY_PERIOD.spec(),
    LEADER_ELECT_RESOURCE_LOCK.spec(),
    LEADER_ELECT_RESOURCE_NAME.spec(),
    LEADER_ELECT_RESOURCE_NAMESPACE.spec(),
    LEADER_ELECT_RELEASE_ON_EXIT.spec(),
    ALLOW_STOCK_LEASE_NAME.spec(),
    ENABLE_LEADER_MIGRATION.spec(),
    LEADER_MIGRATION_CONFIG.spec(),
];
