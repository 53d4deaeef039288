//! The flags of the webhook; their values are judged in `options.rs`.

use flags::{Flag, Spec};

const GROUP: &str = "validation-webhook-controller";

pub(super) const BIND_ADDRESS: Flag<String> = Flag::string(
    GROUP,
    "webhook-bind-address",
    "",
    "Address and port that the webhook listens on, as [ADDRESS]:PORT; without an address, all addresses of both IP families. Default: 127.0.0.1:9443, for the API server of the same host; with --webhook-client-ca-file :9443.",
);

pub(super) const CERT_DIR: Flag<String> = Flag::string(
    GROUP,
    "webhook-cert-dir",
    "",
    "Directory with tls.crt and tls.key of the webhook, for example a mounted Secret of cert-manager, which must then also set caBundle. Without it the program creates the certificate and sets caBundle.",
);

pub(super) const CLIENT_CA_FILE: Flag<String> = Flag::string(
    GROUP,
    "webhook-client-ca-file",
    "",
    "File with the CAs that issue the client certificates of API servers for webhooks (--admission-control-config-file of kube-apiserver) and no other client certificates. Without it the webhook dials no address and reads no credential for a review.",
);

pub(super) const FAILURE_POLICY: Flag<String> = Flag::string(
    GROUP,
    "webhook-failure-policy",
    "Ignore",
    "What the API server does with a new or changed object while no webhook answers: Ignore stores it, Fail refuses it. Changes of status, changes of metadata and deletions never wait for a webhook.",
);

pub(super) const SSH_CHECK: Flag<String> = Flag::string(
    GROUP,
    "ssh-check",
    "tcp",
    "Network check of new machines and of machines whose address changed: tcp opens a connection and reads the SSH banner, without sending a credential; off disables the check.",
);

pub(super) const IMPORT_CHECK: Flag<bool> = Flag::bool(
    GROUP,
    "import-check",
    "false",
    "Refuse a new Cluster of type Imported if another management cluster has already imported it, or if it is older than Kubernetes 1.10.",
);

pub(super) const CLUSTER_TYPES: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "tke-cluster-types",
    "Imported,Baremetal,EKSHosting,Edge",
    "Allowed types of TKEStack Clusters.",
);

pub(super) const SUPPORTED_VERSIONS: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "tke-supported-versions",
    "",
    "Allowed versions of new TKEStack Clusters of type Baremetal; empty allows all.",
);

pub(super) const MAX_CLUSTERS: Flag<i64> = Flag::int(
    GROUP,
    "license-max-clusters",
    "0",
    "Maximum number of TKEStack Clusters, not counting the Cluster global; 0 means no limit.",
);

pub(super) const MAX_NODES: Flag<i64> = Flag::int(
    GROUP,
    "license-max-nodes",
    "0",
    "Maximum number of Nodes of all TKEStack Clusters, by their published summaries; 0 means no limit.",
);

pub(super) const MAX_CPUS: Flag<i64> = Flag::int(
    GROUP,
    "license-max-cpus",
    "0",
    "Maximum number of CPU cores of all TKEStack Clusters, by their published summaries; 0 means no limit.",
);

pub(super) const FLAGS: &[Spec] = &[
    BIND_ADDRESS.spec(),
    CERT_DIR.spec(),
    CLIENT_CA_FILE.spec(),
    FAILURE_POLICY.spec(),
    SSH_CHECK.spec(),
    IMPORT_CHECK.spec(),
    CLUSTER_TYPES.spec(),
    SUPPORTED_VERSIONS.spec(),
    MAX_CLUSTERS.spec(),
    MAX_NODES.spec(),
    MAX_CPUS.spec(),
];
