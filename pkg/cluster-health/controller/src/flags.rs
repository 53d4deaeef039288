//! The flags that cluster-health owns; their values are judged in `options.rs`. Flags that TKEStack
//! has keep its names.

use flags::{GoDuration, Problem, Values};
use transport::DialPolicy;

flags::declare! {
    /// Every flag that the controller reads, without those of the webhook.
    pub(crate) FLAGS in "cluster-health-controller";

    FLAVOURS: Vec<String> = strings("cluster-health-flavours", "auto")
        "Object models of member clusters: kubefed, tke, clusterprofile of the Cluster Inventory API, and capi of Cluster API. auto stands for kubefed and tke. Each is enabled as soon as its kind is served.";
    KUBEFED_NAMESPACE: String = string("cluster-health-kubefed-namespace", "kube-federation-system")
        "Namespace of the KubeFedClusters, and of the Secrets that ClusterCredentials refer to; empty for all namespaces.";
    KUBEFED_CONFIG: String = string("cluster-health-kubefed-config", "kubefed")
        "Name of the KubeFedConfig in --cluster-health-kubefed-namespace. Its clusterHealthCheck takes precedence over the flags; empty means that only the flags count.";
    PROFILE_NAMESPACES: Vec<String> = strings("cluster-health-profile-namespaces", "")
        "Namespaces of the ClusterProfiles; empty for all namespaces. With more than one, the ClusterProfiles of all namespaces are watched and those of other namespaces are ignored.";
    PROFILE_SELECTOR: String = string("cluster-health-profile-selector", "")
        "Label selector of the ClusterProfiles; empty for all. A ClusterProfile that is no longer selected loses the conditions of this program.";
    PROFILE_MANAGERS: Vec<String> = strings("cluster-health-profile-managers", "infra-controller-manager")
        "Names in spec.clusterManager of the ClusterProfiles for which this program also writes ControlPlaneHealthy and version.kubernetes; other cluster managers write both themselves.";
    PROFILE_SECRET_NAMESPACES: Vec<String> = strings("cluster-health-profile-secret-namespaces", "")
        "Namespaces whose Secrets with the label infra-controller-manager/send-to-member every ClusterProfile may name, besides those of its own namespace. Whoever writes the status of a ClusterProfile can have any such kubeconfig and token there sent to a server of their choice.";
    PROFILE_PROVIDERS: String = string("cluster-health-profile-providers", "")
        "File with the access providers by which ClusterProfiles are reached, in the order in which they are looked for; the JSON of cluster-inventory-api. It is read at the start. kubeconfig-secretreader and secretreader are built in and run nothing; empty means these two.";
    PROFILE_EXEC: bool = bool("cluster-health-profile-exec", "false")
        "Run the exec plugins of --cluster-health-profile-providers, each for at most 10s, with the rights of this process. Whoever writes the status of a ClusterProfile can have what a plugin prints sent to a server of their choice.";
    CAPI_NAMESPACES: Vec<String> = strings("cluster-health-capi-namespaces", "")
        "Namespaces of Cluster API's Clusters; empty for all namespaces. With more than one, the Clusters of all namespaces are watched and those of other namespaces are ignored.";
    ZONES: bool = bool("cluster-health-zones", "true")
        "Write zones and region of ready KubeFedClusters, read from the labels of their Nodes.";
    PERIOD: GoDuration = duration("cluster-health-period", "10s")
        "Time from the start of one probe of a KubeFedCluster, ClusterProfile or Cluster of Cluster API to the start of the next; at least 1s.";
    TIMEOUT: GoDuration = duration("cluster-health-timeout", "3s")
        "Maximum duration of one probe of a KubeFedCluster, ClusterProfile or Cluster of Cluster API, including retries; at least 100ms.";
    FAILURE_THRESHOLD: i64 = int32("cluster-health-failure-threshold", "3")
        "Number of consecutive failed probes after which a ready KubeFedCluster, ClusterProfile or Cluster of Cluster API is published as failing.";
    SUCCESS_THRESHOLD: i64 = int32("cluster-health-success-threshold", "1")
        "Number of consecutive successful probes after which a failing KubeFedCluster, ClusterProfile or Cluster of Cluster API is published as ready.";
    CONFIRM_INTERVAL: GoDuration = duration("cluster-health-confirm-interval", "10s")
        "After a probe whose result differs from the published health, the next one starts after this time, or after the period if that is shorter; at least 1s.";
    JITTER: f64 = float32("cluster-health-jitter", "0.1")
        "Fraction by which intervals between probes vary at random, 0 to 0.5.";
    DIAL_DENY_CIDRS: Vec<String> = strings("dial-deny-cidrs", "")
        "Ranges that probes, their proxies and the checks of the validating webhook never dial, such as 127.0.0.0/8 and the addresses of the nodes. Link-local and multicast addresses and the metadata services of clouds are always denied.";
    DIAL_ALLOW_CIDRS: Vec<String> = strings("dial-allow-cidrs", "")
        "Ranges that are dialled although --dial-deny-cidrs contains them.";
    MAX_CONCURRENT_PROBES: i64 = int32("cluster-health-max-concurrent-probes", "0")
        "Maximum of concurrent probes; 0 computes a maximum that suffices when clusters do not answer.";
    CONNECTION_MAX_AGE: GoDuration = duration("cluster-health-connection-max-age", "5m")
        "Age after which the connection to a cluster is replaced; 0 opens a new connection for each probe.";
    IDLE_TIMEOUT: GoDuration = duration("cluster-health-idle-timeout", "1m30s")
        "Time without a request after which the connection to a cluster is not used again; with a longer period each probe opens a new connection.";
    HEARTBEAT_INTERVAL: GoDuration = duration("cluster-health-heartbeat-interval", "5m")
        "How often the controller writes a status in which only times and messages changed; 0 writes it after each probe.";
    STALE_AFTER: GoDuration = duration("cluster-health-stale-after", "0s")
        "Time without a completed probe after which a cluster is published as unknown. 0 means four periods, at least 40s; with several shards, also long enough for another replica to take over the cluster.";
    WRITE_QPS: f64 = float32("cluster-health-write-qps", "-1")
        "Status writes per second; a negative value sets no limit, and 64 are under way at most: the API server limits them by its priority and fairness.";
    WRITE_BURST: i64 = int32("cluster-health-write-burst", "100")
        "Status writes that may be sent at once before --cluster-health-write-qps limits them.";
    FLAP_TRANSITIONS: i64 = int32("cluster-health-flap-transitions", "6")
        "Number of published changes of readiness within --cluster-health-flap-window after which a cluster counts as flapping; 0 disables damping.";
    FLAP_WINDOW: GoDuration = duration("cluster-health-flap-window", "10m")
        "Time window for --cluster-health-flap-transitions.";
    FLAP_MIN_SUCCESS: i64 = int32("cluster-health-flap-min-success", "3")
        "Minimum of consecutive successful probes before a flapping cluster is published as ready.";
    SHARDS: i64 = int32("cluster-health-shards", "1")
        "Expected number of replicas that share the member clusters, each probing a part of them; 1 means that the leader probes all. The replicas that run share the members; when fewer run, the log and a metric report it. The first replica starts to probe after 30s, in which it looks for others. Give all replicas the same flags. Before you change this value between 1 and more with a rolling update, apply config/rbac/cluster-health-shards.yaml: the leader then uses a Lease in --cluster-health-shards-namespace, too.";
    SHARDS_NAMESPACE: String = string("cluster-health-shards-namespace", "infra-controller-manager")
        "Namespace of the Leases by which replicas share the member clusters, and of the Lease of a leader that probes all. Replicas with Leases in the same namespace share members with each other, so a second installation needs another namespace. The program does not create it.";
    OBJECTIVE: f64 = float32("cluster-health-objective", "99.9")
        "Percentage of the observed time, over 28 days, in which a cluster has to be healthy, 90 to 99.999; 0 for none. The annotation infra-controller-manager/objective of a cluster takes precedence. With an objective the object keeps a record of its availability.";
    GUARD: bool = bool("cluster-health-guard", "true")
        "Before clusters are published as offline, check that this process is not cut off itself: by its own API server, by --cluster-health-guard-endpoints and by the other clusters.";
    GUARD_ENDPOINTS: Vec<String> = strings("cluster-health-guard-endpoints", "")
        "Up to 16 endpoints that are usually up and are reached in the same way as the clusters: tcp://host:port must accept a connection, https://host must answer. Without them an outage of all clusters at once cannot be distinguished from an outage of this process, and is published as unknown.";
    GUARD_RATIO: f64 = float32("cluster-health-guard-ratio", "0.5")
        "Fraction of clusters that do not answer, 0.1 to 1, from which on the guard suspects an outage of this process.";
    GUARD_MIN: i64 = int32("cluster-health-guard-min", "5")
        "Minimum of clusters that do not answer for --cluster-health-guard-ratio; at least 2.";
    GUARD_INTERVAL: GoDuration = duration("cluster-health-guard-interval", "5s")
        "How often the guard asks the API server and --cluster-health-guard-endpoints; each second while clusters do not answer. At least 1s.";
    GUARD_TIMEOUT: GoDuration = duration("cluster-health-guard-timeout", "2s")
        "Maximum duration of one check of the guard; at least 100ms and at most --cluster-health-guard-interval.";
    GUARD_HOLD: GoDuration = duration("cluster-health-guard-hold", "30s")
        "How long this process must be cut off before it publishes the clusters that it cannot reach as unknown, with the reason HubPartition; at least 1s.";
    BEATS_NAMESPACE: String = string("cluster-health-beats-namespace", "")
        "Namespace of Leases that member clusters renew themselves, each named FLAVOUR-UID after the object of its cluster, with the command beat; empty for none. A cluster that probes do not reach is not published as offline while it renews its Lease. The program neither creates nor writes these Leases.";
    CHECKS_CONFIG: String = string("cluster-health-checks-config", "")
        "ConfigMap with checks of the clusters, as NAMESPACE/NAME: its key checks.yaml names objects of the clusters, such as Nodes or a Deployment. Their state is published as conditions of the object of each cluster; empty for none. A changed ConfigMap takes effect without a restart.";
    PER_CLUSTER_METRICS: bool = bool("cluster-health-per-cluster-metrics", "true")
        "Export metrics for each cluster.";
    UPSTREAM_METRICS: bool = bool("upstream-metrics", "true")
        "Also export the metrics of KubeFed's controller under their original names, such as kubefedcluster_total.";
    AUDIT: bool = bool("cluster-health-audit", "false")
        "Probe, but write no status and no events. The log, metrics and the debug page show objects whose status differs from the one that would be published. For use next to the controller that still writes the status. TKEStack Machines are not checked.";
    ALLOW_PLAINTEXT_ENDPOINTS: bool = bool("allow-plaintext-endpoints", "false")
        "Also probe clusters whose address is http://, which sends their tokens unencrypted.";
    HEALTHCHECK_PERIOD: GoDuration = duration("healthcheck-period", "5m")
        "Time from the start of one probe of a TKEStack Cluster to the start of the next; at least 1s.";
    RANDOM_PERIOD_MIN: GoDuration = duration("lower-limit-random-healthcheck-period", "0s")
        "No effect, accepted for compatibility with TKEStack: --cluster-health-jitter spreads the probes.";
    RANDOM_PERIOD_MAX: GoDuration = duration("upper-limit-random-healthcheck-period", "0s")
        "No effect, accepted for compatibility with TKEStack: --cluster-health-jitter spreads the probes.";
    TKE_TIMEOUT: GoDuration = duration("cluster-health-tke-timeout", "5s")
        "Maximum duration of one probe of a TKEStack Cluster, including retries; at least 100ms.";
    TKE_FAILURE_THRESHOLD: i64 = int32("cluster-health-tke-failure-threshold", "3")
        "Number of consecutive failed probes after which a running TKEStack Cluster is published as failed.";
    TKE_SUCCESS_THRESHOLD: i64 = int32("cluster-health-tke-success-threshold", "1")
        "Number of consecutive successful probes after which a failed TKEStack Cluster is published as running.";
    SUMMARY_INTERVAL: GoDuration = duration("cluster-health-summary-interval", "10m")
        "How often the resources of a healthy TKEStack Cluster are summed up from its Nodes and Pods; 0 disables this.";
    SUMMARY_CONCURRENCY: i64 = int32("cluster-health-summary-concurrency", "32")
        "Maximum of TKEStack Clusters whose resources are summed up at once; also the maximum of Clusters whose Nodes are listed for their Machines at once.";
    SUMMARY_PAGE_SIZE: i64 = int32("cluster-health-summary-page-size", "500")
        "Page size of lists of the Nodes or Pods of a TKEStack Cluster.";
    MACHINE_PERIOD: GoDuration = duration("cluster-health-machine-period", "1m")
        "How often the Machines of a healthy TKEStack Cluster are compared with its Nodes, with one list for all of them; at least 1s, 0 disables this.";
    MACHINE_REQUIRE_NODE_READY: bool = bool("machine-require-node-ready", "true")
        "Publish a Machine as failed while its Node is not ready. If false, the Node only has to exist, as in TKEStack.";
    NODES_READY_MIN_RATIO: f64 = float32("cluster-health-nodes-ready-min-ratio", "0")
        "Fraction of ready Nodes of a TKEStack Cluster, 0 to 1, below which its condition NodesReady is False; 0 means that one ready Node suffices.";
    READY_REQUIRES_NODES: bool = bool("ready-requires-nodes", "false")
        "Publish a TKEStack Cluster as failed while its condition NodesReady is False.";
    TKE_INSECURE_WHEN_NO_CA: bool = bool("tke-insecure-when-no-ca", "false")
        "Do not verify the server certificate of a TKEStack Cluster whose ClusterCredential has no caCert, as in TKEStack. If false, the CAs of this machine verify it.";
}

/// The addresses of objects that probes and the webhook may dial.
pub(crate) fn dial_policy(values: &Values, problems: &mut Vec<Problem>) -> DialPolicy {
    let refused = values.get(&DIAL_DENY_CIDRS);
    let allowed = values.get(&DIAL_ALLOW_CIDRS);
    for (flag, texts) in [(&DIAL_DENY_CIDRS, &refused), (&DIAL_ALLOW_CIDRS, &allowed)] {
        if let Err(error) = DialPolicy::new(texts, &[]) {
            problems.push(flag.problem(error.to_string()));
        }
    }
    DialPolicy::new(&refused, &allowed).unwrap_or_default()
}
