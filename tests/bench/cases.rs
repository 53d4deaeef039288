//! What is measured: the load of each case and the throttle it runs under.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use api_server_double::NodeSize;

use crate::cluster_cidrs::{self, Label};

/// How the Nodes of a case come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// This number of Nodes exists before the contender starts.
    Existing(usize),
    /// Nodes join a running contender, `rate` a second for `seconds`, on a schedule that does not
    /// wait for answers.
    Join {
        /// Nodes per second.
        rate: u32,
        /// Length of the schedule.
        seconds: u32,
    },
    /// A contender stands by, with `--warm-standby`, while another process leads this number of Nodes
    /// that have a CIDR; then it wins the Lease, and one Node waits.
    Takeover(usize),
}

/// The client throttle that the contender is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Throttle {
    /// `--kube-api-qps=5000 --kube-api-burst=5000`.
    Lifted,
    /// No flag: what an operator gets who sets nothing.
    Default,
}

/// Where the contender takes blocks from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pools {
    /// `--cluster-cidr`.
    Flags,
    /// `--cluster-cidr=fd00::/44` with blocks of /64: 2^20 of them.
    Ipv6,
    /// This number of ClusterCIDRs with selectors.
    ClusterCidrs(u32),
}

/// Server of the Nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// etcd and kube-apiserver.
    ControlPlane,
    /// The double of the API server, which has no store.
    Double {
        /// The contender is told to ask for JSON.
        json: bool,
        /// Lists are in pages.
        pages: bool,
    },
}

/// One case, written as on the command line: `existing-5000`, `existing-10000-50kb`, `join-200x20`,
/// `defaults-1000`, `cluster-cidrs-10000x200`, `double-existing-100000-50kb-json`,
/// `double-ipv6-1000000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// The Nodes.
    pub(crate) load: Load,
    /// The throttle.
    pub(crate) throttle: Throttle,
    /// The blocks.
    pub(crate) pools: Pools,
    /// Size of each Node.
    pub(crate) size: NodeSize,
    /// Server of the Nodes.
    pub(crate) server: Server,
}

impl Case {
    /// How many Nodes get a CIDR.
    pub(crate) fn nodes(&self) -> usize {
        match self.load {
            Load::Existing(nodes) => nodes,
            Load::Join { rate, seconds } => (rate * seconds) as usize,
            Load::Takeover(_) => 1,
        }
    }

    /// The labels of the Node of this number, in addition to the labels of every Node.
    pub(crate) fn labels(&self, node: usize) -> Vec<Label> {
        match self.pools {
            Pools::Flags | Pools::Ipv6 => Vec::new(),
            Pools::ClusterCidrs(objects) => cluster_cidrs::labels(node, objects),
        }
    }

    /// Whether the Nodes are those of the double of the API server.
    pub(crate) fn is_on_double(&self) -> bool {
        matches!(self.server, Server::Double { .. })
    }

    /// When a contender counts as stuck: stock's default throttle lets 20 Nodes a second through,
    /// and two slow cores write some 100; half of either is given up on.
    pub(crate) fn limit(&self) -> Duration {
        let slowest_rate = match self.throttle {
            Throttle::Lifted => 50,
            Throttle::Default => 10,
        };
        Duration::from_secs(60 + (self.nodes() / slowest_rate) as u64)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |set, text| if set { text } else { "" };
        f.write_str(end(self.is_on_double(), DOUBLE))?;
        match (self.load, self.throttle, self.pools) {
            (_, _, Pools::ClusterCidrs(objects)) => {
                write!(f, "cluster-cidrs-{}x{objects}", self.nodes())?;
            }
            (Load::Existing(nodes), _, Pools::Ipv6) => write!(f, "ipv6-{nodes}")?,
            (Load::Existing(nodes), Throttle::Lifted, _) => write!(f, "existing-{nodes}")?,
            (Load::Existing(nodes), Throttle::Default, _) => write!(f, "defaults-{nodes}")?,
            (Load::Join { rate, seconds }, ..) => write!(f, "join-{rate}x{seconds}")?,
            (Load::Takeover(nodes), ..) => write!(f, "takeover-{nodes}")?,
        }
        f.write_str(end(self.size == NodeSize::Grown, GROWN))?;
        let Server::Double { json, pages } = self.server else { return Ok(()) };
        write!(f, "{}{}", end(json, JSON), end(pages, PAGES))
    }
}

