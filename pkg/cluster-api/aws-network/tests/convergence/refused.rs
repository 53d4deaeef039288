//! Calls that AWS refuses, delays or fails.

use aws_fixtures::{absent, load_balancer, present, seed};
use aws_network::{
    BalancerState, Goal, IngressRuleSpec, LoadBalancerKind, LogicalId, NatState, Part, Reason,
    Reconciliation, Rest, Spec, Step, Timestamp, conditions, is_ready,
};
use cloud_double::{Nature, differences, inventory};

use crate::driver::World;

#[test]
fn a_quota_stops_what_needs_it_and_nothing_else() {
    let mut world = World::new(Nature::PROMPT, 4);
    world.cloud.refusals.push(("AllocateAddress", "AddressLimitExceeded", u32::MAX));
    let (reconciliation, rest) = world.run_once_for(&present(&seed()), 600);
    assert_eq!(rest, None, "it is tried again");
    assert_eq!(world.cloud.classic.all().len(), 1, "the load balancer is made");
    assert_eq!(world.cloud.tables.all().len(), 6);
    let problem = reconciliation
        .problems()
        .into_iter()
        .find(|problem| problem.reason == Reason::QuotaExceeded)
        .unwrap();
    assert_eq!(problem.part, Part::NatGateways);
    assert!(problem.message.contains("AddressLimitExceeded"), "{}", problem.message);
    let tries = world.writes.iter().filter(|write| write.part == Part::NatGateways).count();
    assert!((3..=24).contains(&tries), "{tries} tries in ten minutes");
    world.cloud.refusals.clear();
    let (_, rest) = world.run(&present(&seed()), &mut |_| None);
    assert_eq!(rest, Rest::Reached);
    assert_eq!(world.cloud.addresses.ever(), 3);
}

/// The names of the writes that lead to a goal, as the model of AWS names them.
fn writes_of(goal: &Goal, world: &World) -> Vec<&'static str> {
    let mut world = world.clone();
    world.writes.clear();
    world.run(goal, &mut |_| None);
    let mut all: Vec<&'static str> = Vec::new();
    for planned in &world.writes {
        let text = format!("{:?}", planned.action);
        let name = text.split(' ').next().unwrap().to_owned();
        if !all.contains(&name.as_str()) {
            all.push(name.leak());
        }
    }
    all
}

#[test]
fn a_code_that_is_not_in_the_table_stops_neither_build_nor_deletion() {
    let spec = Spec { load_balancer: Some(load_balancer(LoadBalancerKind::Network)), ..seed() };
    for spec in [seed(), spec] {
        let (made, gone) = (present(&spec), absent(&spec));
        let mut whole = World::new(Nature::PROMPT, 4);
        let creates = writes_of(&made, &whole);
        whole.run(&made, &mut |_| None);
        let wanted = inventory(&whole.cloud);
        for call in creates {
            let mut world = World::new(Nature::PROMPT, 4);
            world.cloud.refusals.push((call, "NewFangled", 3));
            let (reconciliation, rest) = world.run(&made, &mut |_| None);
            assert_eq!(rest, Rest::Reached, "{call}: {:#?}", reconciliation.problems());
            assert_eq!(world.cloud.refusals[0].2, 0, "{call} was not refused three times");
            assert_eq!(differences(&inventory(&world.cloud), &wanted), [""; 0], "{call}");
        }
        for call in writes_of(&gone, &whole) {
            let mut world = whole.clone();
            world.cloud.refusals.push((call, "NewFangled", 3));
            let (reconciliation, rest) = world.run(&gone, &mut |_| None);
            assert_eq!(rest, Rest::Reached, "{call}: {:#?}", reconciliation.problems());
            assert_eq!(inventory(&world.cloud), [""; 0], "{call}");
        }
    }
}

