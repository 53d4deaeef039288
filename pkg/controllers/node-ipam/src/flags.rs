//! The flags that node-ipam owns.

use pflag::{Kind, Spec};

const fn flag(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Spec {
    Spec::honoured("node-ipam-controller", name, kind, default, help)
}

/// Every flag the controller reads; the values are judged in [`crate::options`].
pub(crate) const FLAGS: &[Spec] = &[
    flag(
        "allocate-node-cidrs",
        Kind::Bool,
        "false",
        "Give every Node a pod CIDR out of --cluster-cidr. When false the controller stays idle and its other flags are ignored.",
    ),
    flag(
        "cluster-cidr",
        Kind::CidrList,
        "",
        "CIDR that pod CIDRs are cut from, or two of different IP families separated by a comma.",
    ),
    flag(
        "service-cluster-ip-range",
        Kind::CidrList,
        "",
        "CIDR of Service IPs, or two of different IP families separated by a comma. Blocks that overlap it are never given to a Node.",
    ),
    flag(
        "cidr-allocator-type",
        Kind::String,
        "RangeAllocator",
        "Where pod CIDRs come from. Built: RangeAllocator. Refused until built: CloudAllocator, IPAMFromCluster, IPAMFromCloud, MultiCIDRRangeAllocator.",
    ),
    flag(
        "node-cidr-mask-size",
        Kind::Int32,
        "0",
        "Prefix length of a Node's pod CIDR in a single-stack cluster; 0 means 24 for IPv4 and 64 for IPv6.",
    ),
    flag(
        "node-cidr-mask-size-ipv4",
        Kind::Int32,
        "0",
        "Prefix length of a Node's IPv4 pod CIDR; 0 means 24.",
    ),
    flag(
        "node-cidr-mask-size-ipv6",
        Kind::Int32,
        "0",
        "Prefix length of a Node's IPv6 pod CIDR; 0 means 64.",
    ),
    flag(
        "node-cidr-max-ipv6-bits",
        Kind::Int32,
        "16",
        "How many bits an IPv6 mask may be longer than its cluster CIDR, at most 64; 16 is what kube-controller-manager allows.",
    ),
    flag(
        "concurrent-node-cidr-patches",
        Kind::Int32,
        "64",
        "How many Node PATCHes may be in flight at once.",
    ),
];