const DOUBLE: &str = "double-";
const GROWN: &str = "-50kb";
const JSON: &str = "-json";
const PAGES: &str = "-pages";

impl FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        read(text).with_context(|| {
            format!(
                "cannot read case {text:?}: write existing-N, defaults-N, join-RATExSECONDS, \
                 cluster-cidrs-NxM, double-ipv6-N or double-takeover-N, with at most {MOST_NODES} Nodes ({MOST_IPV6} with \
                 IPv6); M is a multiple of 4 up to 256 and at least N/256; -50kb may follow existing and \
                 join; double- may precede them, and -json and -pages follow then"
            )
        })
    }
}

fn read(text: &str) -> Option<Case> {
    let mut rest = text;
    let mut take = |end: &str| {
        let shorter = rest.strip_suffix(end);
        rest = shorter.unwrap_or(rest);
        shorter.is_some()
    };
    let (pages, json, grown) = (take(PAGES), take(JSON), take(GROWN));
    let on_double = rest.strip_prefix(DOUBLE);
    let (kind, number) = on_double.unwrap_or(rest).rsplit_once('-')?;
    let mut pools = Pools::Flags;
    let (load, throttle) = match kind {
        "existing" => (Load::Existing(number.parse().ok()?), Throttle::Lifted),
        "defaults" => (Load::Existing(number.parse().ok()?), Throttle::Default),
        "join" => {
            let (rate, seconds) = number.split_once('x')?;
            let (rate, seconds) = (rate.parse().ok()?, seconds.parse().ok()?);
            (Load::Join { rate, seconds }, Throttle::Lifted)
        }
        "cluster-cidrs" => {
            let (nodes, objects) = number.split_once('x')?;
            let (nodes, objects) = (nodes.parse().ok()?, objects.parse().ok()?);
            pools = Pools::ClusterCidrs(objects);
            (Load::Existing(nodes), Throttle::Lifted)
        }
        "takeover" => (Load::Takeover(number.parse().ok()?), Throttle::Lifted),
        "ipv6" => {
            pools = Pools::Ipv6;
            (Load::Existing(number.parse().ok()?), Throttle::Lifted)
        }
        _ => return None,
    };
    let size = if grown { NodeSize::Grown } else { NodeSize::Registered };
    let server = match on_double {
        Some(_) => Server::Double { json, pages },
        None => Server::ControlPlane,
    };
    let case = Case { load, throttle, pools, size, server };
    let takes = match pools {
        Pools::ClusterCidrs(objects) => {
            !grown && on_double.is_none() && cluster_cidrs::can_serve(case.nodes(), objects)
        }
        Pools::Ipv6 => on_double.is_some(),
        Pools::Flags => match load {
            Load::Takeover(nodes) => on_double.is_some() && (1..=MOST_NODES).contains(&nodes),
            _ => throttle == Throttle::Lifted || (!grown && on_double.is_none()),
        },
    };
    let most = if pools == Pools::Ipv6 { MOST_IPV6 } else { MOST_NODES };
    let is_whole = on_double.is_some() || !(json || pages);
    (takes && is_whole && (1..=most).contains(&case.nodes())).then_some(case)
}

/// Blocks of the IPv6 pool, without those that stay unused.
const MOST_IPV6: usize = 1_048_000;

/// Half of the blocks of the pool, so that no contender is measured on a pool that runs full.
const MOST_NODES: usize = 131_072;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_written_as_it_is_read() {
        for text in [
            "existing-1000",
            "existing-10000-50kb",
            "defaults-1000",
            "join-200x20",
            "cluster-cidrs-10000x200",
            "double-existing-100000-50kb-json-pages",
            "double-join-1000x100",
            "double-ipv6-1000000",
            "double-takeover-100000",
        ] {
            assert_eq!(text.parse::<Case>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_case_without_a_size_or_with_more_nodes_than_the_pool_serves_is_refused() {
        for text in [
            "existing",
            "existing-0",
            "existing-140000",
            "join-200",
            "left-3",
            "cluster-cidrs-10000",
            "cluster-cidrs-10000x4",
            "cluster-cidrs-10x5",
            "cluster-cidrs-100x4-50kb",
            "double-cluster-cidrs-100x4",
            "double-defaults-10",
            "existing-10-json",
            "ipv6-10",
            "double-ipv6-1050000",
            "double-takeover-140000",
            "takeover-10",
            "",
        ] {
            assert!(text.parse::<Case>().is_err(), "{text}");
        }
    }
}
