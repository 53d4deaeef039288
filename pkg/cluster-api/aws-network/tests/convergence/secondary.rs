//! The secondary load balancer: made, kept and deleted with the first, and never the endpoint.

use aws_fixtures::{absent, load_balancer, present, seed};
use aws_network::{
    Action, Desired, ElbV2Action, Goal, LoadBalancerKind, LoadBalancerSpec, Memory,
    NetworkLoadBalancer, Outputs, Part, Reconciliation, Rest, Scheme, Spec, Tags, conditions,
    is_ready, outputs,
};
use cloud_double::{Nature, differences, inventory};

use crate::driver::{Fault, World};
use crate::listeners::with_ports;

/// A cluster whose first load balancer is of this kind, with an internal second one.
pub(crate) fn with_both(kind: LoadBalancerKind) -> Spec {
    let second = LoadBalancerSpec {
        name: Some("second".to_owned()),
        scheme: Scheme::Internal,
        ..with_ports(&[8443]).load_balancer.unwrap()
    };
    let first = Some(load_balancer(kind));
    Spec { load_balancer: first, secondary_load_balancer: Some(Box::new(second)), ..seed() }
}

const KINDS: [LoadBalancerKind; 2] = [LoadBalancerKind::Classic, LoadBalancerKind::Network];

fn made(spec: &Spec) -> World {
    let mut world = World::new(Nature::PROMPT, 3);
    let (reconciliation, rest) = world.run(&present(spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    world
}

fn desired(goal: &Goal) -> &Desired {
    match goal {
        Goal::Present(desired) => desired,
        Goal::Absent(_) => panic!("nothing is desired"),
    }
}

fn outputs_of(reconciliation: &Reconciliation, goal: &Goal) -> Outputs {
    outputs(desired(goal), reconciliation.observed(), None)
}

#[test]
fn a_secondary_load_balancer_is_made_kept_and_deleted_with_the_first() {
    for kind in KINDS {
        let spec = with_both(kind);
        let mut world = made(&spec);
        let lines = inventory(&world.cloud);
        let second = lines.iter().find(|line| line.starts_with("nlb second Internal")).unwrap();
        for part in [
            "(6443, \"second\"",
            "(8443, ",
            "in [\"10.66.0.160/27\", \"10.66.0.32/27\", \"10.66.0.96/27\"] with [\"testnetwork3-apiserver-lb\"]",
        ] {
            assert!(second.contains(part), "{kind:?}: {part} is not in {second}");
        }
        for _ in 0..3 {
            world.run_later(&present(&spec));
            assert!(world.writes.is_empty(), "{kind:?}: {:#?}", world.writes);
        }
        let (now, arn) = (world.cloud.now, world.cloud.network.all().pop().unwrap().arn);
        world.cloud.network.edit(&arn, now, |it| it.listeners.clear());
        world.run_later(&present(&spec));
        let repaired = inventory(&world.cloud);
        assert_eq!(differences(&repaired, &lines), Vec::<String>::new(), "{kind:?}");
        let (_, rest) = world.run_later(&absent(&spec));
        assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, Vec::new()), "{kind:?}");
    }
}

