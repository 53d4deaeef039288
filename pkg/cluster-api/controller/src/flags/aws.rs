//! The flags of the AWSCluster controller.

use flags::GoDuration;

use crate::NAME;

flags::declare! {
    /// Flags that follow those of every build.
    pub(crate) FLAGS in NAME;

    AWSCLUSTER_CONCURRENCY: i64 = int32("awscluster-concurrency", "5")
        "Maximum of AWSClusters that are reconciled at once; 1 to 1000.";
    DEEP_CHECK_PERIOD: GoDuration = duration("deep-check-period", "1h")
        "How often the controller also compares what needs additional calls to AWS: attributes of VPCs, attributes and tags of load balancers, listeners of network load balancers; at least 10s.";
    DEFAULT_NAT_MODE: String = string("default-nat-mode", "PerAZ")
        "NAT gateways of AWSClusters without natGateways.mode: PerAZ for one in each zone with a private subnet, Single for one NAT gateway, None for none.";
    DNS_RESOLUTION_CHECK: String = string("dns-resolution-check", "Enabled")
        "Whether the DNS name of a load balancer must resolve on this host before its AWSCluster is ready, unless the AWSCluster sets it: Enabled or None.";
    OWNER_TAG_KEY: String = string("owner-tag-key", aws_network::DEFAULT_OWNER_TAG)
        "Key of the tag on AWS resources that holds the identity of their AWSCluster. Resources that were created with another key are not recognized.";
    KEEP_FOREIGN_SG_RULES: bool = bool("keep-foreign-sg-rules", "false")
        "Keep ingress rules that others have added to the security groups of AWSClusters. If false, the controller revokes them.";
    PRUNE_SUBNETS: bool = bool("prune-subnets", "false")
        "Delete subnets that were created for an AWSCluster and are no longer in its spec, as soon as they are empty.";
    PLAN_ONLY: bool = bool("plan-only", "false")
        "Write nothing to AWS. The status.plan of each AWSCluster lists what the controller would do, for its deletion, too.";
    MIRROR_IDS_TO_SPEC: bool = bool("mirror-ids-to-spec", "false")
        "Write the ids of created resources into the spec, as upstream does: VPC, internet gateway, subnets, route tables and NAT gateways. Needed by upstream's controllers of AWSMachines, which read the ids there. Tools that restore the spec from a repository remove the ids again.";
    LEAK_SCAN_PERIOD: GoDuration = duration("leak-scan-period", "0s")
        "How often AWS is searched for resources whose tag --owner-tag-key names no existing AWSCluster. The metric awscluster_leaked_resources counts them and the log lists them; nothing is deleted. Do not use it if another management cluster uses the same AWS account and tag key. 0 disables it, otherwise at least 10s.";
    LEAK_SCAN_REGIONS: String = string("leak-scan-regions", "")
        "Regions, separated by commas, that are searched for leaked resources in addition to the regions of all AWSClusters since the start.";
    AWS_REGION_ENDPOINTS: String = string("aws-region-endpoints", "")
        "Endpoints of AWS APIs per region, as region:api=URL,api=URL;region:… with the APIs ec2, elasticloadbalancing and sts. Other endpoints come from the environment, such as AWS_ENDPOINT_URL, or from the SDK.";
    AWS_READ_QPS: f64 = float32("aws-read-qps", "20")
        "Describe calls per second to each AWS API in each region.";
    AWS_READ_BURST: i64 = int32("aws-read-burst", "40")
        "Describe calls to each AWS API in each region that may be sent at once before --aws-read-qps limits them.";
    AWS_IDLE_READ_QPS: f64 = float32("aws-idle-read-qps", "2")
        "Describe calls per second in each region of an account for AWSClusters that are ready and unchanged. Those with the same credentials share their reads. If these calls are not enough, each AWSCluster is looked at less often than --sync-period says. Changes, deletions and what is awaited do not count.";
    AWS_WRITE_QPS: f64 = float32("aws-write-qps", "5")
        "Write calls per second to each AWS API in each region.";
    AWS_WRITE_BURST: i64 = int32("aws-write-burst", "50")
        "Write calls to each AWS API in each region that may be sent at once before --aws-write-qps limits them.";
}
