//! The flags of the AWSCluster controller.

use flags::{Flag, GoDuration, Spec};

use crate::NAME as GROUP;

pub(crate) const AWSCLUSTER_CONCURRENCY: Flag<i64> = Flag::int32(
    GROUP,
    "awscluster-concurrency",
    "5",
    "Maximum of AWSClusters that are reconciled at once; 1 to 1000.",
);

pub(crate) const DEEP_CHECK_PERIOD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "deep-check-period",
    "1h",
    "How often the controller also compares what needs additional calls to AWS: attributes of VPCs, attributes and tags of load balancers; at least 10s.",
);

pub(crate) const DEFAULT_NAT_MODE: Flag<String> = Flag::string(
    GROUP,
    "default-nat-mode",
    "PerAZ",
    "NAT gateways of AWSClusters without natGateways.mode: PerAZ for one in each zone with a private subnet, Single for one NAT gateway, None for none.",
);

pub(crate) const DNS_RESOLUTION_CHECK: Flag<String> = Flag::string(
    GROUP,
    "dns-resolution-check",
    "Enabled",
    "Whether the DNS name of a load balancer must resolve on this host before its AWSCluster is ready, unless the AWSCluster sets it: Enabled or None.",
);

pub(crate) const OWNER_TAG_KEY: Flag<String> = Flag::string(
    GROUP,
    "owner-tag-key",
    aws_network::DEFAULT_OWNER_TAG,
    "Key of the tag on AWS resources that holds the identity of their AWSCluster. Resources that were created with another key are not recognized.",
);

pub(crate) const KEEP_FOREIGN_SG_RULES: Flag<bool> = Flag::bool(
    GROUP,
    "keep-foreign-sg-rules",
    "false",
    "Keep ingress rules that others have added to the security groups of AWSClusters. If false, the controller revokes them.",
);

pub(crate) const PRUNE_SUBNETS: Flag<bool> = Flag::bool(
    GROUP,
    "prune-subnets",
    "false",
    "Delete subnets that were created for an AWSCluster and are no longer in its spec, as soon as they are empty.",
);

pub(crate) const PLAN_ONLY: Flag<bool> = Flag::bool(
    GROUP,
    "plan-only",
    "false",
    "Write nothing to AWS. The status.plan of each AWSCluster lists what the controller would do, for its deletion, too.",
);

pub(crate) const MIRROR_IDS_TO_SPEC: Flag<bool> = Flag::bool(
    GROUP,
    "mirror-ids-to-spec",
    "false",
    "Write the ids of created resources into the spec, as upstream does: VPC, internet gateway, subnets, route tables and NAT gateways. Needed by upstream's controllers of AWSMachines, which read the ids there. Tools that restore the spec from a repository remove the ids again.",
);

pub(crate) const LEAK_SCAN_PERIOD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "leak-scan-period",
    "0s",
    "How often AWS is searched for resources whose tag --owner-tag-key names no existing AWSCluster. The metric awscluster_leaked_resources counts them and the log lists them; nothing is deleted. Do not use it if another management cluster uses the same AWS account and tag key. 0 disables it, otherwise at least 10s.",
);

pub(crate) const LEAK_SCAN_REGIONS: Flag<String> = Flag::string(
    GROUP,
    "leak-scan-regions",
    "",
    "Regions, separated by commas, that are searched for leaked resources in addition to the regions of all AWSClusters since the start.",
);

pub(crate) const AWS_REGION_ENDPOINTS: Flag<String> = Flag::string(
    GROUP,
    "aws-region-endpoints",
    "",
    "Endpoints of AWS APIs per region, as region:api=URL,api=URL;region:… with the APIs ec2, elasticloadbalancing and sts. Other endpoints come from the environment, such as AWS_ENDPOINT_URL, or from the SDK.",
);

pub(crate) const AWS_READ_QPS: Flag<f64> = Flag::float32(
    GROUP,
    "aws-read-qps",
    "20",
    "Describe calls per second to each AWS API in each region.",
);

pub(crate) const AWS_READ_BURST: Flag<i64> = Flag::int32(
    GROUP,
    "aws-read-burst",
    "40",
    "Describe calls to each AWS API in each region that may be sent at once before --aws-read-qps limits them.",
);

pub(crate) const AWS_WRITE_QPS: Flag<f64> = Flag::float32(
    GROUP,
    "aws-write-qps",
    "5",
    "Write calls per second to each AWS API in each region.",
);

pub(crate) const AWS_WRITE_BURST: Flag<i64> = Flag::int32(
    GROUP,
    "aws-write-burst",
    "50",
    "Write calls to each AWS API in each region that may be sent at once before --aws-write-qps limits them.",
);

/// After the flags of every build.
pub(super) const FLAGS: [Spec; 16] = [
    AWSCLUSTER_CONCURRENCY.spec(),
    DEEP_CHECK_PERIOD.spec(),
    DEFAULT_NAT_MODE.spec(),
    DNS_RESOLUTION_CHECK.spec(),
    OWNER_TAG_KEY.spec(),
    KEEP_FOREIGN_SG_RULES.spec(),
    PRUNE_SUBNETS.spec(),
    PLAN_ONLY.spec(),
    MIRROR_IDS_TO_SPEC.spec(),
    LEAK_SCAN_PERIOD.spec(),
    LEAK_SCAN_REGIONS.spec(),
    AWS_REGION_ENDPOINTS.spec(),
    AWS_READ_QPS.spec(),
    AWS_READ_BURST.spec(),
    AWS_WRITE_QPS.spec(),
    AWS_WRITE_BURST.spec(),
];
