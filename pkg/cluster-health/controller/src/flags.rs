//! The flags that cluster-health owns; their values are judged in `options.rs`. Flags that TKEStack
//! has keep its names.

use flags::{Flag, GoDuration, Spec};

const GROUP: &str = "cluster-health-controller";

pub(crate) const FLAVOURS: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "cluster-health-flavours",
    "auto",
    "Object models of member clusters to watch over: auto for all that are built, each as soon as its kind is served, or a list of names. Built: kubefed, tke.",
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
    "Name of the KubeFedConfig in that namespace whose clusterHealthCheck wins over the flags; empty to use the flags alone.",
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
    "How often a KubeFedCluster is probed, from start to start; at least 1s.",
);

pub(crate) const TIMEOUT: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-timeout",
    "3s",
    "Wall time of one probe of a KubeFedCluster, retries included; at least 100ms.",
);

pub(crate) const FAILURE_THRESHOLD: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-failure-threshold",
    "3",
    "Failed probes in a row before a ready KubeFedCluster is published as failing.",
);

pub(crate) const SUCCESS_THRESHOLD: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-success-threshold",
    "1",
    "Successful probes in a row before a failing KubeFedCluster is published as ready.",
);

pub(crate) const CONFIRM_INTERVAL: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-confirm-interval",
    "10s",
    "How soon a probe that contradicts what is published is repeated, when the period is longer; at least 1s.",
);

pub(crate) const JITTER: Flag<f64> = Flag::float32(
    GROUP,
    "cluster-health-jitter",
    "0.1",
    "Fraction by which the intervals between probes differ at random, 0 to 0.5.",
);

pub(crate) const DIAL_DENY_CIDRS: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "dial-deny-cidrs",
    "",
    "Addresses that probes of members, their proxies and the checks of the validating webhook do not dial, such as 127.0.0.0/8 and those of the nodes; link-local and multicast addresses and the metadata services of clouds never are.",
);

pub(crate) const DIAL_ALLOW_CIDRS: Flag<Vec<String>> =
    Flag::strings(GROUP, "dial-allow-cidrs", "", "Addresses that they dial all the same.");

pub(crate) const MAX_CONCURRENT_PROBES: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-max-concurrent-probes",
    "0",
    "Probes under way at once; 0 for as many as silent clusters can need.",
);

pub(crate) const CONNECTION_MAX_AGE: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-connection-max-age",
    "5m",
    "Age after which the connection to a cluster is replaced; 0 for a new one for each probe.",
);

pub(crate) const IDLE_TIMEOUT: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-idle-timeout",
    "1m30s",
    "Time without a request after which the connection to a cluster is not used again; with a longer period each probe opens one.",
);

pub(crate) const HEARTBEAT_INTERVAL: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-heartbeat-interval",
    "5m",
    "How often a status is written in which only times and messages changed; 0 for after each probe.",
);

pub(crate) const STALE_AFTER: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-stale-after",
    "0s",
    "Time without a completed probe after which a cluster is published as unknown; 0 for four periods, at least 40s, and with several shards long enough for one replica to inherit from another.",
);

pub(crate) const WRITE_QPS: Flag<f64> =
    Flag::float32(GROUP, "cluster-health-write-qps", "50", "Status writes per second.");

pub(crate) const WRITE_BURST: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-write-burst",
    "100",
    "Status writes at once after a quiet time.",
);

pub(crate) const FLAP_TRANSITIONS: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-flap-transitions",
    "6",
    "Published changes of readiness within the flap window that make a cluster a flapping one; 0 turns damping off.",
);

pub(crate) const FLAP_WINDOW: Flag<GoDuration> =
    Flag::duration(GROUP, "cluster-health-flap-window", "10m", "The flap window.");

pub(crate) const FLAP_MIN_SUCCESS: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-flap-min-success",
    "3",
    "Successful probes in a row that a flapping cluster needs at least to be published as ready.",
);

pub(crate) const SHARDS: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-shards",
    "1",
    "Replicas of the process that share the member clusters, each probing a part of them; 1 has the leader probe all. However many are there then share them; fewer than this are told in the log and in a metric. The first of all begins after 30s, in which it would hear of others. Give all replicas the same flags. A rolling change between 1 and more is safe where the leader may use Leases in the namespace below before it begins (config/rbac/cluster-health-shards.yaml).",
);

pub(crate) const SHARDS_NAMESPACE: Flag<String> = Flag::string(
    GROUP,
    "cluster-health-shards-namespace",
    "infra-controller-manager",
    "Namespace of the Leases of the replicas that share the member clusters, and of that of a leader that probes all; those whose Leases are in one namespace share them with each other, so give a second installation another one. It is not made by the program.",
);

