//! The flags that node-ipam owns.

use flags::{Flag, GoDuration, Spec, Verdict};

const GROUP: &str = "node-ipam-controller";

pub(crate) const CLOUD_PROVIDER: Flag<String> = Flag::string(
    GROUP,
    "cloud-provider",
    "",
    "Cloud of the cluster: empty or external for none, gce for the allocators that use Google Compute Engine.",
);

pub(crate) const CLOUD_CONFIG: Flag<String> = Flag::string(
    GROUP,
    "cloud-config",
    "",
    "INI file for --cloud-provider=gce; its section [global] may set project-id, secondary-range-name, api-endpoint, token-url and token-body. Without it the program uses the metadata server of its own VM.",
);

/// Checked although it has no effect, so that no command line relies on it.
pub(crate) const CONFIGURE_CLOUD_ROUTES: Flag<bool> = Flag::bool(
    "accepted for compatibility",
    "configure-cloud-routes",
    "true",
    "Program cloud routes to pod CIDRs.",
)
.with_verdict(Verdict::Accepted);

/// Turns the controller on.
pub(crate) const ALLOCATE_NODE_CIDRS: Flag<bool> = Flag::bool(
    GROUP,
    "allocate-node-cidrs",
    "false",
    "Assign a pod CIDR of --cluster-cidr to every Node. If false, the controller is idle and its other flags are ignored.",
);

pub(crate) const CLUSTER_CIDR: Flag<String> = Flag::cidr_list(
    GROUP,
    "cluster-cidr",
    "",
    "Range from which pod CIDRs are assigned, or two of different IP families separated by a comma. Optional with MultiCIDRRangeAllocator, which creates the ClusterCIDR default-cluster-cidr from it unless that object exists.",
);

pub(crate) const SERVICE_CLUSTER_IP_RANGE: Flag<String> = Flag::cidr_list(
    GROUP,
    "service-cluster-ip-range",
    "",
    "Range of Service IPs, or two of different IP families separated by a comma. Blocks that overlap it are never assigned to a Node.",
);

pub(crate) const NODE_CIDR_EXCLUDE: Flag<String> = Flag::cidr_list(
    GROUP,
    "node-cidr-exclude",
    "",
    "Ranges separated by commas, such as those of a VPN. Blocks that overlap one of them are never assigned to a Node; a Node that already has such a block keeps it.",
);

pub(crate) const ADDITIONAL_CLUSTER_CIDRS: Flag<String> = Flag::cidr_list(
    GROUP,
    "additional-cluster-cidrs",
    "",
    "More ranges for pod CIDRs, separated by commas. They are used in order when --cluster-cidr and the ranges before them are full. Only IP families of --cluster-cidr; any number per family. For RangeAllocator.",
);

pub(crate) const DRAIN_CLUSTER_CIDRS: Flag<String> = Flag::cidr_list(
    GROUP,
    "drain-cluster-cidrs",
    "",
    "Ranges of --cluster-cidr and --additional-cluster-cidrs that assign no more blocks, separated by commas; Nodes keep the blocks that they have. Each IP family must keep a range. For RangeAllocator; for MultiCIDRRangeAllocator set the annotation infra-controller-manager/drain: \"true\" on a ClusterCIDR.",
);

pub(crate) const POD_CIDR_REUSE_DELAY: Flag<GoDuration> = Flag::duration(
    GROUP,
    "pod-cidr-reuse-delay",
    "0s",
    "How long the pod CIDR of a deleted Node stays unused, so that routes to it can be removed; at most 24h. The delay of blocks that were freed before the process started is not known. Not for CloudAllocator and IPAMFromCloud, whose ranges the cloud chooses.",
);

pub(crate) const NODE_SELECTOR: Flag<String> = Flag::string(
    GROUP,
    "node-selector",
    "",
    "Label selector, as for kubectl, of the Nodes that get a pod CIDR; empty for all. Other Nodes get nothing, no event and no metric; pod CIDRs that they have are never assigned to another Node, and only overlaps are reported.",
);

pub(crate) const CIDR_ALLOCATOR_TYPE: Flag<String> = Flag::string(
    GROUP,
    "cidr-allocator-type",
    "RangeAllocator",
    "Source of pod CIDRs: RangeAllocator takes them from --cluster-cidr, MultiCIDRRangeAllocator from ClusterCIDR objects. With --cloud-provider=gce also CloudAllocator and IPAMFromCloud, which read them from the VMs of the Nodes, and IPAMFromCluster, which takes them from --cluster-cidr and routes them in the cloud.",
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
    "By how many bits an IPv6 mask may be longer than the prefix of its cluster CIDR, at most 64; kube-controller-manager allows 16.",
);

