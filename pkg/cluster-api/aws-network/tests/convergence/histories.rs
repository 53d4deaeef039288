//! Random clusters, faults, delays, stale reads and lost statuses: whatever happens, the end is the
//! same.

use aws_fixtures::{absent, load_balancer, present, seed};
use aws_network::{BastionSpec, Dialect, LoadBalancerKind, Memory, Rest, Scheme, Spec};
use cloud_double::{Nature, differences, inventory};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::drift::DAMAGES;
use crate::driver::{Fault, World};
use crate::scenes::MODES;

prop_compose! {
    fn specs()(
        zones in 1_usize..=3,
        mode in prop::sample::select(&MODES[..]),
        kind in prop_oneof![
            Just(None), Just(Some(LoadBalancerKind::Classic)), Just(Some(LoadBalancerKind::Network))
        ],
        internal in any::<bool>(),
        has_bastion in any::<bool>(),
        ipv6 in any::<bool>(),
        legacy in any::<bool>(),
    ) -> Spec {
        let mut spec = seed();
        spec.subnets.truncate(2 * zones);
        spec.ipv6 = ipv6;
        spec.subnets.iter_mut().for_each(|subnet| subnet.is_ipv6 = ipv6);
        spec.nat_mode = mode;
        spec.dialect = if legacy { Dialect::V1Alpha2 } else { Dialect::V1Beta2 };
        spec.load_balancer = kind.map(load_balancer);
        if let Some(balancer) = spec.load_balancer.as_mut().filter(|_| internal) {
            balancer.scheme = Scheme::Internal;
        }
        spec.bastion = has_bastion.then(BastionSpec::default);
        spec
    }
}

prop_compose! {
    pub(crate) fn natures()(slow in prop_oneof![Just(0_u64), 1_u64..90], drain in prop_oneof![Just(0_u64), 1_u64..60],
        lag in prop_oneof![Just(0_u64), 1_u64..=20], failing_nats in 0_u32..3) -> Nature {
        Nature { slow, drain, lag, failing_nats }
    }
}

fn faults() -> impl Strategy<Value = Vec<(usize, Fault)>> {
    prop::collection::vec((0_usize..60, prop::sample::select(Fault::ALL.to_vec())), 0..5)
}

/// The final inventory of a cluster without faults.
fn without_trouble(spec: &Spec) -> Vec<String> {
    let mut world = World::new(Nature::PROMPT, 0);
    let (reconciliation, rest) = world.run(&present(spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    inventory(&world.cloud)
}

fn of(faults: &[(usize, Fault)]) -> impl FnMut(usize) -> Option<Fault> {
    let faults = faults.to_vec();
    move |sent| faults.iter().find(|(at, _)| *at == sent).map(|(_, fault)| *fault)
}

/// Fixed histories on every machine, so that no test fails by chance. PROPTEST_RNG_SEED, and with
/// it PROPTEST_CASES, look for others.
pub(crate) fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    if std::env::var_os("PROPTEST_RNG_SEED").is_some() {
        default
    } else {
        ProptestConfig { cases: 64, rng_seed: RngSeed::Fixed(1), ..default }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_history_ends_as_the_one_without_trouble_and_a_second_pass_writes_nothing(
        spec in specs(), nature in natures(), seed: u64, making in faults(), ending in faults(),
        status_is_lost: bool,
    ) {
        let wanted = without_trouble(&spec);
        let mut world = World::new(nature, seed);
        let (reconciliation, rest) = world.run(&present(&spec), &mut of(&making));
        prop_assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
        // rule:intent-before-unprotected-create
        prop_assert_eq!((world.cloud.vpcs.ever(), world.cloud.gateways.ever()), (1, 1), "made twice");
        let addresses = wanted.iter().filter(|line| line.starts_with("eip")).count();
        prop_assert_eq!(world.cloud.addresses.ever(), addresses, "allocated twice");
        world.cloud.advance(3600);
        world.run_later(&present(&spec));
        prop_assert_eq!(differences(&inventory(&world.cloud), &wanted), Vec::<String>::new());
        world.run_later(&present(&spec));
        prop_assert!(world.writes.is_empty(), "{:#?}", world.writes);
        if status_is_lost {
            world.memory = Memory::default();
        }
        let (reconciliation, rest) = world.run(&absent(&spec), &mut of(&ending));
        prop_assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
        prop_assert_eq!(inventory(&world.cloud), Vec::<String>::new());
    }

    #[test]
    fn a_change_of_mind_in_the_middle_ends_as_the_last_word(
        first in specs(), mode in prop::sample::select(&MODES[..]),
        nature in natures(), seed: u64, point in 0_usize..60, making in faults(),
    ) {
        let mut last = first.clone();
        last.nat_mode = mode;
        // Without a zone, a single one stays where it was made.
        last.nat_zone = Some("us-east-2a".to_owned());
        let wanted = without_trouble(&last);
        let mut world = World::new(nature, seed);
        world.run_until_crash(&present(&first), point);
        let (reconciliation, rest) = world.run(&present(&last), &mut of(&making));
        prop_assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
        world.cloud.advance(3600);
        world.run_later(&present(&last));
        prop_assert_eq!(differences(&inventory(&world.cloud), &wanted), Vec::<String>::new());
        world.run_until_crash(&absent(&last), point);
        let (reconciliation, rest) = world.run(&absent(&last), &mut |_| None);
        prop_assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
        prop_assert_eq!(inventory(&world.cloud), Vec::<String>::new());
    }

    #[test]
    fn from_any_state_the_cluster_becomes_what_it_shall_be_and_nothing_else_is_touched(
        damages in prop::collection::btree_set(0..DAMAGES.len(), 0..8), nature in natures(), seed: u64,
        status_is_lost: bool,
    ) {
        let spec = aws_fixtures::seed();
        let mut world = World::new(Nature::PROMPT, seed);
        world.run(&present(&spec), &mut |_| None);
        let wanted = inventory(&world.cloud);
        for damage in damages {
            (DAMAGES[damage].2)(&mut world.cloud);
        }
        // Without a status, a VPC that has lost its tags has no owner.
        let has_tags = world.cloud.vpcs.all().iter().all(|vpc| !vpc.tags.is_empty());
        if status_is_lost && has_tags {
            world.memory = Memory::default();
        }
        world.cloud.nature = nature;
        world.cloud.advance(3600);
        let (reconciliation, rest) = world.run_later(&present(&spec));
        prop_assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
        world.cloud.advance(3600);
        world.run_later(&present(&spec));
        prop_assert_eq!(differences(&inventory(&world.cloud), &wanted), Vec::<String>::new());
        world.run_later(&present(&spec));
        prop_assert!(world.writes.is_empty(), "{:#?}", world.writes);
    }
}
