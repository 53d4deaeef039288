//! A live change of the NAT policy, slow NAT gateways, and a load balancer of the second
//! generation.

use aws_fixtures::{absent, load_balancer, present, second_load_balancer, with_nats};
use aws_network::{ListenerSpec, LoadBalancerKind, NatMode, Part, Reason, Rest, Scheme, Spec};
use tests::aws_proxy::{Fate, Pace};

use crate::inventory::inventory;
use crate::totals::totals;
use crate::world::World;

fn count(lines: &[String], start: &str) -> usize {
    lines.iter().filter(|line| line.starts_with(start)).count()
}

/// cluster-api-provider-aws#1323, #2118: three NAT gateways are dear, and not everybody needs them.
#[tokio::test(flavor = "multi_thread")]
async fn the_nat_policy_changes_live_and_no_route_leads_nowhere() {
    let Some(world) = World::new().await else { return };
    let before = totals(&world).await;
    let mut spec = with_nats(NatMode::PerZone);
    for (mode, nats) in
        [(NatMode::PerZone, 3), (NatMode::Single, 1), (NatMode::PerZone, 3), (NatMode::None, 0)]
    {
        spec.nat_mode = mode;
        let (reconciliation, rest) = world.run_later(&present(&spec)).await;
        assert_eq!(rest, Rest::Reached, "{mode:?}: {:#?}", reconciliation.problems());
        let lines = inventory(&world).await;
        assert_eq!((count(&lines, "nat"), count(&lines, "eip")), (nats, nats), "{mode:?}");
        let routes = lines.iter().filter(|line| line.contains("to nat ")).count();
        assert_eq!(routes, if nats == 0 { 0 } else { 3 }, "{mode:?}: {lines:#?}");
        assert!(!lines.iter().any(|line| line.contains("unknown")), "{mode:?}: {lines:#?}");
        let writes = world.writes();
        let place = |name: &str| writes.iter().rposition(|write| write == name);
        let first_delete = writes.iter().position(|write| write == "DeleteNatGateway");
        if let (Some(routes), Some(delete)) = (place("ReplaceRoute"), first_delete) {
            assert!(routes < delete, "{mode:?}: routes move before a NAT gateway ends: {writes:?}");
        }
    }
    world.run_later(&absent(&spec)).await;
    assert_eq!(totals(&world).await, before);
}

/// cluster-api-provider-aws#1792, #2263
#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_their_routes_waits_for_slow_nat_gateways() {
    let Some(world) = World::new().await else { return };
    world.proxy.nats_pending_for(4);
    let (_, rest) = world.run(&present(&with_nats(NatMode::PerZone))).await;
    assert_eq!(rest, Rest::Reached);
    let actions = world.actions();
    let polls = actions.iter().filter(|name| *name == "DescribeNatGateways").count();
    assert!(polls <= 8, "{polls} polls");
    assert!(actions.len() <= 58 + 8, "{} calls", actions.len());
    let place = |name: &str| actions.iter().rposition(|action| action == name).unwrap();
    assert!(place("CreateLoadBalancer") < place("CreateRoute"), "{actions:?}");
}