pub(crate) const CONCURRENT_NODE_CIDR_PATCHES: Flag<i64> =
    Flag::int32(GROUP, "concurrent-node-cidr-patches", "64", "Maximum of Node PATCHes in flight.");

pub(crate) const ON_SECOND_ALLOCATOR: Flag<String> = Flag::string(
    GROUP,
    "on-second-allocator",
    "pause",
    "What to do when another program also assigns a pod CIDR: pause for 30 seconds each time, stop assigning until the program is restarted, or only warn. Known allocators, such as kube-controller-manager, count at once, others from their second Node within 10 minutes. The program reports each of these Nodes by an event, a metric and an error in the log.",
);

pub(crate) const PUBLISH_POOLS: Flag<bool> = Flag::bool(
    GROUP,
    "publish-pools",
    "true",
    "Write the state and the used and free blocks of each pool to the ConfigMap icm-pools in the namespace of the Lease. Needs config/rbac/node-ipam-records.yaml; without it the program logs one warning and assigns pod CIDRs as before.",
);

pub(crate) const WARM_STANDBY: Flag<bool> = Flag::bool(
    GROUP,
    "warm-standby",
    "false",
    "Keep a cache of all Nodes while another replica leads, so that this one assigns pod CIDRs sooner when it leads. It costs the memory and the watch of a leader. When the cache is not proven to be up to date, the Nodes are listed as without this flag. No effect with --leader-elect=false or --dry-run.",
);

pub(crate) const WARM_PROOF: Flag<String> = Flag::string(
    GROUP,
    "warm-proof",
    "beacon",
    "How a new leader with --warm-standby proves that its cache is up to date: beacon writes the annotation infra-controller-manager/leader to a Node and waits for its event, bookmark writes nothing, takes 1 to 3 seconds, and needs Nodes that change all the time.",
);

pub(crate) const CLUSTER_CIDR_SELECTOR_TERMS: Flag<String> = Flag::string(
    GROUP,
    "cluster-cidr-selector-terms",
    "or",
    "How the nodeSelectorTerms of a ClusterCIDR are combined: or, as everywhere in Kubernetes; and, with matchFields read as labels, as in sigs.k8s.io/node-ipam-controller. For MultiCIDRRangeAllocator.",
);

pub(crate) const CLUSTER_CIDR_LABEL_WAIT: Flag<GoDuration> = Flag::duration(
    GROUP,
    "cluster-cidr-label-wait",
    "60s",
    "A Node with the taint node.cloudprovider.kubernetes.io/uninitialized may lack labels. While no ClusterCIDR selects its labels, it waits this long before it gets a block of a ClusterCIDR without nodeSelector; 0 disables the wait. For MultiCIDRRangeAllocator.",
);

/// Every flag that the controller reads; [`crate::options`] checks the values.
pub(crate) const FLAGS: &[Spec] = &[
    CLOUD_PROVIDER.spec(),
    CLOUD_CONFIG.spec(),
    CONFIGURE_CLOUD_ROUTES.spec(),
    ALLOCATE_NODE_CIDRS.spec(),
    CLUSTER_CIDR.spec(),
    SERVICE_CLUSTER_IP_RANGE.spec(),
    NODE_CIDR_EXCLUDE.spec(),
    ADDITIONAL_CLUSTER_CIDRS.spec(),
    DRAIN_CLUSTER_CIDRS.spec(),
    POD_CIDR_REUSE_DELAY.spec(),
    NODE_SELECTOR.spec(),
    CIDR_ALLOCATOR_TYPE.spec(),
    NODE_CIDR_MASK_SIZE.spec(),
    NODE_CIDR_MASK_SIZE_IPV4.spec(),
    NODE_CIDR_MASK_SIZE_IPV6.spec(),
    NODE_CIDR_MAX_IPV6_BITS.spec(),
    CONCURRENT_NODE_CIDR_PATCHES.spec(),
    ON_SECOND_ALLOCATOR.spec(),
    PUBLISH_POOLS.spec(),
    WARM_STANDBY.spec(),
    WARM_PROOF.spec(),
    CLUSTER_CIDR_SELECTOR_TERMS.spec(),
    CLUSTER_CIDR_LABEL_WAIT.spec(),
];
