//! A cluster that upstream's controller made is taken over as it is.

use aws_fixtures::{absent, identity, present, seed};
use aws_network::{Action, ElbAction, Memory, Part, ROLE_TAG, Reason, Rest, Spec, Tags};
use cloud_double::{Cloud, Nature, inventory};

use crate::driver::World;

/// Turns a cluster of ours into one that upstream made: without owner and slots, with its names.
pub(crate) fn as_upstream_made_it(cloud: &mut Cloud) {
    let now = cloud.now;
    let plain = |tags: &mut Tags| {
        tags.retain(|key, _| !key.starts_with("aws.cluster.x-k8s.io/"));
        if let Some(name) = tags.get_mut("Name") {
            for zone in ["-us-east-2a", "-us-east-2b", "-us-east-2c"] {
                *name = name.replace(zone, "");
            }
        }
    };
    macro_rules! each {
        ($($kind:ident)*) => {$(
            for found in cloud.$kind.all() {
                cloud.$kind.edit(&found.id, now, |found| plain(&mut found.tags));
            }
        )*};
    }
    each!(vpcs subnets gateways egress_only carriers addresses nats tables groups instances);
    for address in cloud.addresses.all() {
        cloud.addresses.edit(&address.id, now, |address| {
            address.tags.insert("Name".to_owned(), "testnetwork3-eip-apiserver".to_owned());
            address.tags.insert(ROLE_TAG.to_owned(), "apiserver".to_owned());
        });
    }
    for found in cloud.network.all() {
        cloud.network.edit(&found.arn, now, |found| plain(&mut found.tags));
    }
    for found in cloud.target_groups.all() {
        cloud.target_groups.edit(&found.arn, now, |found| plain(&mut found.tags));
    }
    for found in cloud.classic.all() {
        cloud.classic.edit(&found.name, now, |found| {
            let tags = found.tags.as_mut().unwrap();
            tags.remove("Name");
            plain(tags);
        });
    }
}

pub(crate) fn upstreams() -> World {
    let mut world = World::new(Nature::PROMPT, 9);
    world.run(&present(&seed()), &mut |_| None);
    as_upstream_made_it(&mut world.cloud);
    world.cloud.advance(1);
    world.memory = Memory::default();
    world.writes.clear();
    world
}

pub(crate) fn adopting() -> Spec {
    let mut spec = seed();
    spec.identity.adopt = true;
    spec
}

#[test]
fn without_a_word_nothing_is_taken_over_and_nothing_doubled() {
    let mut world = upstreams();
    let (reconciliation, rest) = world.run(&present(&seed()), &mut |_| None);
    assert_eq!(rest, Rest::Stuck);
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
    let problems = reconciliation.problems();
    assert_eq!((problems[0].part, problems[0].reason), (Part::Vpc, Reason::OwnershipConflict));
    assert!(problems[0].message.contains("adopt"), "{}", problems[0].message);
    world.run(&absent(&seed()), &mut |_| None);
    assert!(world.writes.is_empty(), "what is not ours is not deleted: {:#?}", world.writes);
}

#[test]
fn with_the_annotation_tags_are_all_that_is_written() {
    let mut world = upstreams();
    let ids = |world: &World| {
        let cloud = &world.cloud;
        let nats: Vec<_> =
            cloud.nats.all().into_iter().map(|nat| (nat.id, nat.allocations)).collect();
        let tables: Vec<_> =
            cloud.tables.all().into_iter().map(|table| (table.id, table.routes)).collect();
        (nats, tables)
    };
    let before = ids(&world);
    let (reconciliation, rest) = world.run(&present(&adopting()), &mut |_| None);
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    for planned in &world.writes {
        let is_tag = matches!(
            planned.action,
            Action::CreateTags { .. } | Action::Elb(ElbAction::AddTags { .. })
        );
        assert!(is_tag, "{planned:?}");
    }
    assert_eq!(ids(&world), before);
    for line in inventory(&world.cloud) {
        assert!(line.contains(&format!("owner-id={}", identity().owner_id)), "{line}");
    }
    // The annotation may go: what was taken over is ours by its tags.
    world.run_later(&present(&seed()));
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
    world.run_later(&absent(&seed()));
    assert_eq!(inventory(&world.cloud), Vec::<String>::new());
}

#[test]
fn an_adopted_cluster_may_change_its_policy() {
    let mut spec = adopting();
    spec.nat_mode = aws_network::NatMode::Single;
    let mut world = upstreams();
    let (_, rest) = world.run(&present(&spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached);
    assert_eq!(world.cloud.addresses.all().len(), 1);
    assert_eq!(world.cloud.nats.all().iter().filter(|nat| !nat.is_gone()).count(), 1);
}

/// cluster-api-provider-aws#2546
#[test]
fn a_gateway_and_a_table_that_a_crash_left_unused_are_used() {
    let mut world = upstreams();
    let (now, table) = (world.cloud.now, world.cloud.tables.all().remove(0));
    world.cloud.tables.edit(&table.id, now, |table| table.associations.clear());
    let gateway = world.cloud.gateways.all().remove(0);
    world.cloud.gateways.edit(&gateway.id, now, |gateway| gateway.attached_to = None);
    let (_, rest) = world.run(&present(&adopting()), &mut |_| None);
    assert_eq!(rest, Rest::Reached);
    assert_eq!((world.cloud.tables.ever(), world.cloud.gateways.ever()), (6, 1));
}
