//! Number of resources of each kind in the region of the clusters.

pub(crate) use tests::aws_totals::Totals;

use crate::world::{REGION, World};

/// Counts it.
pub(crate) async fn totals(world: &World) -> Totals {
    tests::aws_totals::totals(world.proxy.upstream(), REGION).await
}
