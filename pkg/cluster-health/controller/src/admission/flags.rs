//! The flags of the webhook; their values are judged in `options.rs`.

use flags::{Flag, Spec};

const GROUP: &str = "validation-webhook-controller";

pub(super) const BIND_ADDRESS: Flag<String> = Flag::string(
    GROUP,
    "webhook-bind-address",
    "",
    "Address and port that the webhook listens on, as [ADDRESS]:PORT; without an address on all of both families. Default: 127.0.0.1:9443, for the API server of the same host; with --webhook-client-ca-file :9443.",
);

pub(super) const CERT_DIR: Flag<String> = Flag::string(
    GROUP,
    "webhook-cert-dir",
    "",
    "Directory with tls.crt and tls.key of the webhook, such as a Secret of cert-manager, which then fills in caBundle too. Without it the program makes them, and writes caBundle.",
);

pub(super) const CLIENT_CA_FILE: Flag<String> = Flag::string(
    GROUP,
    "webhook-client-ca-file",
    "",
    "File with the CAs of the client certificates that API servers show to webhooks (their --admission-control-config-file names one), and that issue no other client certificates. Without it no address is dialled and no credential read for a review.",
);

pub(super) const FAILURE_POLICY: Flag<String> = Flag::string(
    GROUP,
    "webhook-failure-policy",
    "Ignore",
    "What the API server does with a new or changed object while no webhook answers: Ignore stores it, Fail refuses it. Status, deletions and metadata never wait for a webhook.",
);

pub(super) const SSH_CHECK: Flag<String> = Flag::string(
    GROUP,
    "ssh-check",
    "tcp",
    "What is asked of machines that are new or reached in another way: tcp for a connection and the greeting of SSH, with no credential sent; off for nothing.",
);

pub(super) const IMPORT_CHECK: Flag<bool> = Flag::bool(
    GROUP,
    "import-check",
    "false",
    "Refuse a new Cluster of type Imported that another management cluster has imported already, or that is older than Kubernetes 1.10.",
);

pub(super) const CLUSTER_TYPES: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "tke-cluster-types",
    "Imported,Baremetal,EKSHosting,Edge",
    "Types that a TKEStack Cluster may have.",
);

pub(super) const SUPPORTED_VERSIONS: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "tke-supported-versions",
    "",
    "Versions that a new TKEStack Cluster of type Baremetal may have; empty for any.",
);

pub(super) const MAX_CLUSTERS: Flag<i64> = Flag::int(
    GROUP,
    "license-max-clusters",
    "0",
    "TKEStack Clusters that there may be, without the one named global; 0 is without limit.",
);

pub(super) const MAX_NODES: Flag<i64> = Flag::int(
    GROUP,
    "license-max-nodes",
    "0",
    "Nodes of all TKEStack Clusters by their published summaries; 0 is without limit.",
);

pub(super) const MAX_CPUS: Flag<i64> = Flag::int(
    GROUP,
    "license-max-cpus",
    "0",
    "Whole cores of all TKEStack Clusters by their published summaries; 0 is without limit.",
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
