//! A forecast names the writes that a reconciliation then sends, from any state.

use aws_fixtures::{absent, dual_stack, load_balancer, present, seed, with_nats};
use aws_network::{Goal, LoadBalancerKind, NatMode, Rest, Spec, forecast};
use cloud_double::Nature;

use crate::drift::DAMAGES;
use crate::driver::World;

/// Sends what was forecast and nothing else; how many writes that were.
fn comes_true(world: &mut World, goal: &Goal, what: &str) -> usize {
    let reconciliation = world.look(goal);
    let said = forecast(&reconciliation, world.now());
    assert!(
        said.is_reached && said.problems.iter().all(|it| it.reason.is_advice()),
        "{what}: {said:#?}"
    );
    let (_, rest) = world.run_later(goal);
    assert_eq!(rest, Rest::Reached, "{what}");
    let names = |writes: &[aws_network::Planned]| {
        let mut names: Vec<_> = writes.iter().map(|it| it.action.operation()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(&said.writes), names(&world.writes), "{what}");
    said.writes.len()
}
#[test]
fn what_is_forecast_for_nothing_for_a_change_and_for_the_end_comes_true() {
    let network = || Some(load_balancer(LoadBalancerKind::Network));
    let with_network = Spec { load_balancer: network(), ..seed() };
    let regional = with_nats(NatMode::Regional);
    for spec in [seed(), with_nats(NatMode::None), regional, with_network, dual_stack()] {
        let what = format!("{:?} {:?}", spec.nat_mode, spec.load_balancer.as_ref().unwrap().kind);
        let mut world = World::new(Nature { slow: 60, ..Nature::PROMPT }, 3);
        assert!(comes_true(&mut world, &present(&spec), &what) > 30, "{what}");
        assert_eq!(comes_true(&mut world, &present(&spec), &what), 0, "{what}: it is there");
        let single = Spec { nat_mode: NatMode::Single, ..spec.clone() };
        assert!(comes_true(&mut world, &present(&single), &format!("{what} to Single")) > 0);
        assert!(comes_true(&mut world, &absent(&spec), &format!("the end of {what}")) > 30);
    }
}

#[test]
fn what_is_forecast_for_a_damage_comes_true() {
    let mut world = World::new(Nature::PROMPT, 5);
    world.run(&present(&seed()), &mut |_| None);
    for (what, writes, damage) in DAMAGES {
        let mut world = world.clone();
        damage(&mut world.cloud);
        world.cloud.advance(3600); // the deep check is due
        assert_eq!(comes_true(&mut world, &present(&seed()), what), writes, "{what}");
    }
}