#[test]
fn a_code_that_is_not_in_the_table_is_named_and_is_not_the_users_mistake() {
    let mut world = World::new(Nature::PROMPT, 4);
    world.cloud.refusals.push(("AllocateAddress", "NewFangled", u32::MAX));
    let (reconciliation, rest) = world.run_once_for(&present(&seed()), 3600);
    assert_eq!(rest, None, "it is tried again");
    assert_eq!(world.cloud.classic.all().len(), 1, "the rest is made");
    let problem =
        reconciliation.problems().into_iter().find(|it| it.part == Part::NatGateways).unwrap();
    assert_eq!(problem.reason, Reason::Refused);
    assert!(problem.message.contains("NewFangled"), "{problem:?}");
    // After 5, 10, … 160 seconds, then each five minutes: for each of three addresses.
    let tries = world.writes.iter().filter(|write| write.action.operation() == "AllocateAddress");
    let tries = tries.count();
    assert!((3 * 15..=3 * 19).contains(&tries), "{tries} tries in an hour");
}

#[test]
fn a_group_of_the_spec_that_does_not_exist_keeps_no_other_rule_out() {
    let mut spec = seed();
    let named = IngressRuleSpec {
        protocol: "tcp".to_owned(),
        from_port: 9100,
        to_port: 9100,
        source_group_ids: vec!["sg-nope".to_owned()],
        ..IngressRuleSpec::default()
    };
    spec.control_plane_rules = vec![named];
    let mut world = World::new(Nature::PROMPT, 4);
    world.cloud.refusals.push(("sg-nope", "InvalidGroup.NotFound", u32::MAX));
    let (reconciliation, rest) = world.run_once_for(&present(&spec), 300);
    assert_eq!(rest, None, "it is tried again");
    let groups = world.cloud.groups.all();
    let group = groups.iter().find(|group| group.name.ends_with("-controlplane")).unwrap();
    assert!(group.rules.iter().any(|rule| rule.key.to_port == 2379), "{:?}", group.rules);
    let problem =
        reconciliation.problems().into_iter().find(|it| it.part == Part::SecurityGroups).unwrap();
    assert_eq!(problem.reason, Reason::NotFound, "{problem:?}");
}

#[test]
fn a_load_balancer_that_aws_could_not_make_is_reported_and_not_waited_for() {
    let spec = Spec { load_balancer: Some(load_balancer(LoadBalancerKind::Network)), ..seed() };
    let mut world = World::new(Nature::PROMPT, 4);
    world.run(&present(&spec), &mut |_| None);
    let arn = world.cloud.network.all().remove(0).arn;
    world.cloud.network.edit(&arn, 1_000_001, |found| found.state = BalancerState::Failed);
    let (reconciliation, rest) = world.run_later(&present(&spec));
    assert_eq!(
        (rest, reconciliation.problems()[0].reason),
        (Rest::Stuck, Reason::LoadBalancerFailed)
    );
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
}

#[test]
fn a_network_load_balancer_without_security_groups_gets_none_and_the_condition_says_so() {
    let spec = Spec { load_balancer: Some(load_balancer(LoadBalancerKind::Network)), ..seed() };
    let goal = present(&spec);
    let Goal::Present(desired) = &goal else { panic!() };
    let mut world = World::new(Nature::PROMPT, 4);
    world.run(&goal, &mut |_| None);
    let arn = world.cloud.network.all().remove(0).arn;
    world.cloud.network.edit(&arn, 1_000_001, |found| found.groups.clear());
    let (reconciliation, rest) = world.run_later(&goal);
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
    let all = conditions(
        desired,
        reconciliation.observed(),
        reconciliation.plan(),
        &reconciliation.problems(),
    );
    let balancer = all.iter().find(|condition| condition.part == Part::LoadBalancer).unwrap();
    assert_eq!((balancer.is_true, balancer.reason), (true, "NoSecurityGroups"), "{balancer:?}");
}

/// How often a call was sent in an hour in which it was refused.
fn tries_in_an_hour(goal: &Goal, call: &'static str, code: &'static str) -> usize {
    let mut world = World::new(Nature::PROMPT, 4);
    if matches!(goal, Goal::Absent(_)) {
        world.run(&present(&seed()), &mut |_| None);
        world.writes.clear();
    }
    world.cloud.refusals.push((call, code, u32::MAX));
    world.run_once_for(goal, 3600);
    world.writes.iter().filter(|write| write.action.operation() == call).count()
}

