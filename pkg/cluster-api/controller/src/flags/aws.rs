//! The flags of the AWSCluster controller.

use flags::{Flag, GoDuration, Spec};

use crate::NAME as GROUP;

pub(crate) const AWSCLUSTER_CONCURRENCY: Flag<i64> = Flag::int32(
    GROUP,
    "awscluster-concurrency",
    "5",
    "AWSClusters that are worked on at once; 1 to 1000.",
);

pub(crate) const DEEP_CHECK_PERIOD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "deep-check-period",
    "1h",
    "How often what only extra calls to AWS show is compared too: attributes of VPCs, attributes and tags of load balancers; at least 10s.",
);

pub(crate) const DEFAULT_NAT_MODE: Flag<String> = Flag::string(
    GROUP,
    "default-nat-mode",
    "PerAZ",
    "NAT gateways of AWSClusters that do not say natGateways.mode: PerAZ for one in each zone with a private subnet, Single for one in all, None for none.",
);

pub(crate) const DNS_RESOLUTION_CHECK: Flag<String> = Flag::string(
    GROUP,
    "dns-resolution-check",
    "Enabled",
    "Whether the DNS name of a load balancer has to resolve here before its AWSCluster is ready, where that does not say: Enabled or None.",
);

pub(crate) const OWNER_TAG_KEY: Flag<String> = Flag::string(
    GROUP,
    "owner-tag-key",
    aws_network::DEFAULT_OWNER_TAG,
    "Key of the tag on AWS resources that holds the identity of their AWSCluster. What was made under another key is not known as ours any more.",
);

pub(crate) const KEEP_FOREIGN_SG_RULES: Flag<bool> = Flag::bool(
    GROUP,
    "keep-foreign-sg-rules",
    "false",
    "Leave ingress rules that others have added to the security groups of AWSClusters; they are revoked otherwise.",
);

pub(crate) const PRUNE_SUBNETS: Flag<bool> = Flag::bool(
    GROUP,
    "prune-subnets",
    "false",
    "Delete subnets that were made for an AWSCluster and that its spec does not name any more, once they are empty.",
);

pub(crate) const PLAN_ONLY: Flag<bool> = Flag::bool(
    GROUP,
    "plan-only",
    "false",
    "Write nothing to AWS: what would be written for an AWSCluster, and for its end, stands in its status.plan.",
);

pub(crate) const MIRROR_IDS_TO_SPEC: Flag<bool> = Flag::bool(
    GROUP,
    "mirror-ids-to-spec",
    "false",
    "Write the ids of what was made into the spec, as upstream does: of the VPC, its internet gateway, subnets, their route tables and NAT gateways. For upstream's controllers of AWSMachines, which read them there; tools that keep the spec as it is in a repository take them away again.",
);

pub(crate) const LEAK_SCAN_PERIOD: Flag<GoDuration> = Flag::duration(
    GROUP,
    "leak-scan-period",
    "0s",
    "How often AWS is searched for resources that carry the tag of --owner-tag-key and no AWSCluster's identity: awscluster_leaked_resources counts them, the log names them, and nothing is removed. Only where no other management cluster uses the account with this key; 0 for never, otherwise at least 10s.",
);

pub(crate) const LEAK_SCAN_REGIONS: Flag<String> = Flag::string(
    GROUP,
    "leak-scan-regions",
    "",
    "Regions, separated by commas, that are searched for leaked resources, in addition to those in which an AWSCluster existed since the start.",
);

pub(crate) const AWS_REGION_ENDPOINTS: Flag<String> = Flag::string(
    GROUP,
    "aws-region-endpoints",
    "",
    "Where the APIs of regions are, when that is not AWS: region:api=URL,api=URL;region:… with the APIs ec2, elasticloadbalancing and sts. Others are where the environment, such as AWS_ENDPOINT_URL, or the SDK says.",
);

pub(crate) const AWS_READ_QPS: Flag<f64> = Flag::float32(
    GROUP,
    "aws-read-qps",
    "20",
    "Describe calls per second to each API of AWS in each region, in the long run.",
);

pub(crate) const AWS_READ_BURST: Flag<i64> = Flag::int32(
    GROUP,
    "aws-read-burst",
    "40",
    "Describe calls to each API of AWS in each region at once, after a pause.",
);

pub(crate) const AWS_WRITE_QPS: Flag<f64> = Flag::float32(
    GROUP,
    "aws-write-qps",
    "5",
    "Writing calls per second to each API of AWS in each region, in the long run.",
);

pub(crate) const AWS_WRITE_BURST: Flag<i64> = Flag::int32(
    GROUP,
    "aws-write-burst",
    "50",
    "Writing calls to each API of AWS in each region at once, after a pause.",
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
