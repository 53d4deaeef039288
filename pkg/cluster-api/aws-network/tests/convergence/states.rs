//! States that calls of others can lead to, with a second cluster of the same name: what is ours
//! becomes what it shall be, what is not ours stays as it is, and a second reconciliation has
//! nothing to do.

use aws_fixtures::{absent, identity, present, seed};
use aws_network::{Action, DEFAULT_OWNER_TAG, ElbAction, Identity, Memory, Rest, Spec, Tags};
use cloud_double::{Cloud, Nature, differences, inventory};
use proptest::prelude::*;

use crate::driver::World;
use crate::histories::{config, natures};

/// A tag that somebody has put on what is ours.
const MARK: (&str, &str) = ("team", "somebody");

/// Deletes that somebody could send for what this owner has. AWS refuses some of them.
fn deletes(cloud: &Cloud, owner: &str) -> Vec<Action> {
    let is_meant = |tags: &Tags| tags.get(DEFAULT_OWNER_TAG).is_some_and(|tag| tag == owner);
    let mut all = Vec::new();
    for table in cloud.tables.all().into_iter().filter(|table| is_meant(&table.tags)) {
        let destination = aws_network::DEFAULT_ROUTE;
        all.push(Action::DeleteRoute { table: table.id.clone(), destination });
        all.push(Action::DeleteRouteTable { table: table.id.clone() });
        let ends = table.associations.into_iter();
        all.extend(ends.map(|end| Action::DisassociateRouteTable { association: end.id }));
    }
    for nat in cloud.nats.all().into_iter().filter(|nat| is_meant(&nat.tags)) {
        all.push(Action::DeleteNatGateway { nat_gateway: nat.id });
    }
    for address in cloud.addresses.all().into_iter().filter(|found| is_meant(&found.tags)) {
        all.push(Action::ReleaseAddress { allocation: address.id });
    }
    for group in cloud.groups.all().into_iter().filter(|group| is_meant(&group.tags)) {
        all.push(Action::RevokeIngress { group: group.id.clone(), rules: group.rules });
        all.push(Action::DeleteSecurityGroup { group: group.id });
    }
    for subnet in cloud.subnets.all().into_iter().filter(|subnet| is_meant(&subnet.tags)) {
        all.push(Action::DeleteSubnet { subnet: subnet.id });
    }
    for found in cloud.gateways.all().into_iter().filter(|found| is_meant(&found.tags)) {
        let vpc = found.attached_to.unwrap_or_default();
        all.push(Action::DetachInternetGateway { gateway: found.id.clone(), vpc });
        all.push(Action::DeleteInternetGateway { gateway: found.id });
    }
    for found in cloud.egress_only.all().into_iter().filter(|found| is_meant(&found.tags)) {
        all.push(Action::DeleteEgressOnlyGateway { gateway: found.id });
    }
    for found in cloud.carriers.all().into_iter().filter(|found| is_meant(&found.tags)) {
        all.push(Action::DeleteCarrierGateway { gateway: found.id });
    }
    for found in cloud.instances.all().into_iter().filter(|found| is_meant(&found.tags)) {
        all.push(Action::TerminateInstances { instances: vec![found.id] });
    }
    for found in cloud.classic.all() {
        all.push(Action::Elb(ElbAction::Delete { name: found.name }));
    }
    all
}

/// Everything that this owner has, as it is.
fn belongings(cloud: &Cloud, owner: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    all.extend(cloud.vpcs.all().iter().map(|found| format!("{found:?}")));
    all.extend(cloud.subnets.all().iter().map(|found| format!("{found:?}")));
    all.extend(cloud.gateways.all().iter().map(|found| format!("{found:?}")));
    all.extend(cloud.addresses.all().iter().map(|found| format!("{found:?}")));
    all.extend(cloud.nats.all().iter().map(|found| format!("{found:?}")));
    all.extend(cloud.tables.all().iter().map(|found| format!("{found:?}")));
    all.extend(cloud.groups.all().iter().map(|found| format!("{found:?}")));
    all.extend(cloud.instances.all().iter().map(|found| format!("{found:?}")));
    all.retain(|text| text.contains(owner));
    all
}

