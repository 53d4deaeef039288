//! The flags that cluster-health owns; their values are judged in `options.rs`. Flags that TKEStack
//! has keep its names.

use flags::{Flag, GoDuration, Spec};

use crate::cluster_profile::options as cluster_profile;

const GROUP: &str = "cluster-health-controller";

pub(crate) const FLAVOURS: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "cluster-health-flavours",
    "auto",
    "Object models of member clusters: kubefed, tke, and clusterprofile of the Cluster Inventory API. auto stands for kubefed and tke. Each is enabled as soon as its kind is served.",
);

pub(crate) const KUBEFED_NAMESPACE: Flag<String> = Flag::string(
    GROUP,
    "cluster-health-kubefed-namespace",
    "kube-federation-system",
    "Namespace of the KubeFedClusters, and of the Secrets that ClusterCredentials refer to; empty for all namespaces.",
);

pub(crate) const KUBEFED_CONFIG: Flag<String> = Flag::string(
    GROUP,
    "cluster-health-kubefed-config",
    "kubefed",
    "Name of the KubeFedConfig in --cluster-health-kubefed-namespace. Its clusterHealthCheck takes precedence over the flags; empty means that only the flags count.",
);

pub(crate) const ZONES: Flag<bool> = Flag::bool(
    GROUP,
    "cluster-health-zones",
    "true",
    "Write zones and region of ready KubeFedClusters, read from the labels of their Nodes.",
);

pub(crate) const PERIOD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-period",
    "10s",
    "Time from the start of one probe of a KubeFedCluster or ClusterProfile to the start of the next; at least 1s.",
);

pub(crate) const TIMEOUT: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-timeout",
    "3s",
    "Maximum duration of one probe of a KubeFedCluster or ClusterProfile, including retries; at least 100ms.",
);

pub(crate) const FAILURE_THRESHOLD: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-failure-threshold",
    "3",
    "Number of consecutive failed probes after which a ready KubeFedCluster or ClusterProfile is published as failing.",
);

pub(crate) const SUCCESS_THRESHOLD: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-success-threshold",
    "1",
    "Number of consecutive successful probes after which a failing KubeFedCluster or ClusterProfile is published as ready.",
);

pub(crate) const CONFIRM_INTERVAL: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-confirm-interval",
    "10s",
    "Time after which a probe is repeated whose result differs from the published health, if the period is longer; at least 1s.",
);

pub(crate) const JITTER: Flag<f64> = Flag::float32(
    GROUP,
    "cluster-health-jitter",
    "0.1",
    "Fraction by which intervals between probes vary at random, 0 to 0.5.",
);

pub(crate) const DIAL_DENY_CIDRS: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "dial-deny-cidrs",
    "",
    "Ranges that probes, their proxies and the checks of the validating webhook never dial, such as 127.0.0.0/8 and the addresses of the nodes. Link-local and multicast addresses and the metadata services of clouds are always denied.",
);

pub(crate) const DIAL_ALLOW_CIDRS: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "dial-allow-cidrs",
    "",
    "Ranges that are dialled although --dial-deny-cidrs contains them.",
);

pub(crate) const MAX_CONCURRENT_PROBES: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-max-concurrent-probes",
    "0",
    "Maximum of concurrent probes; 0 computes a maximum that suffices when clusters do not answer.",
);

pub(crate) const CONNECTION_MAX_AGE: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-connection-max-age",
    "5m",
    "Age after which the connection to a cluster is replaced; 0 opens a new connection for each probe.",
);

pub(crate) const IDLE_TIMEOUT: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-idle-timeout",
    "1m30s",
    "Time without a request after which the connection to a cluster is not used again; with a longer period each probe opens a new connection.",
);

pub(crate) const HEARTBEAT_INTERVAL: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-heartbeat-interval",
    "5m",
    "How often the controller writes a status in which only times and messages changed; 0 writes it after each probe.",
);

pub(crate) const STALE_AFTER: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-stale-after",
    "0s",
    "Time without a completed probe after which a cluster is published as unknown. 0 means four periods, at least 40s; with several shards, also long enough for another replica to take over the cluster.",
);

pub(crate) const WRITE_QPS: Flag<f64> = Flag::float32(
    GROUP,
    "cluster-health-write-qps",
    "-1",
    "Status writes per second; a negative value sets no limit, and 64 are under way at most: the API server limits them by its priority and fairness.",
);

pub(crate) const WRITE_BURST: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-write-burst",
    "100",
    "Status writes that may be sent at once before --cluster-health-write-qps limits them.",
);

pub(crate) const FLAP_TRANSITIONS: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-flap-transitions",
    "6",
    "Number of published changes of readiness within --cluster-health-flap-window after which a cluster counts as flapping; 0 disables damping.",
);

pub(crate) const FLAP_WINDOW: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-flap-window",
    "10m",
    "Time window for --cluster-health-flap-transitions.",
);

pub(crate) const FLAP_MIN_SUCCESS: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-flap-min-success",
    "3",
    "Minimum of consecutive successful probes before a flapping cluster is published as ready.",
);

