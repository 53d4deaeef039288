//! Flags of the whole process: which controllers run, and how they talk to the API server.

use flags::{Flag, Gate, GoDuration, Spec, VersionRequest};

const GROUP: &str = "generic";

pub(crate) const CONTROLLERS: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "controllers",
    "*",
    "Controllers to run: 'name' enables a controller, '-name' disables it, '*' enables all that are on by default. The first entry that names a controller decides. Names of controllers that only kube-controller-manager has are accepted.",
);

pub(crate) const CONTROLLER_SHUTDOWN_TIMEOUT: Flag<GoDuration> = Flag::duration(
    GROUP,
    "controller-shutdown-timeout",
    "10s",
    "How long controllers may finish their current work after SIGTERM; 0 means no limit. When the time is over, the process exits with code 1 and does not release the Lease.",
);

pub(crate) const CONTROLLER_START_INTERVAL: Flag<GoDuration> = Flag::duration(
    GROUP,
    "controller-start-interval",
    "0s",
    "Pause between the starts of two controllers; each pause is extended at random, to at most twice this value.",
);

pub(crate) const FEATURE_GATES: Flag<Vec<Gate>> = Flag::feature_gates(
    GROUP,
    "feature-gates",
    "",
    "Feature gates to set, as [component:]Gate=bool; the default component is kube.",
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
    "Throttle of single controllers, as name=QPS:BURST, instead of --kube-api-qps and --kube-api-burst; -1:0 is unlimited.",
);

pub(crate) const DRY_RUN: Flag<bool> = Flag::bool(
    GROUP,
    "dry-run",
    "false",
    "Log decisions instead of storing them. Writes are sent with dryRun=All, except for the service accounts of --use-service-account-credentials. The Lease is infra-controller-manager-dry-run unless --leader-elect-resource-name is given. Only node-ipam-controller runs, and only with RangeAllocator; nothing is written to a cloud.",
);

pub(crate) const KUBE_API_CONTENT_TYPE: Flag<String> = Flag::string(
    GROUP,
    "kube-api-content-type",
    "application/vnd.kubernetes.protobuf",
    "Encoding in which the program reads Nodes and other kinds that the API server serves as protobuf: application/vnd.kubernetes.protobuf or application/json. Custom resources and all writes are always JSON.",
);

pub(crate) const EVENT_QPS: Flag<f64> = Flag::float32(
    GROUP,
    "event-qps",
    "0",
    "Events per second that each controller may send; 0 means the value of --kube-api-qps, -1 is unlimited.",
);

pub(crate) const EVENT_BURST: Flag<i64> = Flag::int32(
    GROUP,
    "event-burst",
    "0",
    "Events that each controller may send at once before --event-qps limits it; 0 means the value of --kube-api-burst.",
);

pub(crate) const MIN_RESYNC_PERIOD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "min-resync-period",
    "12h0m0s",
    "Shortest time between two resyncs, in which controllers get all cached objects again; extended at random, to at most twice this value. A resync sends no request to the API server. 0 disables it.",
);

pub(crate) const USE_SERVICE_ACCOUNT_CREDENTIALS: Flag<bool> = Flag::bool(
    GROUP,
    "use-service-account-credentials",
    "false",
    "Use a service account of kube-system, with its own token, for each controller instead of the identity of --kubeconfig.",
);

pub(crate) const INSTALL_CRDS: Flag<bool> = Flag::bool(
    GROUP,
    "install-crds",
    "false",
    "Install the CRDs of the controllers, and update CRDs that have the label app.kubernetes.io/managed-by=infra-controller-manager. Other CRDs of the same name, and API groups that an aggregated API server serves, are not changed. Needs the permissions of config/rbac/install-crds.yaml.",
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
    "Kubeconfig with the address of the API server and the identity of the program; not needed inside a cluster.",
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
    "Print this text and exit; =all also prints the flags without effect.",
);

pub(crate) const VERSION: Flag<VersionRequest> = Flag::version(
    "global",
    "version",
    "false",
    "Print the version and exit; =raw prints all details of the build, =vX.Y.Z... reports another version, which must extend the real one.",
);

pub(super) const PROGRAM: &[Spec] =
    &[KUBECONFIG.spec(), MASTER.spec(), HELP.spec(), VERSION.spec()];

const LEADER_GROUP: &str = "generic";
const MIGRATION: &str = "leader-migration";

pub(crate) const LEADER_ELECT: Flag<bool> = Flag::bool(
    LEADER_GROUP,
    "leader-elect",
    "true",
    "Hold a Lease while controllers run, so that one replica works and the others wait.",
);

pub(crate) const LEADER_ELECT_LEASE_DURATION: Flag<GoDuration> = Flag::duration(
    LEADER_GROUP,
    "leader-elect-lease-duration",
    "15s",
    "How long a waiting replica waits after the last renewal that it has seen before it takes the Lease.",
);

pub(crate) const LEADER_ELECT_RENEW_DEADLINE: Flag<GoDuration> = Flag::duration(
    LEADER_GROUP,
    "leader-elect-renew-deadline",
    "10s",
    "How long the leader tries to renew the Lease before it gives up and exits; must be less than --leader-elect-lease-duration.",
);

pub(crate) const LEADER_ELECT_RETRY_PERIOD: Flag<GoDuration> = Flag::duration(
    LEADER_GROUP,
    "leader-elect-retry-period",
    "2s",
    "Pause between two renewals, and between two attempts to acquire the Lease.",
);

pub(crate) const LEADER_ELECT_RESOURCE_LOCK: Flag<String> = Flag::string(
    LEADER_GROUP,
    "leader-elect-resource-lock",
    "leases",
    "Type of the lock object; only leases is supported.",
);

pub(crate) const LEADER_ELECT_RESOURCE_NAME: Flag<String> = Flag::string(
    LEADER_GROUP,
    "leader-elect-resource-name",
    "infra-controller-manager",
    "Name of the Lease. With the Lease of kube-controller-manager, only one of the two programs would run.",
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
    "Release the Lease on a clean exit, so that another replica leads at once. Needs the feature gate ControllerManagerReleaseLeaderElectionLockOnExit, which is on by default.",
);

pub(crate) const ALLOW_STOCK_LEASE_NAME: Flag<bool> = Flag::bool(
    LEADER_GROUP,
    "allow-stock-lease-name",
    "false",
    "Allow --leader-elect-resource-name=kube-controller-manager in kube-system. Only for clusters where kube-controller-manager never runs.",
);

pub(crate) const ENABLE_LEADER_MIGRATION: Flag<bool> = Flag::bool(
    MIGRATION,
    "enable-leader-migration",
    "false",
    "Must be false: leader migration cannot move a controller to another program.",
);

pub(crate) const LEADER_MIGRATION_CONFIG: Flag<String> = Flag::string(
    MIGRATION,
    "leader-migration-config",
    "",
    "Must be empty, see --enable-leader-migration.",
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
