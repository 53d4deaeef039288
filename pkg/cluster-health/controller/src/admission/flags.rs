//! The flags of the webhook; their values are judged in `options.rs`.

flags::declare! {
    /// Every flag that the webhook reads.
    pub(super) FLAGS in "validation-webhook-controller";

    BIND_ADDRESS: String = string("webhook-bind-address", "")
        "Address and port that the webhook listens on, as [ADDRESS]:PORT; without an address, all addresses of both IP families. Default: 127.0.0.1:9443, for the API server of the same host; with --webhook-client-ca-file :9443.";
    CERT_DIR: String = string("webhook-cert-dir", "")
        "Directory with tls.crt and tls.key of the webhook, for example a mounted Secret of cert-manager, which must then also set caBundle. Without it the program creates the certificate and sets caBundle.";
    CLIENT_CA_FILE: String = string("webhook-client-ca-file", "")
        "File with the CAs that issue the client certificates of API servers for webhooks (--admission-control-config-file of kube-apiserver) and no other client certificates. Without it the webhook dials no address and reads no credential for a review.";
    FAILURE_POLICY: String = string("webhook-failure-policy", "Ignore")
        "What the API server does with a new or changed object while no webhook answers: Ignore stores it, Fail refuses it. Changes of status, changes of metadata and deletions never wait for a webhook.";
    SSH_CHECK: String = string("ssh-check", "tcp")
        "Network check of new machines and of machines whose address changed: tcp opens a connection and reads the SSH banner, without sending a credential; off disables the check.";
    IMPORT_CHECK: bool = bool("import-check", "false")
        "Refuse a new Cluster of type Imported if another management cluster has already imported it, or if it is older than Kubernetes 1.10.";
    CLUSTER_TYPES: Vec<String> = strings("tke-cluster-types", "Imported,Baremetal,EKSHosting,Edge")
        "Allowed types of TKEStack Clusters.";
    SUPPORTED_VERSIONS: Vec<String> = strings("tke-supported-versions", "")
        "Allowed versions of new TKEStack Clusters of type Baremetal; empty allows all.";
    MAX_CLUSTERS: i64 = int("license-max-clusters", "0")
        "Maximum number of TKEStack Clusters, not counting the Cluster global; 0 means no limit.";
    MAX_NODES: i64 = int("license-max-nodes", "0")
        "Maximum number of Nodes of all TKEStack Clusters, by their published summaries; 0 means no limit.";
    MAX_CPUS: i64 = int("license-max-cpus", "0")
        "Maximum number of CPU cores of all TKEStack Clusters, by their published summaries; 0 means no limit.";
}