pub(crate) const SHARDS: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-shards",
    "1",
    "Expected number of replicas that share the member clusters, each probing a part of them; 1 means that the leader probes all. The replicas that run share the members; when fewer run, the log and a metric report it. The first replica starts to probe after 30s, in which it looks for others. Give all replicas the same flags. Before you change this value between 1 and more with a rolling update, apply config/rbac/cluster-health-shards.yaml: the leader then uses a Lease in --cluster-health-shards-namespace, too.",
);

pub(crate) const SHARDS_NAMESPACE: Flag<String> = Flag::string(
    GROUP,
    "cluster-health-shards-namespace",
    "infra-controller-manager",
    "Namespace of the Leases by which replicas share the member clusters, and of the Lease of a leader that probes all. Replicas with Leases in the same namespace share members with each other, so a second installation needs another namespace. The program does not create it.",
);

pub(crate) const GUARD: Flag<bool> = Flag::bool(
    GROUP,
    "cluster-health-guard",
    "true",
    "Before clusters are published as offline, check that this process is not cut off itself: by its own API server, by --cluster-health-guard-endpoints and by the other clusters.",
);

pub(crate) const GUARD_ENDPOINTS: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "cluster-health-guard-endpoints",
    "",
    "Up to 16 endpoints that are usually up and are reached in the same way as the clusters: tcp://host:port must accept a connection, https://host must answer. Without them an outage of all clusters at once cannot be distinguished from an outage of this process, and is published as unknown.",
);

pub(crate) const OBJECTIVE: Flag<f64> = Flag::float32(
    GROUP,
    "cluster-health-objective",
    "99.9",
    "Percentage of the observed time, over 28 days, in which a cluster has to be healthy, 90 to 99.999; 0 for none. The annotation infra-controller-manager/objective of a cluster goes before it. With an objective the object keeps a record of its availability.",
);

pub(crate) const GUARD_RATIO: Flag<f64> = Flag::float32(
    GROUP,
    "cluster-health-guard-ratio",
    "0.5",
    "Fraction of clusters that do not answer, 0.1 to 1, from which on the guard suspects an outage of this process.",
);

pub(crate) const GUARD_MIN: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-guard-min",
    "5",
    "Minimum of clusters that do not answer for --cluster-health-guard-ratio; at least 2.",
);

pub(crate) const GUARD_INTERVAL: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-guard-interval",
    "5s",
    "How often the guard asks the API server and --cluster-health-guard-endpoints; each second while clusters do not answer. At least 1s.",
);

pub(crate) const GUARD_TIMEOUT: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-guard-timeout",
    "2s",
    "Maximum duration of one check of the guard; at least 100ms and at most --cluster-health-guard-interval.",
);

pub(crate) const GUARD_HOLD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-guard-hold",
    "30s",
    "How long this process must be cut off before it publishes the clusters that it cannot reach as unknown, with the reason HubPartition; at least 1s.",
);

pub(crate) const PER_CLUSTER_METRICS: Flag<bool> = Flag::bool(
    GROUP,
    "cluster-health-per-cluster-metrics",
    "true",
    "Export metrics for each cluster.",
);

pub(crate) const UPSTREAM_METRICS: Flag<bool> = Flag::bool(
    GROUP,
    "upstream-metrics",
    "true",
    "Also export the metrics of KubeFed's controller under their original names, such as kubefedcluster_total.",
);

pub(crate) const AUDIT: Flag<bool> = Flag::bool(
    GROUP,
    "cluster-health-audit",
    "false",
    "Probe, but write no status and no events. The log, metrics and the debug page show objects whose status differs from the one that would be published. For use next to the controller that still writes the status. TKEStack Machines are not checked.",
);

pub(crate) const ALLOW_PLAINTEXT_ENDPOINTS: Flag<bool> = Flag::bool(
    GROUP,
    "allow-plaintext-endpoints",
    "false",
    "Also probe clusters whose address is http://, which sends their tokens unencrypted.",
);

pub(crate) const HEALTHCHECK_PERIOD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "healthcheck-period",
    "5m",
    "Time from the start of one probe of a TKEStack Cluster to the start of the next; at least 1s.",
);

pub(crate) const RANDOM_PERIOD_MIN: Flag<GoDuration> = Flag::duration(
    GROUP,
    "lower-limit-random-healthcheck-period",
    "0s",
    "No effect, accepted for compatibility with TKEStack: --cluster-health-jitter spreads the probes.",
);

pub(crate) const RANDOM_PERIOD_MAX: Flag<GoDuration> = Flag::duration(
    GROUP,
    "upper-limit-random-healthcheck-period",
    "0s",
    "No effect, accepted for compatibility with TKEStack: --cluster-health-jitter spreads the probes.",
);

pub(crate) const TKE_TIMEOUT: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-tke-timeout",
    "5s",
    "Maximum duration of one probe of a TKEStack Cluster, including retries; at least 100ms.",
);

pub(crate) const TKE_FAILURE_THRESHOLD: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-tke-failure-threshold",
    "3",
    "Number of consecutive failed probes after which a running TKEStack Cluster is published as failed.",
);

