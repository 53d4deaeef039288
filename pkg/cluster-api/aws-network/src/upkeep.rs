//! [`Upkeep`]: what of a cluster is paid for by the hour, as long as it is there.

use std::collections::{BTreeMap, BTreeSet};

use crate::desired::{Desired, DesiredLoadBalancer, DesiredSubnet};
use crate::load_balancers::Scheme;
use crate::nat_gateways::wanted_zones;
use crate::plan::Plan;
use crate::spec::LoadBalancerKind;

/// What is paid for by the hour. Traffic is not in it, and neither are disks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upkeep {
    /// NAT gateways.
    pub nat_gateways: usize,
    /// Public IPv4 addresses: of NAT gateways, of the bastion, and of a load balancer that faces the
    /// internet, one in each of its subnets.
    pub public_addresses: usize,
    /// Classic load balancers.
    pub classic_load_balancers: usize,
    /// Network load balancers.
    pub network_load_balancers: usize,
    /// Instances, by their type.
    pub instances: BTreeMap<String, usize>,
}

impl Upkeep {
    /// Of a cluster that is as it shall be. What lies in a VPC of somebody else is not ours to pay
    /// for, the load balancer excepted.
    pub fn of(desired: &Desired, is_managed: bool) -> Self {
        let mut upkeep = Self::default();
        if is_managed {
            // What is wrong with the zones is told by the plan.
            upkeep.nat_gateways = wanted_zones(desired, &mut Plan::default()).len();
            upkeep.public_addresses = upkeep.nat_gateways;
            let has_private = desired.subnets.iter().any(|subnet| !subnet.public);
            if let Some(bastion) = desired.bastion.as_ref().filter(|_| has_private) {
                upkeep.instances.insert(bastion.instance_type.clone(), 1);
                upkeep.public_addresses += 1;
            }
        }
        if let Some(balancer) = &desired.load_balancer {
            match balancer.kind {
                LoadBalancerKind::Classic => upkeep.classic_load_balancers = 1,
                LoadBalancerKind::Network => upkeep.network_load_balancers = 1,
            }
            if balancer.scheme == Scheme::InternetFacing {
                upkeep.public_addresses += places(desired, balancer);
            }
        }
        upkeep
    }
}

/// In how many subnets a load balancer that faces the internet lies: in those that are named, or in
/// one public subnet of each zone.
fn places(desired: &Desired, balancer: &DesiredLoadBalancer) -> usize {
    if !balancer.subnets.is_empty() {
        return balancer.subnets.len();
    }
    // One that is known by its id may be in any zone.
    let place = |subnet: &DesiredSubnet| subnet.zone.clone().or_else(|| subnet.id.clone());
    let has_public = desired.subnets.iter().any(|subnet| subnet.public);
    let of_kind = desired.subnets.iter().filter(|subnet| subnet.public || !has_public);
    of_kind.map(place).collect::<BTreeSet<_>>().len()
}