#[test]
fn a_fault_at_any_write_for_a_secondary_load_balancer_changes_nothing_of_the_end() {
    let mut points = 0;
    for kind in KINDS {
        let spec = with_both(kind);
        // The network is there already, so that the writes are those of the second one.
        let start = made(&Spec { secondary_load_balancer: None, ..spec.clone() });
        let mut whole = start.clone();
        whole.run_later(&present(&spec));
        let (creates, wanted) = (whole.writes.len(), inventory(&whole.cloud));
        let mut gone = whole.clone();
        gone.run_later(&absent(&spec));
        let deletes = gone.writes.len();
        for (start, goal, writes, wanted) in [
            (&start, present(&spec), creates, wanted),
            (&whole, absent(&spec), deletes, Vec::new()),
        ] {
            for point in 0..writes {
                for fault in Fault::ALL {
                    let mut world = start.clone();
                    let (reconciliation, rest) =
                        world.run(&goal, &mut |sent| (sent == point).then_some(fault));
                    let what = format!("{kind:?}, write {point} of {writes}, {fault:?}");
                    assert_eq!(rest, Rest::Reached, "{what}: {:#?}", reconciliation.problems());
                    // What only a deep look shows is repaired by the next one.
                    world.cloud.advance(3600);
                    world.run_later(&goal);
                    let differences = differences(&inventory(&world.cloud), &wanted);
                    assert_eq!(differences, Vec::<String>::new(), "{what}");
                    points += 1;
                }
            }
        }
        for point in 0..creates {
            let mut world = start.clone();
            world.run_until_crash(&present(&spec), point);
            world.memory = Memory::default();
            let (_, rest) = world.run(&absent(&spec), &mut |_| None);
            assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, Vec::new()), "{point}");
        }
    }
    assert!(points > 2 * 5 * 30, "only {points} points were tried");
}

/// Another cluster has the name of the second one.
#[test]
fn the_cluster_is_ready_without_its_secondary_load_balancer_whose_name_is_no_endpoint() {
    let spec = with_both(LoadBalancerKind::Network);
    let goal = present(&spec);
    let mut world = World::new(Nature::PROMPT, 3);
    let (reconciliation, _) = world.run(&goal, &mut |_| None);
    let endpoint = outputs_of(&reconciliation, &goal).endpoint.unwrap();
    assert_eq!(endpoint, "default-testnetwork3-apiserver.elb.amazonaws.com");

    let mut taken = World::new(Nature::PROMPT, 3);
    let second = world.cloud.network.all().into_iter().find(|it| it.name == "second").unwrap();
    let theirs = NetworkLoadBalancer {
        arn: "arn:theirs".to_owned(),
        vpc: "vpc-theirs".to_owned(),
        listeners: Vec::new(),
        tags: Tags::new(),
        ..second
    };
    let now = taken.cloud.now;
    taken.cloud.network.put("arn:theirs", now, theirs);
    let (reconciliation, rest) = taken.run(&goal, &mut |_| None);
    assert_eq!(rest, Rest::Stuck);
    let problems = reconciliation.problems();
    assert!(problems.iter().all(|it| it.part == Part::SecondaryLoadBalancer), "{problems:#?}");
    assert!(!problems.is_empty());
    let parts =
        conditions(desired(&goal), reconciliation.observed(), reconciliation.plan(), &problems);
    let second = parts.iter().find(|it| it.part == Part::SecondaryLoadBalancer).unwrap();
    assert!(!second.is_true && second.reason == "OwnershipConflict", "{second:?}");
    assert!(is_ready(&parts), "{parts:#?}");
    assert_eq!(outputs_of(&reconciliation, &goal).endpoint, Some(endpoint));
}

/// Clients may use its name: only the end of the cluster deletes it.
#[test]
fn a_secondary_load_balancer_that_the_spec_drops_stays_until_the_cluster_goes() {
    let spec = with_both(LoadBalancerKind::Network);
    let mut world = made(&spec);
    let without = Spec { secondary_load_balancer: None, ..spec };
    let (_, rest) = world.run_later(&present(&without));
    assert_eq!((rest, world.cloud.network.all().len()), (Rest::Reached, 2));
    let (_, rest) = world.run_later(&absent(&without));
    assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, Vec::new()));
}

#[test]
fn a_target_group_of_a_dropped_listener_is_deleted_once() {
    let mut spec = with_both(LoadBalancerKind::Network);
    spec.load_balancer = with_ports(&[9345]).load_balancer;
    let mut world = made(&spec);
    spec.load_balancer = with_ports(&[]).load_balancer;
    let (_, rest) = world.run_later(&present(&spec));
    let deletes = world.writes.iter().filter(|write| {
        matches!(write.action, Action::ElbV2(ElbV2Action::DeleteTargetGroup { .. }))
    });
    assert_eq!((rest, deletes.count()), (Rest::Reached, 1), "{:#?}", world.writes);
}
