//! The flags that node-ipam owns.

use flags::{Flag, GoDuration, Spec, Verdict};

const GROUP: &str = "node-ipam-controller";

pub(crate) const CLOUD_PROVIDER: Flag<String> = Flag::string(
    GROUP,
    "cloud-provider",
    "",
    "Cloud of the cluster: empty or external for none; gce for the allocators that ask Google Compute Engine.",
);

pub(crate) const CLOUD_CONFIG: Flag<String> = Flag::string(
    GROUP,
    "cloud-config",
    "",
    "Settings file of the cloud, in Google's form: section [global] with project-id, secondary-range-name, api-endpoint, token-url, token-body. For --cloud-provider=gce; without it the metadata server of our own VM is asked.",
);

/// Checked although it has no effect, so that no command line relies on it.
pub(crate) const CONFIGURE_CLOUD_ROUTES: Flag<bool> = Flag::bool(
    "accepted for compatibility",
    "configure-cloud-routes",
    "true",
    "Program cloud routes to pod CIDRs.",
)
.with_verdict(Verdict::Accepted);

/// Every flag the controller reads; the values are judged in [`crate::options`].
pub(crate) const ALLOCATE_NODE_CIDRS: Flag<bool> = Flag::bool(
    GROUP,
    "allocate-node-cidrs",
    "false",
    "Give every Node a pod CIDR out of --cluster-cidr. When false the controller stays idle and its other flags are ignored.",
);

pub(crate) const CLUSTER_CIDR: Flag<String> = Flag::cidr_list(
    GROUP,
    "cluster-cidr",
    "",
    "CIDR that pod CIDRs are cut from, or two of different IP families separated by a comma. With MultiCIDRRangeAllocator it may be left out, and becomes the ClusterCIDR default-cluster-cidr unless there is one.",
);

pub(crate) const SERVICE_CLUSTER_IP_RANGE: Flag<String> = Flag::cidr_list(
    GROUP,
    "service-cluster-ip-range",
    "",
    "CIDR of Service IPs, or two of different IP families separated by a comma. Blocks that overlap it are never given to a Node.",
);

pub(crate) const NODE_CIDR_EXCLUDE: Flag<String> = Flag::cidr_list(
    GROUP,
    "node-cidr-exclude",
    "",
    "CIDRs separated by commas, such as those of a VPN. Blocks that overlap one of them are never given to a Node; a Node that has such a block keeps it.",
);

pub(crate) const ADDITIONAL_CLUSTER_CIDRS: Flag<String> = Flag::cidr_list(
    GROUP,
    "additional-cluster-cidrs",
    "",
    "CIDRs separated by commas that pod CIDRs are cut from when those before them are used up, beginning with --cluster-cidr; any number of each of its IP families. For RangeAllocator.",
);

pub(crate) const POD_CIDR_REUSE_DELAY: Flag<GoDuration> = Flag::duration(
    GROUP,
    "pod-cidr-reuse-delay",
    "0s",
    "How long the pod CIDR of a deleted Node stays unused, so that routes to it can go; 24h at most. A process that has just started does not know what was freed before. Not for CloudAllocator and IPAMFromCloud, whose ranges the cloud chooses.",
);

pub(crate) const CIDR_ALLOCATOR_TYPE: Flag<String> = Flag::string(
    GROUP,
    "cidr-allocator-type",
    "RangeAllocator",
    "Where pod CIDRs come from: RangeAllocator for --cluster-cidr, MultiCIDRRangeAllocator for ClusterCIDR objects; with --cloud-provider=gce also CloudAllocator and IPAMFromCloud for what the Nodes' VMs have, IPAMFromCluster for --cluster-cidr, routed by the cloud.",
);

pub(crate) const NODE_CIDR_MASK_SIZE: Flag<i64> = Flag::int32(
    GROUP,
    "node-cidr-mask-size",
    "0",
    "Prefix length of a Node's pod CIDR in a single-stack cluster; 0 means 24 for IPv4 and 64 for IPv6.",
);

pub(crate) const NODE_CIDR_MASK_SIZE_IPV4: Flag<i64> = Flag::int32(
    GROUP,
    "node-cidr-mask-size-ipv4",
    "0",
    "Prefix length of a Node's IPv4 pod CIDR; 0 means 24.",
);

pub(crate) const NODE_CIDR_MASK_SIZE_IPV6: Flag<i64> = Flag::int32(
    GROUP,
    "node-cidr-mask-size-ipv6",
    "0",
    "Prefix length of a Node's IPv6 pod CIDR; 0 means 64.",
);

pub(crate) const NODE_CIDR_MAX_IPV6_BITS: Flag<i64> = Flag::int32(
    GROUP,
    "node-cidr-max-ipv6-bits",
    "16",
    "How many bits an IPv6 mask may be longer than its cluster CIDR, at most 64; 16 is what kube-controller-manager allows.",
);

pub(crate) const CONCURRENT_NODE_CIDR_PATCHES: Flag<i64> = Flag::int32(
    GROUP,
    "concurrent-node-cidr-patches",
    "64",
    "How many Node PATCHes may be in flight at once.",
);

pub(crate) const ON_SECOND_ALLOCATOR: Flag<String> = Flag::string(
    GROUP,
    "on-second-allocator",
    "pause",
    "What to do when kube-controller-manager gives out a pod CIDR as well: pause for 30 seconds each time, stop giving out any until the program is started again, or only warn. It is told in all cases.",
);

pub(crate) const CLUSTER_CIDR_SELECTOR_TERMS: Flag<String> = Flag::string(
    GROUP,
    "cluster-cidr-selector-terms",
    "or",
    "How the nodeSelectorTerms of a ClusterCIDR go together: or, as everywhere in Kubernetes; and, with matchFields looked up as labels, as sigs.k8s.io/node-ipam-controller has it. For MultiCIDRRangeAllocator.",
);

pub(crate) const CLUSTER_CIDR_LABEL_WAIT: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-cidr-label-wait",
    "60s",
    "How long a Node with the taint node.cloudprovider.kubernetes.io/uninitialized is waited for, whose labels no ClusterCIDR selects yet, before it gets a block of one without nodeSelector; 0 for not at all. For MultiCIDRRangeAllocator.",
);

pub(crate) const FLAGS: &[Spec] = &[
    CLOUD_PROVIDER.spec(),
    CLOUD_CONFIG.spec(),
    CONFIGURE_CLOUD_ROUTES.spec(),
    ALLOCATE_NODE_CIDRS.spec(),
    CLUSTER_CIDR.spec(),
    SERVICE_CLUSTER_IP_RANGE.spec(),
    NODE_CIDR_EXCLUDE.spec(),
    ADDITIONAL_CLUSTER_CIDRS.spec(),
    POD_CIDR_REUSE_DELAY.spec(),
    CIDR_ALLOCATOR_TYPE.spec(),
    NODE_CIDR_MASK_SIZE.spec(),
    NODE_CIDR_MASK_SIZE_IPV4.spec(),
    NODE_CIDR_MASK_SIZE_IPV6.spec(),
    NODE_CIDR_MAX_IPV6_BITS.spec(),
    CONCURRENT_NODE_CIDR_PATCHES.spec(),
    ON_SECOND_ALLOCATOR.spec(),
    CLUSTER_CIDR_SELECTOR_TERMS.spec(),
    CLUSTER_CIDR_LABEL_WAIT.spec(),
];