#[test]
fn what_is_in_use_is_tried_each_minute_a_quota_each_ten_and_a_right_each_five() {
    let (made, gone) = (present(&seed()), absent(&seed()));
    // After 10, 20 and 40 seconds, then each minute.
    assert!((60..=66).contains(&tries_in_an_hour(&gone, "DeleteVpc", "DependencyViolation")));
    // After 2, 4 and 8 minutes, then each ten.
    assert!((7..=9).contains(&tries_in_an_hour(&made, "CreateVpc", "VpcLimitExceeded")));
    // After 1, 2 and 4 minutes, then each five.
    assert!((13..=16).contains(&tries_in_an_hour(&made, "CreateVpc", "UnauthorizedOperation")));
}

#[test]
fn a_failed_nat_gateway_is_replaced_by_another_attempt_with_the_same_address() {
    let mut world = World::new(Nature { slow: 60, failing_nats: 2, ..Nature::PROMPT }, 4);
    let (reconciliation, rest) = world.run(&present(&seed()), &mut |_| None);
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert_eq!(world.cloud.addresses.ever(), 3, "addresses are kept");
    assert_eq!(world.cloud.nats.ever(), 5, "two failed");
    let live =
        world.cloud.nats.all().into_iter().filter(|nat| nat.state == NatState::Available).count();
    assert_eq!(live, 3);
}

/// cluster-api-provider-aws#1752
#[test]
fn the_address_of_a_pending_nat_gateway_is_not_used_again_after_a_restart() {
    let mut world = World::new(Nature { slow: 60, ..Nature::PROMPT }, 4);
    let (_, rest) = world.run_once_for(&present(&seed()), 40);
    let pending = |world: &World| {
        let nats = world.cloud.nats.all();
        nats.iter().filter(|nat| nat.state == NatState::Pending).count()
    };
    assert_eq!((rest, pending(&world)), (None, 3));
    // The process is started again, and the status has lost what it made.
    world.memory = aws_network::Memory::default();
    world.writes.clear();
    let (_, rest) = world.run(&present(&seed()), &mut |_| None);
    assert_eq!(rest, Rest::Reached);
    assert_eq!((world.cloud.addresses.ever(), world.cloud.nats.ever()), (3, 3));
    let released = world.writes.iter().find(|write| write.action.operation() == "ReleaseAddress");
    assert!(released.is_none(), "{released:?}");
}

#[test]
fn each_failure_of_a_nat_gateway_makes_the_next_attempt_wait_longer() {
    let mut world = World::new(Nature { slow: 10, failing_nats: 1000, ..Nature::PROMPT }, 4);
    let (reconciliation, _) = world.run_once_for(&present(&seed()), 3600);
    assert!(world.cloud.nats.ever() <= 3 * 12, "{} in an hour", world.cloud.nats.ever());
    assert!(world.cloud.nats.ever() >= 3 * 5, "{} in an hour", world.cloud.nats.ever());
    assert_eq!(world.cloud.addresses.ever(), 3);
    let problems = reconciliation.problems();
    assert!(
        problems.iter().any(|problem| problem.reason == Reason::NatGatewayFailed)
            || reconciliation.plan().is_busy(Part::NatGateways)
    );
}

#[test]
fn interfaces_that_drain_slowly_are_waited_for() {
    let mut world = World::new(Nature { slow: 45, drain: 200, ..Nature::PROMPT }, 4);
    world.run(&present(&seed()), &mut |_| None);
    let (_, rest) = world.run_later(&absent(&seed()));
    assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, Vec::new()));
}

#[test]
fn throttles_and_failures_of_aws_are_got_over() {
    for code in [
        "RequestLimitExceeded",
        "InternalError",
        "",
        "ServiceUnavailable",
        "IdempotentParameterMismatch",
    ] {
        for call in [
            "CreateVpc",
            "CreateSubnet",
            "CreateNatGateway",
            "AuthorizeIngress",
            "RunBastion",
            "Elb(Create",
        ] {
            let mut world = World::new(Nature::PROMPT, 4);
            world.cloud.refusals.push((call, code, 2));
            let (reconciliation, rest) = world.run(&present(&seed()), &mut |_| None);
            assert_eq!(rest, Rest::Reached, "{call} {code}: {:#?}", reconciliation.problems());
            assert_eq!(world.cloud.vpcs.ever(), 1, "{call} {code}");
            assert!(world.cloud.refusals[0].2 == 0, "{call} was never refused");
        }
    }
}