/// cluster-api-provider-aws#5856, #5961: when one of several concurrent NAT gateways fails, the
/// product reports this failure and still creates the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_nat_gateway_is_reported_and_delays_no_other() {
    let Some(world) = World::new().await else { return };
    world.proxy.set_pace(Pace::PROMPT);
    let goal = present(&with_nats(NatMode::PerZone));
    world.proxy.decide(|_, call| {
        let is_of_zone = call.parameters.values().any(|value| value == "us-east-2b");
        if call.action == "CreateNatGateway" && is_of_zone {
            Fate::Refuse("NatGatewayLimitExceeded")
        } else {
            Fate::Pass
        }
    });
    let (reconciliation, rest) = world.attempt(&goal).await;
    assert!(matches!(rest, Rest::For(_)), "{rest:?}: it is tried again");
    let problems = reconciliation.problems();
    let reported = problems.iter().filter(|problem| problem.part == Part::NatGateways);
    let reported: Vec<_> = reported.map(|problem| (problem.reason, &*problem.message)).collect();
    let message = "AWS refuses CreateNatGateway for us-east-2b: NatGatewayLimitExceeded";
    assert_eq!(reported, [(Reason::QuotaExceeded, message)]);
    let lines = inventory(&world).await;
    let routes = lines.iter().filter(|line| line.contains("to nat ")).count();
    assert_eq!((count(&lines, "nat"), routes), (2, 2), "{lines:#?}");

    world.proxy.forget();
    assert_eq!(world.run(&goal).await.1, Rest::Reached);
    assert_eq!(count(&inventory(&world).await, "nat"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_load_balancer_is_created_reconciled_and_deleted() {
    let Some(world) = World::new().await else { return };
    let before = totals(&world).await;
    let mut spec = with_nats(NatMode::PerZone);
    spec.load_balancer = Some(load_balancer(LoadBalancerKind::Network));
    let (reconciliation, rest) = world.run(&present(&spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let lines = inventory(&world).await;
    assert_eq!((count(&lines, "nlb"), count(&lines, "target group")), (1, 1), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("nlb") && line.contains("6443 to ")));

    world.run_later(&present(&spec)).await;
    assert_eq!(world.writes(), Vec::<String>::new());
    let (reconciliation, rest) = world.run_later(&absent(&spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert_eq!(totals(&world).await, before);
}

/// Each additional listener comes, is checked by another path, and goes, while the cluster lives.
#[tokio::test(flavor = "multi_thread")]
async fn additional_listeners_of_a_network_load_balancer_follow_the_spec() {
    let Some(world) = World::new().await else { return };
    let before = totals(&world).await;
    let with = |listeners: Vec<ListenerSpec>| {
        let mut balancer = load_balancer(LoadBalancerKind::Network);
        balancer.listeners = listeners;
        Spec { load_balancer: Some(balancer), ..with_nats(NatMode::None) }
    };
    let listener = |port: u16| ListenerSpec { port, ..ListenerSpec::default() };
    let mut checked = listener(8443);
    checked.health_check.protocol = Some("HTTP".to_owned());
    let mut last = with(Vec::new());
    for (listeners, writes) in [
        (vec![listener(8443)], None),
        (vec![listener(8443), listener(9345)], Some(4)),
        (vec![checked, listener(9345)], Some(1)),
        (vec![listener(9345)], Some(3)),
        (Vec::new(), Some(3)),
    ] {
        last = with(listeners.clone());
        let (reconciliation, rest) = world.run_later(&present(&last)).await;
        assert_eq!(rest, Rest::Reached, "{listeners:?}: {:#?}", reconciliation.problems());
        let made = world.writes();
        assert!(writes.is_none_or(|writes| made.len() == writes), "{listeners:?}: {made:?}");
        let lines = inventory(&world).await;
        let balancer = lines.iter().find(|line| line.starts_with("nlb")).unwrap();
        let found = |port: u16| balancer.contains(&format!("\"{port} to "));
        for port in [8443, 9345] {
            let is_wanted = listeners.iter().any(|it| it.port == port);
            assert_eq!(found(port), is_wanted, "{listeners:?}: {balancer}");
        }
        assert!(found(6443), "{balancer}");
        world.run_later(&present(&last)).await;
        assert_eq!(world.writes(), Vec::<String>::new(), "{listeners:?}");
    }
    world.run_later(&absent(&last)).await;
    assert_eq!(totals(&world).await, before);
}

/// The process dies at each kind of call that makes the second one.
#[tokio::test(flavor = "multi_thread")]
async fn a_secondary_load_balancer_is_created_through_crashes_kept_and_deleted() {
    let Some(world) = World::new().await else { return };
    let before = totals(&world).await;
    for kind in [LoadBalancerKind::Classic, LoadBalancerKind::Network] {
        let alone = Spec { load_balancer: Some(load_balancer(kind)), ..with_nats(NatMode::None) };
        let both = Spec {
            secondary_load_balancer: Some(Box::new(second_load_balancer())),
            ..alone.clone()
        };
        world.run_later(&present(&alone)).await;
        world.proxy.forget();
        let left = world.hit_first(&[
            ("CreateLoadBalancer", Fate::CrashAfter),
            ("CreateTargetGroup", Fate::AnswerLost),
            ("CreateListener", Fate::CrashAfter),
        ]);
        world.advance(1800);
        let (reconciliation, rest) = world.run(&present(&both)).await;
        assert_eq!(rest, Rest::Reached, "{kind:?}: {:#?}", reconciliation.problems());
        assert!(left.lock().is_empty(), "{kind:?}: {left:?}");
        let balancers: Vec<_> = reconciliation
            .observed()
            .network
            .all()
            .iter()
            .map(|it| (it.name.clone(), it.scheme, it.listeners.len()))
            .collect();
        assert!(balancers.contains(&("second".to_owned(), Scheme::Internal, 2)), "{balancers:?}");
        assert_eq!(balancers.len(), if kind == LoadBalancerKind::Network { 2 } else { 1 });
        // What a crash has kept from being set is repaired by the next deep look.
        world.advance(3600);
        world.run_later(&present(&both)).await;
        world.run_later(&present(&both)).await;
        assert_eq!(world.writes(), Vec::<String>::new(), "{kind:?}");
        world.run_later(&absent(&both)).await;
        assert_eq!(totals(&world).await, before, "{kind:?}");
        world.advance(3600);
    }
}
