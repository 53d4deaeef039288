//! [`Sweep`]: what was read last for all clusters at rest of a region, by kind of resource. The queries
//! that it answers are in `describe/swept.rs`.

use std::time::Duration;

use aws_network::{
    Address, ClassicLoadBalancer, Instance, InternetGateway, NatGateway, NetworkLoadBalancer,
    RouteTable, SecurityGroup, Subnet, TargetGroup, Vpc,
};

use crate::polls::{Polls, Terms};

/// Values in one call. Calls of a sweep run at once, so that few pages follow each other.
const VALUES: usize = 100;

/// What was read last for all clusters at rest.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) vpcs: Polls<Vpc>,
    pub(crate) tagged_vpcs: Polls<Vpc>,
    pub(crate) subnets: Polls<Subnet>,
    pub(crate) gateways: Polls<InternetGateway>,
    pub(crate) attached_gateways: Polls<InternetGateway>,
    pub(crate) egress_only_gateways: Polls<InternetGateway>,
    pub(crate) carrier_gateways: Polls<InternetGateway>,
    pub(crate) addresses: Polls<Address>,
    pub(crate) nat_gateways: Polls<NatGateway>,
    pub(crate) route_tables: Polls<RouteTable>,
    pub(crate) security_groups: Polls<SecurityGroup>,
    pub(crate) bastions: Polls<Instance>,
    pub(crate) classic: Polls<ClassicLoadBalancer>,
    pub(crate) network: Polls<NetworkLoadBalancer>,
    pub(crate) target_groups: Polls<TargetGroup>,
}

impl Sweep {
    /// For clusters that look at AWS once in a period. A sweep serves for half of it, so it began
    /// after the pass of its own with which a cluster came to rest.
    pub(crate) fn new(period: Duration) -> Self {
        let (serves_for, waits_for) = (period.as_secs() / 2, period.as_secs() * 2);
        let by_value = Terms { serves_for, waits_for, values: VALUES };
        // Those of all clusters of the region are read. No filter selects load balancers.
        let whole = Terms { values: usize::MAX, ..by_value };
        Self {
            vpcs: Polls::new(by_value),
            tagged_vpcs: Polls::new(whole),
            subnets: Polls::new(by_value),
            gateways: Polls::new(whole),
            attached_gateways: Polls::new(by_value),
            egress_only_gateways: Polls::new(whole),
            carrier_gateways: Polls::new(by_value),
            addresses: Polls::new(whole),
            nat_gateways: Polls::new(by_value),
            route_tables: Polls::new(by_value),
            security_groups: Polls::new(by_value),
            bastions: Polls::new(whole),
            classic: Polls::new(whole),
            network: Polls::new(whole),
            target_groups: Polls::new(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use aws_network::Timestamp;

    use super::*;
    use crate::polls::Asker;

    /// Reads of a round for 500 clusters. Each has `resources` of a kind, and AWS returns `page` of
    /// them in a page.
    async fn reads<T>(polls: &Polls<T>, resources: usize, page: usize) -> usize {
        let asker = |number: usize| {
            let value = format!("vpc-{number}");
            Asker { cluster_tag: value.clone(), value }
        };
        (0..500).for_each(|number| polls.note(asker(number), Timestamp(0)));
        let count = AtomicUsize::new(0);
        let fetch = |values: Vec<String>| {
            let pages = (resources * values.len()).div_ceil(page).max(1);
            count.fetch_add(pages, Ordering::Relaxed);
            ready(Ok(Vec::new()))
        };
        for number in 0..500 {
            polls.share(asker(number), || Timestamp(600), fetch).await.unwrap();
        }
        count.into_inner()
    }

    /// The cluster that everybody starts with: 3 zones, a NAT gateway in each, a bastion, a classic
    /// load balancer.
    #[tokio::test]
    async fn a_sweep_of_500_clusters_is_56_reads_and_61_with_ipv6() {
        let sweep = Sweep::new(Duration::from_secs(600));
        let all = [
            reads(&sweep.tagged_vpcs, 1, 1000).await,
            reads(&sweep.subnets, 6, 1000).await,
            reads(&sweep.gateways, 1, 1000).await,
            // No pages.
            reads(&sweep.addresses, 3, usize::MAX).await,
            reads(&sweep.nat_gateways, 3, 1000).await,
            reads(&sweep.route_tables, 7, 100).await,
            reads(&sweep.security_groups, 6, 1000).await,
            reads(&sweep.bastions, 1, 1000).await,
            reads(&sweep.classic, 1, 400).await,
        ];
        assert_eq!(all.iter().sum::<usize>(), 56, "{all:?}");
        assert_eq!(reads(&sweep.egress_only_gateways, 1, 100).await, 5);
    }
}