/// cluster-api-provider-aws#815, #4723
#[test]
fn while_the_status_cannot_be_written_nothing_is_made_that_could_be_lost() {
    let mut world = World::new(Nature::PROMPT, 4);
    world.status_fails = true;
    let (reconciliation, _) = world.run_once_for(&present(&seed()), 120);
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
    assert!(!reconciliation.problems().is_empty());
    // What is there already is found and completed all the same.
    let mut world = World::new(Nature::PROMPT, 4);
    world.run(&present(&seed()), &mut |_| None);
    let wanted = inventory(&world.cloud);
    world.memory = aws_network::Memory::default();
    for table in world.cloud.tables.all() {
        world.cloud.tables.edit(&table.id, world.cloud.now, |table| table.associations.clear());
    }
    world.status_fails = true;
    world.run_once_for(&present(&seed()), 120);
    assert_eq!(differences(&inventory(&world.cloud), &wanted), Vec::<String>::new());
}

/// rule:intent-before-unprotected-create
#[test]
fn a_create_whose_intent_was_stored_for_ten_seconds_is_planned_again() {
    let goal = present(&seed());
    let mut world = World::new(Nature::PROMPT, 4);
    for (takes, is_sent) in [(0, true), (9, true), (10, false)] {
        let mut reconciliation = world.look(&goal);
        let began = world.now();
        let Step::Persist(memory) = reconciliation.next(began) else { panic!("no intent") };
        assert_eq!(memory.records[&LogicalId::Vpc].since, began);
        reconciliation.persisted(true);
        let now = Timestamp(began.0 + takes);
        match reconciliation.next(now) {
            Step::Write(_) => assert!(is_sent, "sent after {takes} s"),
            Step::Rest(Rest::For(_)) => assert!(!is_sent, "not sent after {takes} s"),
            step => panic!("{step:?}"),
        }
    }
}

#[test]
fn a_closed_fence_ends_the_leg_without_a_trace() {
    let goal = present(&seed());
    let mut world = World::new(Nature::PROMPT, 4);
    let mut reconciliation = Reconciliation::new(goal.clone(), world.memory.clone());
    let now = Timestamp(world.cloud.now);
    let rest = loop {
        match reconciliation.next(now) {
            Step::Read(queries) | Step::Poll(queries) => {
                for query in queries {
                    let reply = world.cloud.read(&query);
                    reconciliation.answer(query, reply, now);
                }
            }
            Step::Persist(memory) => {
                world.memory = memory;
                reconciliation.persisted(true);
            }
            Step::Write(writes) => {
                for planned in writes {
                    reconciliation.written(&planned, aws_network::Outcome::NotSent, now);
                }
            }
            Step::Rest(rest) => break rest,
        }
    };
    assert!(matches!(rest, Rest::For(_)));
    let (_, rest) = world.run(&goal, &mut |_| None);
    assert_eq!(rest, Rest::Reached);
    assert!(
        world.cloud.now <= 1_000_001,
        "the next leader does not wait for a create that was never sent"
    );
}