pub(crate) const PER_CLUSTER_METRICS: Flag<bool> = Flag::bool(
    GROUP,
    "cluster-health-per-cluster-metrics",
    "true",
    "Export series for each cluster.",
);

pub(crate) const UPSTREAM_METRICS: Flag<bool> = Flag::bool(
    GROUP,
    "upstream-metrics",
    "true",
    "Export the metrics of KubeFed's controller under its names too, such as kubefedcluster_total.",
);

pub(crate) const AUDIT: Flag<bool> = Flag::bool(
    GROUP,
    "cluster-health-audit",
    "false",
    "Probe and write nothing, neither status nor events; tell by log, metrics and debug page where the objects say another thing than would be published. For a while next to the controller that still writes them. TKEStack's Machines are neither looked at nor compared.",
);

pub(crate) const ALLOW_PLAINTEXT_ENDPOINTS: Flag<bool> = Flag::bool(
    GROUP,
    "allow-plaintext-endpoints",
    "false",
    "Probe clusters whose address is plain http, which sends their tokens in the clear.",
);

pub(crate) const HEALTHCHECK_PERIOD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "healthcheck-period",
    "5m",
    "How often a TKEStack Cluster is probed, from start to start; at least 1s.",
);

pub(crate) const RANDOM_PERIOD_MIN: Flag<GoDuration> = Flag::duration(
    GROUP,
    "lower-limit-random-healthcheck-period",
    "0s",
    "Taken so that TKEStack's command lines work, and without effect: --cluster-health-jitter spreads the probes.",
);

pub(crate) const RANDOM_PERIOD_MAX: Flag<GoDuration> = Flag::duration(
    GROUP,
    "upper-limit-random-healthcheck-period",
    "0s",
    "Taken so that TKEStack's command lines work, and without effect: --cluster-health-jitter spreads the probes.",
);

pub(crate) const TKE_TIMEOUT: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-tke-timeout",
    "5s",
    "Wall time of one probe of a Cluster, retries included; at least 100ms.",
);

pub(crate) const TKE_FAILURE_THRESHOLD: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-tke-failure-threshold",
    "3",
    "Failed probes in a row before a running Cluster is published as failed.",
);

pub(crate) const TKE_SUCCESS_THRESHOLD: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-tke-success-threshold",
    "1",
    "Successful probes in a row before a failed Cluster is published as running.",
);

pub(crate) const SUMMARY_INTERVAL: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-summary-interval",
    "10m",
    "How often the resources of a healthy Cluster are summed up from its Nodes and Pods; 0 for never.",
);

pub(crate) const SUMMARY_CONCURRENCY: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-summary-concurrency",
    "32",
    "Clusters that are summed up at once, and as many whose Nodes are listed for their Machines.",
);

pub(crate) const SUMMARY_PAGE_SIZE: Flag<i64> = Flag::int32(
    GROUP,
    "cluster-health-summary-page-size",
    "500",
    "Nodes or Pods that are read of a Cluster at a time.",
);

pub(crate) const MACHINE_PERIOD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-health-machine-period",
    "1m",
    "How often the Machines of a healthy Cluster are looked for among its Nodes, by one list for all of them; at least 1s, or 0 for never.",
);

pub(crate) const MACHINE_REQUIRE_NODE_READY: Flag<bool> = Flag::bool(
    GROUP,
    "machine-require-node-ready",
    "true",
    "Publish a Machine as failed while its Node is not ready; without it, as TKEStack does, a Node that is there will do.",
);

pub(crate) const NODES_READY_MIN_RATIO: Flag<f64> = Flag::float32(
    GROUP,
    "cluster-health-nodes-ready-min-ratio",
    "0",
    "Share of the Nodes of a Cluster, 0 to 1, below which its condition NodesReady is False; with 0 only when none is ready.",
);

pub(crate) const READY_REQUIRES_NODES: Flag<bool> = Flag::bool(
    GROUP,
    "ready-requires-nodes",
    "false",
    "Publish a Cluster as failed while too few of its Nodes are ready.",
);

pub(crate) const TKE_INSECURE_WHEN_NO_CA: Flag<bool> = Flag::bool(
    GROUP,
    "tke-insecure-when-no-ca",
    "false",
    "Do not check the certificate of a Cluster whose ClusterCredential has no caCert, as TKEStack does; without it the CAs of this machine count.",
);

pub(crate) const FLAGS: &[Spec] = &[
    FLAVOURS.spec(),
    KUBEFED_NAMESPACE.spec(),
    KUBEFED_CONFIG.spec(),
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
