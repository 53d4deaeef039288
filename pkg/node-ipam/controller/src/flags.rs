//! The flags that node-ipam owns, and how values of single ones are read: one of a few names, a number
//! of a range, a selector, a time.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use flags::{Flag, FlagSupport, GoDuration, Problem, Values};
use kube_api::LabelSelector;

/// Checked although it has no effect, so that no command line relies on it.
pub(crate) const CONFIGURE_CLOUD_ROUTES: Flag<bool> = Flag::bool(
    "accepted for compatibility",
    "configure-cloud-routes",
    "true",
    "Program cloud routes to pod CIDRs.",
)
.with_support(FlagSupport::Accepted);

flags::declare! {
    /// Every flag that the controller reads; [`crate::options`] checks the values.
    pub(crate) FLAGS in "node-ipam-controller", with CONFIGURE_CLOUD_ROUTES;

    CLOUD_PROVIDER: String = string("cloud-provider", "")
        "Cloud of the cluster: empty or external for none, gce for the allocators that use Google Compute Engine.";
    CLOUD_CONFIG: String = string("cloud-config", "")
        "INI file for --cloud-provider=gce; its section [global] may set project-id, secondary-range-name, api-endpoint, token-url and token-body. Without it the program uses the metadata server of its own VM.";
    /// Turns the controller on.
    ALLOCATE_NODE_CIDRS: bool = bool("allocate-node-cidrs", "false")
        "Assign a pod CIDR of --cluster-cidr to every Node. If false, the controller is idle and its other flags are ignored.";
    CLUSTER_CIDR: String = cidr_list("cluster-cidr", "")
        "Range from which pod CIDRs are assigned, or two of different IP families separated by a comma. Optional with MultiCIDRRangeAllocator, which creates the ClusterCIDR default-cluster-cidr from it unless that object exists.";
    SERVICE_CLUSTER_IP_RANGE: String = cidr_list("service-cluster-ip-range", "")
        "Range of Service IPs, or two of different IP families separated by a comma. Blocks that overlap it are never assigned to a Node.";
    NODE_CIDR_EXCLUDE: String = cidr_list("node-cidr-exclude", "")
        "Ranges separated by commas, such as those of a VPN. Blocks that overlap one of them are never assigned to a Node; a Node that already has such a block keeps it.";
    ADDITIONAL_CLUSTER_CIDRS: String = cidr_list("additional-cluster-cidrs", "")
        "More ranges for pod CIDRs, separated by commas. They are used in order when --cluster-cidr and the ranges before them are full. Only IP families of --cluster-cidr; any number per family. For RangeAllocator.";
    DRAIN_CLUSTER_CIDRS: String = cidr_list("drain-cluster-cidrs", "")
        "Ranges of --cluster-cidr and --additional-cluster-cidrs that assign no more blocks, separated by commas; Nodes keep the blocks that they have. Each IP family must keep a range. For RangeAllocator; for MultiCIDRRangeAllocator set the annotation infra-controller-manager/drain: \"true\" on a ClusterCIDR.";
    POD_CIDR_REUSE_DELAY: GoDuration = duration("pod-cidr-reuse-delay", "0s")
        "How long the pod CIDR of a deleted Node stays unused, so that routes to it can be removed; at most 24h. The delay of blocks that were freed before the process started is not known. Not for CloudAllocator and IPAMFromCloud, whose ranges the cloud chooses.";
    NODE_SELECTOR: String = string("node-selector", "")
        "Label selector, as for kubectl, of the Nodes that get a pod CIDR; empty for all. Other Nodes get nothing, no event and no metric; pod CIDRs that they have are never assigned to another Node, and only overlaps are reported.";
    CIDR_ALLOCATOR_TYPE: String = string("cidr-allocator-type", "RangeAllocator")
        "Source of pod CIDRs: RangeAllocator takes them from --cluster-cidr, MultiCIDRRangeAllocator from ClusterCIDR objects. With --cloud-provider=gce also CloudAllocator and IPAMFromCloud, which read them from the VMs of the Nodes, and IPAMFromCluster, which takes them from --cluster-cidr and routes them in the cloud.";
    NODE_CIDR_MASK_SIZE: i64 = int32("node-cidr-mask-size", "0")
        "Prefix length of a Node's pod CIDR in a single-stack cluster; 0 means 24 for IPv4 and 64 for IPv6.";
    NODE_CIDR_MASK_SIZE_IPV4: i64 = int32("node-cidr-mask-size-ipv4", "0")
        "Prefix length of a Node's IPv4 pod CIDR; 0 means 24.";
    NODE_CIDR_MASK_SIZE_IPV6: i64 = int32("node-cidr-mask-size-ipv6", "0")
        "Prefix length of a Node's IPv6 pod CIDR; 0 means 64.";
    NODE_CIDR_MAX_IPV6_BITS: i64 = int32("node-cidr-max-ipv6-bits", "16")
        "By how many bits an IPv6 mask may be longer than the prefix of its cluster CIDR, at most 64; kube-controller-manager allows 16.";
    CONCURRENT_NODE_CIDR_PATCHES: i64 = int32("concurrent-node-cidr-patches", "64")
        "Maximum of Node PATCHes in flight.";
    ON_SECOND_ALLOCATOR: String = string("on-second-allocator", "pause")
        "What to do when another program also assigns a pod CIDR: pause for 30 seconds each time, stop assigning until the program is restarted, or only warn. Known allocators, such as kube-controller-manager, count at once, others from their second Node within 10 minutes. The program reports each of these Nodes by an event, a metric and an error in the log.";
    PUBLISH_POOLS: bool = bool("publish-pools", "true")
        "Write the state and the used and free blocks of each pool to the ConfigMap icm-pools in the namespace of the Lease. Needs config/rbac/node-ipam-records.yaml; without it the program logs one warning and assigns pod CIDRs as before.";
    WARM_STANDBY: bool = bool("warm-standby", "false")
        "Keep a cache of all Nodes while another replica leads, so that this one assigns pod CIDRs sooner when it leads. It costs the memory and the watch of a leader. When the cache is not proven to be up to date, the Nodes are listed as without this flag. No effect with --leader-elect=false or --dry-run.";
    WARM_PROOF: String = string("warm-proof", "beacon")
        "How a new leader with --warm-standby proves that its cache is up to date: beacon writes the annotation infra-controller-manager/leader to a Node and waits for its event, bookmark writes nothing, takes 1 to 3 seconds, and needs Nodes that change all the time.";
    CLUSTER_CIDR_SELECTOR_TERMS: String = string("cluster-cidr-selector-terms", "or")
        "How the nodeSelectorTerms of a ClusterCIDR are combined. With 'or' a Node must match one term, as everywhere in Kubernetes; with 'and' it must match all terms, and matchFields are read as labels, as in sigs.k8s.io/node-ipam-controller. For MultiCIDRRangeAllocator.";
    CLUSTER_CIDR_LABEL_WAIT: GoDuration = duration("cluster-cidr-label-wait", "60s")
        "A Node with the taint node.cloudprovider.kubernetes.io/uninitialized may lack labels. While no ClusterCIDR selects its labels, it waits this long before it gets a block of a ClusterCIDR without nodeSelector; 0 disables the wait. For MultiCIDRRangeAllocator.";
}

