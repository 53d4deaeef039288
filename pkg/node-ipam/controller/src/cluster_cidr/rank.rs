//! [`Rank`]: which of the ClusterCIDRs that select a Node is asked first
//! (`rule:closest-cluster-cidr-first`).

use std::sync::Arc;

use super::plan::Plan;

/// A ClusterCIDR's place among all others, as far as it does not depend on the Node: the lower one
/// is asked first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// Objects with a selector come before those for everybody.
    for_everybody: bool,
    /// Fewer blocks first: the wider range is kept for others. Of two families the smaller number.
    blocks: u128,
    /// Smaller blocks first.
    host_bits: u8,
    selector: String,
    /// The IPv4 range if there is one, compared as text.
    range: String,
    /// So that no two are alike.
    name: Arc<str>,
}

impl Rank {
    /// The rank of the object of this name.
    pub(crate) fn of(name: &Arc<str>, plan: &Plan) -> Self {
        let selector = plan.selector.as_ref();
        Self {
            for_everybody: selector.is_none(),
            blocks: plan.pools.iter().map(cidr::Pool::blocks).min().unwrap_or_default(),
            host_bits: plan.host_bits,
            selector: selector.map(|it| it.text().to_owned()).unwrap_or_default(),
            range: plan.pools.first().map(|pool| cidr::canonical(&pool.cidr())).unwrap_or_default(),
            name: Arc::clone(name),
        }
    }
}
