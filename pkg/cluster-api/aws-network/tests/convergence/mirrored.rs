//! A spec that holds the ids of what was made, as upstream writes them, means the same.

use aws_fixtures::{absent, present, seed};
use aws_network::{Desired, NetworkIds, Rest, Spec, network_ids};
use cloud_double::{Nature, inventory};

use crate::driver::World;

/// The spec with the id of the VPC, and with this of each subnet.
fn with_ids(
    spec: &Spec,
    places: &NetworkIds,
    id_of: fn(&aws_network::SubnetIds) -> &String,
) -> Spec {
    let mut spec = Spec { vpc_id: Some(places.vpc.clone()), ..spec.clone() };
    for (subnet, place) in spec.subnets.iter_mut().zip(&places.subnets) {
        subnet.id = Some(id_of(place).clone());
    }
    spec
}

#[test]
fn ids_of_what_was_made_change_nothing_and_are_no_way_to_survive_the_end() {
    let spec = seed();
    let mut world = World::new(Nature::PROMPT, 11);
    let (reconciliation, rest) = world.run(&present(&spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached);
    let all = network_ids(&Desired::from_spec(&spec).unwrap(), reconciliation.observed()).unwrap();
    assert!(all.internet_gateway.is_some());
    assert_eq!(all.subnets.len(), 6);
    for place in &all.subnets {
        assert_eq!(place.nat_gateway.is_some(), place.public, "{place:?}");
        assert!(place.route_table.is_some(), "{place:?}");
    }
    let made = inventory(&world.cloud);
    for (what, mirrored) in [
        ("ids, as upstream's v1alpha2", with_ids(&spec, &all, |place| &place.id)),
        ("names, as upstream does today", with_ids(&spec, &all, |place| &place.name)),
    ] {
        let (reconciliation, rest) = world.run_later(&present(&mirrored));
        assert_eq!(rest, Rest::Reached, "{what}: {:#?}", reconciliation.problems());
        assert!(world.writes.is_empty(), "{what}: {:#?}", world.writes);
        assert_eq!(inventory(&world.cloud), made, "{what}");
        let again = network_ids(&Desired::from_spec(&mirrored).unwrap(), reconciliation.observed());
        assert_eq!(again.as_ref(), Some(&all), "{what}");
        let mut world = world.clone();
        assert_eq!(world.run_later(&absent(&mirrored)).1, Rest::Reached, "{what}");
        assert_eq!(inventory(&world.cloud), [""; 0], "{what}");
    }
}