/// The longest that a block rests.
const REUSE_DELAY_MAX: Duration = Duration::from_secs(24 * 3600);

/// The value of a flag that is one of a few names, which `wanted` lists; otherwise a problem and the default.
pub(crate) fn named<T: Default, const N: usize>(
    values: &Values,
    flag: &Flag<String>,
    (names, wanted): ([(&str, T); N], &str),
    problems: &mut Vec<Problem>,
) -> T {
    let given = values.get(flag);
    match names.into_iter().find(|(name, _)| given == *name) {
        Some((_, value)) => value,
        None => {
            problems.push(flag.problem(format!("{given:?} is not {wanted}")));
            T::default()
        }
    }
}

/// A number of this range; `None` and a problem otherwise.
pub(crate) fn within<T: TryFrom<i64> + PartialOrd + Display>(
    values: &Values,
    flag: &Flag<i64>,
    range: RangeInclusive<T>,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    let given = values.get(flag);
    let number = T::try_from(given).ok().filter(|number| range.contains(number));
    if number.is_none() {
        let rule = format!("{given} is not between {} and {}", range.start(), range.end());
        problems.push(flag.problem(rule));
    }
    number
}

/// `rule:unselected-nodes-get-nothing`.
pub(crate) fn node_selector(values: &Values, problems: &mut Vec<Problem>) -> Option<LabelSelector> {
    let given = values.get(&NODE_SELECTOR);
    match LabelSelector::parse(&given) {
        Ok(selector) => (!given.trim().is_empty()).then_some(selector),
        Err(error) => {
            problems.push(NODE_SELECTOR.problem(format!("cannot parse {given:?}: {error}")));
            None
        }
    }
}

/// `rule:freed-blocks-rest`.
pub(crate) fn reuse_delay(values: &Values, problems: &mut Vec<Problem>) -> Duration {
    let given = values.get(&POD_CIDR_REUSE_DELAY);
    let delay = given.to_std();
    if given.nanos() < 0 || delay > REUSE_DELAY_MAX {
        let rule = format!("{given} is not between 0s and 24h");
        problems.push(POD_CIDR_REUSE_DELAY.problem(rule));
    }
    delay
}
