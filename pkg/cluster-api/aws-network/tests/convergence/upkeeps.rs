//! What is paid for by the hour is what is there.

use std::collections::BTreeMap;

use aws_fixtures::{load_balancer, seed, with_nats};
use aws_network::{Desired, LoadBalancerKind, NatMode, Scheme, Spec, Upkeep};

fn upkeep(spec: &Spec) -> Upkeep {
    Upkeep::of(&Desired::from_spec(spec).unwrap(), true)
}

#[test]
fn what_is_paid_for_follows_from_the_nat_policy_the_load_balancer_and_the_bastion() {
    let instances = BTreeMap::from([("t3.micro".to_owned(), 1)]);
    // (policy, NAT gateways, public addresses: theirs, three of the load balancer, one of the bastion)
    for (mode, nats, addresses) in [
        (NatMode::PerZone, 3, 3 + 3 + 1),
        (NatMode::Single, 1, 1 + 3 + 1),
        (NatMode::None, 0, 3 + 1),
    ] {
        let paid = upkeep(&with_nats(mode));
        let wanted = Upkeep {
            nat_gateways: nats,
            public_addresses: addresses,
            classic_load_balancers: 1,
            network_load_balancers: 0,
            instances: instances.clone(),
        };
        assert_eq!(paid, wanted, "{mode:?}");
    }
}

#[test]
fn an_internal_load_balancer_has_no_public_address_and_a_vpc_of_others_costs_us_nothing() {
    let mut balancer = load_balancer(LoadBalancerKind::Network);
    balancer.scheme = Scheme::Internal;
    let spec = Spec { load_balancer: Some(balancer), bastion: None, ..with_nats(NatMode::None) };
    assert_eq!(upkeep(&spec), Upkeep { network_load_balancers: 1, ..Upkeep::default() });
    let theirs = Upkeep::of(&Desired::from_spec(&seed()).unwrap(), false);
    let wanted = Upkeep { classic_load_balancers: 1, public_addresses: 3, ..Upkeep::default() };
    assert_eq!(theirs, wanted);
}
