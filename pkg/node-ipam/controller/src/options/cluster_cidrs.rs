//! Flags of the MultiCIDRRangeAllocator.

use std::time::Duration;

use cidr::Pool;
use flags::{Problem, Values};

use crate::cluster_cidr::plan::Rules;
use crate::cluster_cidr::selector::Terms;
use crate::cluster_cidr::{ClusterCidrSpec, Plan, plan};
use crate::flags::{
    ADDITIONAL_CLUSTER_CIDRS, CLUSTER_CIDR, CLUSTER_CIDR_LABEL_WAIT, CLUSTER_CIDR_SELECTOR_TERMS,
    NODE_CIDR_MASK_SIZE, NODE_CIDR_MASK_SIZE_IPV4, NODE_CIDR_MASK_SIZE_IPV6, named,
};

/// The longest that a Node is waited for.
const LABEL_WAIT_MAX: Duration = Duration::from_secs(60);

/// Further options of the MultiCIDRRangeAllocator.
#[derive(Clone, Debug)]
pub(crate) struct ClusterCidrOptions {
    /// The ClusterCIDR of the flags.
    pub(crate) default: Option<ClusterCidrSpec>,
    /// For all ClusterCIDRs.
    pub(crate) rules: Rules,
    /// For Nodes without the labels of their cloud.
    pub(crate) label_wait: Duration,
}

impl ClusterCidrOptions {
    /// Judges the values; `pools` are those of `--cluster-cidr`.
    pub(super) fn judge(
        values: &Values,
        pools: &[Pool],
        ipv6_bits: u8,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let choices = ([("or", Terms::Or), ("and", Terms::And)], "one of or, and");
        let terms = named(values, &CLUSTER_CIDR_SELECTOR_TERMS, choices, problems);
        let label_wait = values.get(&CLUSTER_CIDR_LABEL_WAIT).to_std();
        if label_wait > LABEL_WAIT_MAX {
            let problem = format!("{label_wait:?} is more than {LABEL_WAIT_MAX:?}");
            problems.push(CLUSTER_CIDR_LABEL_WAIT.problem(problem));
        }
        let rules = Rules { terms, ipv6_bits };
        Self { default: plan::spec(pools), rules, label_wait }
    }

    /// Adds the problems of the ClusterCIDR that is made of the flags.
    pub(super) fn check_default(&self, problems: &mut Vec<Problem>) {
        let Some(spec) = &self.default else { return };
        if let Err(error) = Plan::of(spec, self.rules) {
            problems.push(CLUSTER_CIDR.problem(format!(
                "cannot create the ClusterCIDR {} from it: {error}; \
                 remove the flag and create ClusterCIDRs",
                plan::NAME
            )));
        }
    }
}

/// Flags that have no effect on the allocator that was asked for.
pub(super) fn unused(values: &Values, multi: bool) -> Vec<String> {
    let mut unused = Vec::new();
    if multi {
        let masks = [NODE_CIDR_MASK_SIZE, NODE_CIDR_MASK_SIZE_IPV4, NODE_CIDR_MASK_SIZE_IPV6];
        let given = masks.iter().filter(|mask| values.get(mask) != 0);
        if values.get(&CLUSTER_CIDR).trim().is_empty() {
            unused.extend(given.map(|mask| {
                format!(
                    "{mask}: no effect without --cluster-cidr: perNodeHostBits of each \
                     ClusterCIDR sets the block size"
                )
            }));
        }
        if !values.get(&ADDITIONAL_CLUSTER_CIDRS).trim().is_empty() {
            unused.push(format!(
                "{ADDITIONAL_CLUSTER_CIDRS}: no effect with MultiCIDRRangeAllocator; create a \
                 ClusterCIDR for each range"
            ));
        }
        return unused;
    }
    let only = "has an effect only with --cidr-allocator-type=MultiCIDRRangeAllocator";
    if values.get(&CLUSTER_CIDR_SELECTOR_TERMS) != "or" {
        unused.push(format!("{CLUSTER_CIDR_SELECTOR_TERMS}: {only}"));
    }
    if values.get(&CLUSTER_CIDR_LABEL_WAIT).to_std() != LABEL_WAIT_MAX {
        unused.push(format!("{CLUSTER_CIDR_LABEL_WAIT}: {only}"));
    }
    unused
}
