//! What is measured: the load of each case and the throttle it runs under.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;

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
    /// This number of ClusterCIDRs with selectors.
    ClusterCidrs(u32),
}

/// One case, written as on the command line: `existing-5000`, `join-200x20`, `defaults-1000`,
/// `cluster-cidrs-10000x200`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// The Nodes.
    pub(crate) load: Load,
    /// The throttle.
    pub(crate) throttle: Throttle,
    /// The blocks.
    pub(crate) pools: Pools,
}

impl Case {
    /// How many Nodes get a CIDR.
    pub(crate) fn nodes(&self) -> usize {
        match self.load {
            Load::Existing(nodes) => nodes,
            Load::Join { rate, seconds } => (rate * seconds) as usize,
        }
    }

    /// The labels of the Node of this number, in addition to the labels of every Node.
    pub(crate) fn labels(&self, node: usize) -> Vec<Label> {
        match self.pools {
            Pools::Flags => Vec::new(),
            Pools::ClusterCidrs(objects) => cluster_cidrs::labels(node, objects),
        }
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
        if let Pools::ClusterCidrs(objects) = self.pools {
            return write!(f, "cluster-cidrs-{}x{objects}", self.nodes());
        }
        match (self.load, self.throttle) {
            (Load::Existing(nodes), Throttle::Lifted) => write!(f, "existing-{nodes}"),
            (Load::Existing(nodes), Throttle::Default) => write!(f, "defaults-{nodes}"),
            (Load::Join { rate, seconds }, _) => write!(f, "join-{rate}x{seconds}"),
        }
    }
}

impl FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let read = || -> Option<Self> {
            let (kind, size) = text.rsplit_once('-')?;
            let mut pools = Pools::Flags;
            let (load, throttle) = match kind {
                "existing" => (Load::Existing(size.parse().ok()?), Throttle::Lifted),
                "defaults" => (Load::Existing(size.parse().ok()?), Throttle::Default),
                "join" => {
                    let (rate, seconds) = size.split_once('x')?;
                    let (rate, seconds) = (rate.parse().ok()?, seconds.parse().ok()?);
                    (Load::Join { rate, seconds }, Throttle::Lifted)
                }
                "cluster-cidrs" => {
                    let (nodes, objects) = size.split_once('x')?;
                    let (nodes, objects) = (nodes.parse().ok()?, objects.parse().ok()?);
                    pools = Pools::ClusterCidrs(objects);
                    (Load::Existing(nodes), Throttle::Lifted)
                }
                _ => return None,
            };
            let case = Self { load, throttle, pools };
            if let Pools::ClusterCidrs(objects) = pools
                && !cluster_cidrs::can_serve(case.nodes(), objects)
            {
                return None;
            }
            (1..=MOST_NODES).contains(&case.nodes()).then_some(case)
        };
        read().with_context(|| {
            format!(
                "cannot read case {text:?}: write existing-N, defaults-N, join-RATExSECONDS or \
                 cluster-cidrs-NxM, with at most {MOST_NODES} Nodes; M is a multiple of 4 up to 256 \
                 and at least N/256"
            )
        })
    }
}

/// Half of the blocks of the pool, so that no contender is measured on a pool that runs full.
const MOST_NODES: usize = 131_072;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_written_as_it_is_read() {
        for text in ["existing-1000", "defaults-1000", "join-200x20", "cluster-cidrs-10000x200"] {
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
            "",
        ] {
            assert!(text.parse::<Case>().is_err(), "{text}");
        }
    }
}