#[test]
fn conditions_tell_what_is_there_and_what_is_awaited() {
    let goal = present(&seed());
    let aws_network::Goal::Present(desired) = &goal else { panic!() };
    let mut world = World::new(Nature { slow: 100, ..Nature::PROMPT }, 4);
    let (reconciliation, rest) = world.run_once_for(&goal, 20);
    assert_eq!(rest, None);
    let all = conditions(
        desired,
        reconciliation.observed(),
        reconciliation.plan(),
        &reconciliation.problems(),
    );
    let state = |part: Part| all.iter().find(|condition| condition.part == part).unwrap().is_true;
    for part in
        [Part::Vpc, Part::Subnets, Part::InternetGateway, Part::SecurityGroups, Part::LoadBalancer]
    {
        assert!(state(part), "{part:?}: {all:#?}");
    }
    assert!(
        !state(Part::NatGateways) && !state(Part::RouteTables) && !state(Part::Bastion),
        "{all:#?}"
    );
    assert!(!is_ready(&all));
    let (reconciliation, _) = world.run(&goal, &mut |_| None);
    let all = conditions(
        desired,
        reconciliation.observed(),
        reconciliation.plan(),
        &reconciliation.problems(),
    );
    assert!(all.iter().all(|condition| condition.is_true), "{all:#?}");
    let outputs = aws_network::outputs(desired, reconciliation.observed(), Some("vpc"));
    assert_eq!(outputs.nat_addresses.len(), 3);
    assert_eq!(outputs.endpoint.unwrap(), "testnetwork3-apiserver.elb.amazonaws.com");
    let zones = ["us-east-2a", "us-east-2b", "us-east-2c"].map(|zone| (zone.to_owned(), true));
    assert_eq!(outputs.failure_domains, zones);
}

/// The problem names the part in the way, not a part that needs nothing of it.
#[test]
fn a_subnet_that_does_not_exist_says_nothing_against_its_vpc() {
    let mut spec = seed();
    let mut world = World::new(Nature::PROMPT, 4);
    world.run(&present(&spec), &mut |_| None);
    spec.subnets[0].id = Some("subnet-f0000000".to_owned());
    let goal = present(&spec);
    let aws_network::Goal::Present(desired) = &goal else { panic!() };
    let (reconciliation, _) = world.run_once_for(&goal, 100);
    let all = conditions(
        desired,
        reconciliation.observed(),
        reconciliation.plan(),
        &reconciliation.problems(),
    );
    let of = |part: Part| all.iter().find(|condition| condition.part == part).unwrap();
    assert!(of(Part::Vpc).is_true, "{all:#?}");
    assert_eq!(of(Part::Subnets).reason, "NotFound");
    assert!(!of(Part::LoadBalancer).is_true, "{all:#?}");
}

#[test]
fn a_published_endpoint_is_not_replaced_without_a_word() {
    let mut spec = seed();
    let mut world = World::new(Nature::PROMPT, 4);
    world.run(&present(&spec), &mut |_| None);
    world.cloud.classic.remove("testnetwork3-apiserver", world.cloud.now);
    spec.endpoint_published = true;
    let (reconciliation, rest) = world.run_later(&present(&spec));
    assert_eq!(rest, Rest::Stuck);
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
    assert_eq!(reconciliation.problems()[0].reason, Reason::LoadBalancerMissing);
    spec.allow_load_balancer_recreate = true;
    let (_, rest) = world.run_later(&present(&spec));
    assert_eq!((rest, world.cloud.classic.all().len()), (Rest::Reached, 1));
}

/// Reads that always show the past must not cause writes without end.
#[test]
fn a_leg_ends_although_reads_show_nothing_of_what_was_done() {
    let mut world = World::new(Nature::PROMPT, 4);
    world.run(&present(&seed()), &mut |_| None);
    let vpc = world.cloud.vpcs.all().remove(0).id;
    world.cloud.vpcs.edit(&vpc, 1_000_001, |vpc| vpc.tags.clear());
    world.cloud.advance(1800);
    let (past, now) = (world.cloud.clone(), Timestamp(world.cloud.now));
    let mut reconciliation = Reconciliation::new(present(&seed()), world.memory.clone());
    let mut sent = Vec::new();
    for _ in 0..100 {
        match reconciliation.next(now) {
            Step::Read(queries) | Step::Poll(queries) => {
                for query in queries {
                    let reply = past.clone().read(&query);
                    reconciliation.answer(query, reply, now);
                }
            }
            Step::Persist(_) => reconciliation.persisted(true),
            Step::Write(writes) => {
                for planned in writes {
                    reconciliation.written(&planned, aws_network::Outcome::Unknown, now);
                    sent.push(planned);
                }
            }
            Step::Rest(rest) => {
                assert!(matches!(rest, Rest::For(_)));
                assert_eq!(sent.len(), 1, "{sent:#?}");
                return;
            }
        }
    }
    panic!("the attempt does not end: {} writes", sent.len());
}