pub(crate) const TKE_SUCCESS_THRESHOLD: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-tke-success-threshold",
    "1",
    "Number of consecutive successful probes after which a failed TKEStack Cluster is published as running.",
);

pub(crate) const SUMMARY_INTERVAL: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-summary-interval",
    "10m",
    "How often the resources of a healthy TKEStack Cluster are summed up from its Nodes and Pods; 0 disables this.",
);

pub(crate) const SUMMARY_CONCURRENCY: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-summary-concurrency",
    "32",
    "Maximum of TKEStack Clusters whose resources are summed up at once; also the maximum of Clusters whose Nodes are listed for their Machines at once.",
);

pub(crate) const SUMMARY_PAGE_SIZE: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-summary-page-size",
    "500",
    "Page size of lists of the Nodes or Pods of a TKEStack Cluster.",
);

pub(crate) const MACHINE_PERIOD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-machine-period",
    "1m",
    "How often the Machines of a healthy TKEStack Cluster are compared with its Nodes, with one list for all of them; at least 1s, 0 disables this.",
);

pub(crate) const MACHINE_REQUIRE_NODE_READY: Flag<bool> = Flag::bool(
    GROUP,
    "machine-require-node-ready",
    "true",
    "Publish a Machine as failed while its Node is not ready. If false, the Node only has to exist, as in TKEStack.",
);

pub(crate) const NODES_READY_MIN_RATIO: Flag<f64> = Flag::float32(
    GROUP,
    "cluster-health-nodes-ready-min-ratio",
    "0",
    "Fraction of ready Nodes of a TKEStack Cluster, 0 to 1, below which its condition NodesReady is False; 0 means that one ready Node suffices.",
);

pub(crate) const READY_REQUIRES_NODES: Flag<bool> = Flag::bool(
    GROUP,
    "ready-requires-nodes",
    "false",
    "Publish a TKEStack Cluster as failed while its condition NodesReady is False.",
);

pub(crate) const TKE_INSECURE_WHEN_NO_CA: Flag<bool> = Flag::bool(
    GROUP,
    "tke-insecure-when-no-ca",
    "false",
    "Do not verify the server certificate of a TKEStack Cluster whose ClusterCredential has no caCert, as in TKEStack. If false, the CAs of this machine verify it.",
);

pub(crate) const FLAGS: &[Spec] = &[
    FLAVOURS.spec(),
    KUBEFED_NAMESPACE.spec(),
    KUBEFED_CONFIG.spec(),
    cluster_profile::NAMESPACES.spec(),
    cluster_profile::SELECTOR.spec(),
    cluster_profile::MANAGERS.spec(),
    cluster_profile::SECRET_NAMESPACES.spec(),
    ZONES.spec(),
    PERIOD.spec(),
    TIMEOUT.spec(),
    FAILURE_THRESHOLD.spec(),
    SUCCESS_THRESHOLD.spec(),
    CONFIRM_INTERVAL.spec(),
    JITTER.spec(),
    DIAL_DENY_CIDRS.spec(),
    DIAL_ALLOW_CIDRS.spec(),
    MAX_CONCURRENT_PROBES.spec(),
    CONNECTION_MAX_AGE.spec(),
    IDLE_TIMEOUT.spec(),
    HEARTBEAT_INTERVAL.spec(),
    STALE_AFTER.spec(),
    WRITE_QPS.spec(),
    WRITE_BURST.spec(),
    FLAP_TRANSITIONS.spec(),
    FLAP_WINDOW.spec(),
    FLAP_MIN_SUCCESS.spec(),
    SHARDS.spec(),
    SHARDS_NAMESPACE.spec(),
    OBJECTIVE.spec(),
    GUARD.spec(),
    GUARD_ENDPOINTS.spec(),
    GUARD_RATIO.spec(),
    GUARD_MIN.spec(),
    GUARD_INTERVAL.spec(),
    GUARD_TIMEOUT.spec(),
    GUARD_HOLD.spec(),
    PER_CLUSTER_METRICS.spec(),
    UPSTREAM_METRICS.spec(),
    AUDIT.spec(),
    ALLOW_PLAINTEXT_ENDPOINTS.spec(),
    HEALTHCHECK_PERIOD.spec(),
    RANDOM_PERIOD_MIN.spec(),
    RANDOM_PERIOD_MAX.spec(),
    TKE_TIMEOUT.spec(),
    TKE_FAILURE_THRESHOLD.spec(),
    TKE_SUCCESS_THRESHOLD.spec(),
    SUMMARY_INTERVAL.spec(),
    SUMMARY_CONCURRENCY.spec(),
    SUMMARY_PAGE_SIZE.spec(),
    MACHINE_PERIOD.spec(),
    MACHINE_REQUIRE_NODE_READY.spec(),
    NODES_READY_MIN_RATIO.spec(),
    READY_REQUIRES_NODES.spec(),
    TKE_INSECURE_WHEN_NO_CA.spec(),
];