/// Sets a tag on some resources of ours, except route tables, which are replaced with their subnet.
fn mark(cloud: &mut Cloud, picks: &[usize]) {
    let owner = identity().owner_id;
    let is_ours = |tags: &Tags| tags.get(DEFAULT_OWNER_TAG) == Some(&owner);
    let subnets = cloud.subnets.all().into_iter().filter(|found| is_ours(&found.tags));
    let vpcs = cloud.vpcs.all().into_iter().filter(|found| is_ours(&found.tags));
    let ids: Vec<_> = subnets.map(|found| found.id).chain(vpcs.map(|found| found.id)).collect();
    let tags = Tags::from([(MARK.0.to_owned(), MARK.1.to_owned())]);
    for pick in picks {
        let resources = vec![ids[pick % ids.len()].clone()];
        cloud.call(&Action::CreateTags { resources, tags: tags.clone() }).unwrap();
    }
}

fn marks(lines: &[String]) -> usize {
    lines.iter().filter(|line| line.contains(MARK.1)).count()
}

fn unmarked(lines: Vec<String>) -> Vec<String> {
    let mark = format!(",{}={}", MARK.0, MARK.1);
    let mut lines: Vec<_> = lines.into_iter().map(|line| line.replace(&mark, "")).collect();
    lines.sort();
    lines
}

/// A cluster of the same name, made before ours, and ours.
fn two_clusters(seed_of_draws: u64) -> (World, Spec, String) {
    let other = "another-owner".to_owned();
    let mut theirs = seed();
    theirs.identity = Identity { owner_id: other.clone(), ..identity() };
    theirs.load_balancer = None;
    let mut world = World::new(Nature::PROMPT, seed_of_draws);
    world.run(&present(&theirs), &mut |_| None);
    world.memory = Memory::default();
    let ours = seed();
    world.run(&present(&ours), &mut |_| None);
    (world, ours, other)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn from_any_state_ours_is_completed_and_theirs_stays(
        strikes in prop::collection::vec(any::<usize>(), 0..60), picks in prop::collection::vec(any::<usize>(), 0..6),
        nature in natures(), draws: u64, status_is_lost: bool,
    ) {
        let (mut world, spec, other) = two_clusters(draws);
        let (wanted, theirs) = (inventory(&world.cloud), belongings(&world.cloud, &other));
        prop_assert!(theirs.len() > 20);
        mark(&mut world.cloud, &picks);
        for strike in strikes {
            let all = deletes(&world.cloud, &spec.identity.owner_id);
            let Some(delete) = all.get(strike % all.len().max(1)) else { break };
            let _refused = world.cloud.call(delete);
            world.cloud.advance(1);
        }
        let marked = marks(&inventory(&world.cloud));
        if status_is_lost {
            world.memory = Memory::default();
        }
        world.cloud.nature = nature;
        world.cloud.advance(3600);
        let (reconciliation, rest) = world.run_later(&present(&spec));
        prop_assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
        world.cloud.advance(3600);
        world.run_later(&present(&spec));
        let found = inventory(&world.cloud);
        prop_assert_eq!(marks(&found), marked, "tags of others stay");
        prop_assert_eq!(differences(&unmarked(found), &wanted), Vec::<String>::new());
        prop_assert_eq!(&belongings(&world.cloud, &other), &theirs);
        world.run_later(&present(&spec));
        prop_assert!(world.writes.is_empty(), "{:#?}", world.writes);
        let (reconciliation, rest) = world.run_later(&absent(&spec));
        prop_assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
        prop_assert_eq!(&belongings(&world.cloud, &other), &theirs);
        prop_assert_eq!(belongings(&world.cloud, &spec.identity.owner_id).iter().filter(|text| is_there(text)).count(), 0);
    }
}

/// NAT gateways and instances are shown for an hour after their end.
fn is_there(text: &str) -> bool {
    !text.contains("state: Deleted") && !text.contains("state: Terminated")
}
