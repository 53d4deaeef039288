//! Flags of the whole process: which controllers run, how they talk to the API server, and the Lease.

use flags::{GateSetting, GoDuration, VersionRequest};

flags::declare! {
    pub(crate) FLAGS in "generic";

    CONTROLLERS: Vec<String> = strings("controllers", "*")
        "Controllers to run: 'name' enables a controller, '-name' disables it, '*' enables all \
         that are on by default. The first entry that names a controller decides. Names of \
         controllers that only kube-controller-manager has are accepted.";
    CONTROLLER_SHUTDOWN_TIMEOUT: GoDuration = duration("controller-shutdown-timeout", "10s")
        "How long controllers may finish their current work after SIGTERM; 0 means no limit. When \
         the time is over, the process exits with code 1 and does not release the Lease.";
    CONTROLLER_START_INTERVAL: GoDuration = duration("controller-start-interval", "0s")
        "Pause between the starts of two controllers; each pause is extended at random, to at \
         most twice this value.";
    FEATURE_GATES: Vec<GateSetting> = feature_gates("feature-gates", "")
        "Feature gates to set, as [component:]Gate=bool; the default component is kube.";
    KUBE_API_QPS: f64 = float32("kube-api-qps", "500")
        "Requests per second that each controller may send to the API server; -1 is unlimited.";
    KUBE_API_BURST: i64 = int32("kube-api-burst", "1000")
        "Requests that each controller may send at once before --kube-api-qps limits it.";
    CONTROLLER_QPS: Vec<(String, String)> = string_map("controller-qps", "")
        "Throttle of single controllers, as name=QPS:BURST, instead of --kube-api-qps and \
         --kube-api-burst; -1:0 is unlimited.";
    DRY_RUN: bool = bool("dry-run", "false")
        "Log decisions instead of storing them. Writes are sent with dryRun=All, except for the \
         service accounts of --use-service-account-credentials. The Lease is \
         infra-controller-manager-dry-run unless --leader-elect-resource-name is given. Only \
         node-ipam-controller runs, and only with RangeAllocator; nothing is written to a cloud.";
    KUBE_API_CONTENT_TYPE: String =
        string("kube-api-content-type", "application/vnd.kubernetes.protobuf")
        "Encoding in which the program reads Nodes and other kinds that the API server serves as \
         protobuf: application/vnd.kubernetes.protobuf or application/json. Custom resources and \
         all writes are always JSON.";
    EVENT_QPS: f64 = float32("event-qps", "0")
        "Events per second that each controller may send; 0 means the value of --kube-api-qps, -1 \
         is unlimited.";
    EVENT_BURST: i64 = int32("event-burst", "0")
        "Events that each controller may send at once before --event-qps limits it; 0 means the \
         value of --kube-api-burst.";
    MIN_RESYNC_PERIOD: GoDuration = duration("min-resync-period", "12h0m0s")
        "Shortest time between two resyncs, in which controllers get all cached objects again; \
         extended at random, to at most twice this value. A resync sends no request to the API \
         server. 0 disables it.";
    USE_SERVICE_ACCOUNT_CREDENTIALS: bool = bool("use-service-account-credentials", "false")
        "Use a service account of kube-system, with its own token, for each controller instead of \
         the identity of --kubeconfig.";
    INSTALL_CRDS: bool = bool("install-crds", "false")
        "Install the CRDs of the controllers, and update CRDs that have the label \
         app.kubernetes.io/managed-by=infra-controller-manager. Other CRDs of the same name, and \
         API groups that an aggregated API server serves, are not changed. Needs the permissions \
         of config/rbac/install-crds.yaml.";
}

flags::declare! {
    pub(crate) MISC in "misc";

    KUBECONFIG: String = string("kubeconfig", "")
        "Kubeconfig with the address of the API server and the identity of the program; not \
         needed inside a cluster.";
    MASTER: String = string("master", "")
        "Address of the API server, instead of the one in --kubeconfig.";
}

flags::declare! {
    pub(crate) GLOBAL in "global";

    HELP: bool = bool("help", "false")
        "Print this text and exit; =all also prints the flags without effect.";
    VERSION: VersionRequest = version("version", "false")
        "Print the version and exit; =raw prints all details of the build, =vX.Y.Z... reports \
         another version, which must extend the real one.";
}

flags::declare! {
    pub(crate) LEADER_ELECTION in "generic";

    LEADER_ELECT: bool = bool("leader-elect", "true")
        "Hold a Lease while controllers run, so that one replica works and the others wait.";
    LEADER_ELECT_LEASE_DURATION: GoDuration = duration("leader-elect-lease-duration", "15s")
        "How long a waiting replica waits after the last renewal that it has seen before it takes \
         the Lease.";
    LEADER_ELECT_RENEW_DEADLINE: GoDuration = duration("leader-elect-renew-deadline", "10s")
        "How long the leader tries to renew the Lease before it gives up and exits; must be less \
         than --leader-elect-lease-duration.";
    LEADER_ELECT_RETRY_PERIOD: GoDuration = duration("leader-elect-retry-period", "2s")
        "Pause between two renewals, and between two attempts to acquire the Lease.";
    LEADER_ELECT_RESOURCE_LOCK: String = string("leader-elect-resource-lock", "leases")
        "Type of the lock object; only leases is supported.";
    LEADER_ELECT_RESOURCE_NAME: String =
        string("leader-elect-resource-name", "infra-controller-manager")
        "Name of the Lease. With the Lease of kube-controller-manager, only one of the two \
         programs would run.";
    LEADER_ELECT_RESOURCE_NAMESPACE: String =
        string("leader-elect-resource-namespace", "kube-system")
        "Namespace of the Lease.";
    LEADER_ELECT_RELEASE_ON_EXIT: bool = bool("leader-elect-release-on-exit", "true")
        "Release the Lease on a clean exit, so that another replica leads at once. Needs the \
         feature gate ControllerManagerReleaseLeaderElectionLockOnExit, which is on by default.";
    ALLOW_STOCK_LEASE_NAME: bool = bool("allow-stock-lease-name", "false")
        "Allow --leader-elect-resource-name=kube-controller-manager in kube-system. Only for \
         clusters where kube-controller-manager never runs.";
}

flags::declare! {
    pub(crate) MIGRATION in "leader-migration";

    ENABLE_LEADER_MIGRATION: bool = bool("enable-leader-migration", "false")
        "Must be false: leader migration cannot move a controller to another program.";
    LEADER_MIGRATION_CONFIG: String = string("leader-migration-config", "")
        "Must be empty, see --enable-leader-migration.";
}
