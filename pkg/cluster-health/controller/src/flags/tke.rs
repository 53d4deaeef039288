//! The flags of the `tke` flavour. Those that TKEStack has keep its names.

use flags::{Flag, GoDuration};

const GROUP: &str = "cluster-health-controller";

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
