//! Flags of the whole process: which controllers run, and how they talk to the API server.

use flags::{Flag, Gate, GoDuration, Spec, VersionRequest};

const GROUP: &str = "generic";

pub(crate) const CONTROLLERS: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "controllers",
    "*",
    "Controllers to run: 'name' turns one on, '-name' turns it off, '*' turns on all that are on by default; the first entry that names a controller decides. Names of controllers that only kube-controller-manager has are accepted.",
);

pub(crate) const CONTROLLER_SHUTDOWN_TIMEOUT: Flag<GoDuration> = Flag::duration(
    GROUP,
    "controller-shutdown-timeout",
    "10s",
    "How long controllers may finish their current work after SIGTERM; 0 waits without limit. When it passes the lease is kept and the exit code is 1.",
);

pub(crate) const CONTROLLER_START_INTERVAL: Flag<GoDuration> = Flag::duration(
    GROUP,
    "controller-start-interval",
    "0s",
    "Pause between the starts of two controllers, made up to twice as long at random.",
);

pub(crate) const FEATURE_GATES: Flag<Vec<Gate>> = Flag::feature_gates(
    GROUP,
    "feature-gates",
    "",
    "Feature gates to set, as [component:]Gate=bool; the component is kube unless named.",
);

pub(crate) const KUBE_API_QPS: Flag<f64> = Flag::float32(
    GROUP,
    "kube-api-qps",
    "500",
    "Requests per second that each controller may send to the API server; -1 is unlimited.",
);

pub(crate) const KUBE_API_BURST: Flag<i64> = Flag::int32(
    GROUP,
    "kube-api-burst",
    "1000",
    "Requests that each controller may send at once before --kube-api-qps limits it.",
);

pub(crate) const CONTROLLER_QPS: Flag<Vec<(String, String)>> = Flag::string_map(
    GROUP,
    "controller-qps",
    "",
    "Requests per second and at once for single controllers, as name=QPS:BURST, instead of --kube-api-qps and --kube-api-burst; -1:0 is unlimited.",
);

pub(crate) const DRY_RUN: Flag<bool> = Flag::bool(
    GROUP,
    "dry-run",
    "false",
    "Do everything but store it: decisions are logged, writes are sent with dryRun=All (but for the accounts of --use-service-account-credentials), and the Lease is another one, infra-controller-manager-dry-run unless --leader-elect-resource-name is given. Controllers that need to see what they wrote stay off: of the allocators of node-ipam-controller only the RangeAllocator runs, and nothing is written to a cloud.",
);

pub(crate) const KUBE_API_CONTENT_TYPE: Flag<String> = Flag::string(
    GROUP,
    "kube-api-content-type",
    "application/vnd.kubernetes.protobuf",
    "What kinds that the API server offers as protobuf, such as Node, are read in: application/vnd.kubernetes.protobuf or application/json. Everything else, custom resources and writes among it, is JSON either way.",
);

pub(crate) const EVENT_QPS: Flag<f64> = Flag::float32(
    GROUP,
    "event-qps",
    "0",
    "Events per second that may be sent; 0 means as many as --kube-api-qps, -1 is unlimited.",
);

pub(crate) const EVENT_BURST: Flag<i64> = Flag::int32(
    GROUP,
    "event-burst",
    "0",
    "Events that may be sent at once before --event-qps limits them; 0 means as many as --kube-api-burst.",
);

pub(crate) const MIN_RESYNC_PERIOD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "min-resync-period",
    "12h0m0s",
    "Shortest time between two re-deliveries of all cached objects, which the process makes up to twice as long at random; nothing is asked of the API server. 0 turns them off.",
);

pub(crate) const USE_SERVICE_ACCOUNT_CREDENTIALS: Flag<bool> = Flag::bool(
    GROUP,
    "use-service-account-credentials",
    "false",
    "Give each controller its own service account in kube-system, and a token of it, instead of the identity of --kubeconfig.",
);

pub(crate) const INSTALL_CRDS: Flag<bool> = Flag::bool(
    GROUP,
    "install-crds",
    "false",
    "Install the custom resource definitions of the controllers, and update those labelled app.kubernetes.io/managed-by=infra-controller-manager; others of the same name, and API groups that an aggregated API server serves, are left alone. Needs the rights of config/rbac/install-crds.yaml.",
);

pub(super) const FLAGS: &[Spec] = &[
    CONTROLLERS.spec(),
    CONTROLLER_SHUTDOWN_TIMEOUT.spec(),
    CONTROLLER_START_INTERVAL.spec(),
    FEATURE_GATES.spec(),
    KUBE_API_QPS.spec(),
    KUBE_API_BURST.spec(),
    CONTROLLER_QPS.spec(),
    DRY_RUN.spec(),
    KUBE_API_CONTENT_TYPE.spec(),
    EVENT_QPS.spec(),
    EVENT_BURST.spec(),
    MIN_RESYNC_PERIOD.spec(),
    USE_SERVICE_ACCOUNT_CREDENTIALS.spec(),
    INSTALL_CRDS.spec(),
];

pub(crate) const KUBECONFIG: Flag<String> = Flag::string(
    "misc",
    "kubeconfig",
    "",
    "Kubeconfig with the API server and the identity to use; inside a cluster it may be left out.",
);

pub(crate) const MASTER: Flag<String> = Flag::string(
    "misc",
    "master",
    "",
    "Address of the API server, instead of the one in --kubeconfig.",
);

pub(crate) const HELP: Flag<bool> = Flag::bool(
    "global",
    "help",
    "false",
    "Print this text and exit; =all adds the flags without effect.",
);

pub(crate) const VERSION: Flag<VersionRequest> = Flag::version(
    "global",
    "version",
    "false",
    "Print the version and exit; =raw prints all there is to know about the build, =vX.Y.Z... reports another version that extends the real one.",
);

pub(super) const PROGRAM: &[Spec] =
    &[KUBECONFIG.spec(), MASTER.spec(), HELP.spec(), VERSION.spec()];

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
