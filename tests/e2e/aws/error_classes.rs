//! Errors of AWS, class by class, met on the way to a cluster and to its end.

use aws_fixtures::{absent, load_balancer, present, with_nats};
use aws_network::{Goal, NatMode, Part, Problem, Reason, Rest, Spec, conditions, is_ready};
use tests::aws_proxy::{Fate, Pace};

use crate::inventory::{differences, inventory};
use crate::totals::{Totals, totals};
use crate::world::World;

const VIOLATION: Fate = Fate::Refuse("DependencyViolation");

/// The result of a create without errors.
struct Smooth {
    spec: Spec,
    inventory: Vec<String>,
    before: Totals,
    after: Totals,
}

impl Smooth {
    async fn new(world: &World, spec: Spec) -> Self {
        let before = totals(world).await;
        world.run(&present(&spec)).await;
        let (inventory, after) = (inventory(world).await, totals(world).await);
        world.reset().await;
        Self { spec, inventory, before, after }
    }
}

/// The first call of each name meets its fate, and the cluster is as it would be without, and stays
/// so.
async fn made_all_the_same(spec: Spec, fates: &[(&'static str, Fate)]) {
    let Some(world) = World::new().await else { return };
    let smooth = Smooth::new(&world, spec).await;
    let left = world.hit_first(fates);
    let (reconciliation, rest) = world.run(&present(&smooth.spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert!(left.lock().is_empty(), "never called: {:?}", left.lock());
    let wrong = differences(&inventory(&world).await, &smooth.inventory);
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(totals(&world).await, smooth.after, "made twice");
    world.run_later(&present(&smooth.spec)).await;
    assert_eq!(world.writes(), Vec::<String>::new());
}

/// The first call of each name meets its fate, and nothing is left in the end.
async fn deleted_all_the_same(spec: Spec, fates: &[(&'static str, Fate)]) {
    let Some(world) = World::new().await else { return };
    let smooth = Smooth::new(&world, spec).await;
    world.run(&present(&smooth.spec)).await;
    world.advance(1800);
    let left = world.hit_first(fates);
    let (reconciliation, rest) = world.run(&absent(&smooth.spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert!(left.lock().is_empty(), "never called: {:?}", left.lock());
    assert_eq!(totals(&world).await, smooth.before, "something is left");
}

fn with_network_balancer() -> Spec {
    let balancer = Some(load_balancer(aws_network::LoadBalancerKind::Network));
    Spec { load_balancer: balancer, ..with_nats(NatMode::PerZone) }
}

fn problem_of(problems: Vec<Problem>, part: Part) -> Problem {
    let found = problems.iter().find(|problem| problem.part == part).cloned();
    found.unwrap_or_else(|| panic!("no problem of {part:?} among {problems:#?}"))
}

const GONE: [(&str, &str); 12] = [
    ("DeleteLoadBalancer", "LoadBalancerNotFound"),
    ("TerminateInstances", "InvalidInstanceID.NotFound"),
    ("DeleteNatGateway", "NatGatewayNotFound"),
    ("RevokeSecurityGroupIngress", "InvalidPermission.NotFound"),
    ("DeleteSecurityGroup", "InvalidGroup.NotFound"),
    ("ReleaseAddress", "InvalidAllocationID.NotFound"),
    ("DisassociateRouteTable", "InvalidAssociationID.NotFound"),
    ("DeleteRouteTable", "InvalidRouteTableID.NotFound"),
    ("DetachInternetGateway", "Gateway.NotAttached"),
    ("DeleteInternetGateway", "InvalidInternetGatewayID.NotFound"),
    ("DeleteSubnet", "InvalidSubnetID.NotFound"),
    ("DeleteVpc", "InvalidVpcID.NotFound"),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_when_it_is_to_be_deleted_is_success() {
    let fates = GONE.map(|(action, code)| (action, Fate::DoneAndRefused(code)));
    deleted_all_the_same(with_nats(NatMode::PerZone), &fates).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_be_gone_and_is_seen_again_is_deleted_again() {
    let fates = GONE.map(|(action, code)| (action, Fate::Refuse(code)));
    deleted_all_the_same(with_nats(NatMode::PerZone), &fates).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_exists_already_is_found_and_used() {
    let fates = [
        ("AttachInternetGateway", "Resource.AlreadyAssociated"),
        ("AssociateRouteTable", "Resource.AlreadyAssociated"),
        ("CreateRoute", "RouteAlreadyExists"),
        ("CreateSecurityGroup", "InvalidGroup.Duplicate"),
        ("AuthorizeSecurityGroupIngress", "InvalidPermission.Duplicate"),
        ("CreateSubnet", "InvalidSubnet.Conflict"),
        ("CreateLoadBalancer", "DuplicateLoadBalancerName"),
    ];
    let fates = fates.map(|(action, code)| (action, Fate::DoneAndRefused(code)));
    made_all_the_same(with_nats(NatMode::PerZone), &fates).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_load_balancer_that_exists_already_is_found_and_used() {
    let fates = [
        ("CreateLoadBalancer", "DuplicateLoadBalancerName"),
        ("CreateTargetGroup", "DuplicateTargetGroupName"),
        ("CreateListener", "DuplicateListener"),
    ];
    let fates = fates.map(|(action, code)| (action, Fate::DoneAndRefused(code)));
    made_all_the_same(with_network_balancer(), &fates).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_just_made_and_is_not_known_everywhere_is_waited_for_and_not_made_again() {
    let fates = [
        ("CreateSubnet", "InvalidVpcID.NotFound"),
        ("ModifySubnetAttribute", "InvalidSubnetID.NotFound"),
        ("AttachInternetGateway", "InvalidInternetGatewayID.NotFound"),
        ("CreateNatGateway", "InvalidElasticIpID.NotFound"),
        ("CreateRoute", "InvalidGatewayID.NotFound"),
        ("AssociateRouteTable", "InvalidRouteTableID.NotFound"),
        ("AuthorizeSecurityGroupIngress", "InvalidGroup.NotFound"),
        ("RunInstances", "InvalidSubnetID.NotFound"),
        ("CreateLoadBalancer", "InvalidSubnet"),
    ];
    let fates = fates.map(|(action, code)| (action, Fate::Refuse(code)));
    made_all_the_same(with_nats(NatMode::PerZone), &fates).await;
}

/// cluster-api-provider-aws#1846, #4985
#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_use_is_deleted_later() {
    let fates = [
        ("DeleteSecurityGroup", VIOLATION),
        ("DeleteSubnet", VIOLATION),
        ("DetachInternetGateway", VIOLATION),
        ("DeleteRouteTable", VIOLATION),
        ("DeleteVpc", VIOLATION),
        ("DeleteInternetGateway", Fate::Refuse("IncorrectState")),
        ("ReleaseAddress", Fate::Refuse("AuthFailure")),
    ];
    deleted_all_the_same(with_nats(NatMode::PerZone), &fates).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_group_in_use_is_deleted_later() {
    let fates = [("DeleteTargetGroup", Fate::Refuse("ResourceInUse"))];
    deleted_all_the_same(with_network_balancer(), &fates).await;
}

/// cluster-api-provider-aws#3810
#[tokio::test(flavor = "multi_thread")]
async fn what_blocks_a_deletion_for_five_minutes_is_named() {
    let Some(world) = World::new().await else { return };
    let spec = with_nats(NatMode::PerZone);
    world.run(&present(&spec)).await;
    world.advance(1800);
    world.hit_all(&[("DeleteSubnet", VIOLATION)]);
    let (reconciliation, rest) = world.attempts(&absent(&spec), 15).await;
    assert!(matches!(rest, Rest::For(_)), "{rest:?}: it is tried again");
    let said = format!("{:?}", reconciliation.problems());
    assert!(said.contains("eni-") && said.contains("DependencyViolation"), "{said}");
    world.proxy.forget();
    let (_, rest) = world.run(&absent(&spec)).await;
    assert_eq!((rest, inventory(&world).await), (Rest::Reached, Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttle_is_reported_after_three_throttled_attempts() {
    let Some(world) = World::new().await else { return };
    let spec = with_nats(NatMode::PerZone);
    world.hit_all(&[("CreateSecurityGroup", Fate::RefuseWith(503, "RequestLimitExceeded"))]);
    let (reconciliation, rest) = world.attempt(&present(&spec)).await;
    assert!(matches!(rest, Rest::For(_)), "{rest:?}");
    assert_eq!(
        problem_of(reconciliation.problems(), Part::SecurityGroups).reason,
        Reason::Throttled
    );
    world.proxy.forget();
    assert_eq!(world.run(&present(&spec)).await.1, Rest::Reached);
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_of_aws_itself_are_got_over_and_nothing_is_made_twice() {
    let fates = [
        ("CreateVpc", 500, "InternalError"),
        ("CreateSubnet", 503, "Unavailable"),
        ("CreateInternetGateway", 500, "InternalFailure"),
        ("AllocateAddress", 503, "ServiceUnavailable"),
        ("CreateNatGateway", 500, "InternalError"),
        ("CreateRouteTable", 502, ""),
        ("CreateSecurityGroup", 500, ""),
        ("RunInstances", 500, "InternalError"),
        ("CreateLoadBalancer", 500, "InternalFailure"),
        ("DescribeNatGateways", 503, "Unavailable"),
    ];
    let fates = fates.map(|(action, status, code)| (action, Fate::RefuseWith(status, code)));
    made_all_the_same(with_nats(NatMode::PerZone), &fates).await;
}

/// cluster-api-provider-aws#1808: many clusters share a region's few addresses.
#[tokio::test(flavor = "multi_thread")]
async fn a_quota_is_named_and_stops_only_what_needs_it() {
    let Some(world) = World::new().await else { return };
    let smooth = Smooth::new(&world, with_nats(NatMode::PerZone)).await;
    world.hit_all(&[
        ("AllocateAddress", Fate::Refuse("AddressLimitExceeded")),
        ("CreateLoadBalancer", Fate::Refuse("TooManyLoadBalancers")),
        ("RunInstances", Fate::Refuse("VcpuLimitExceeded")),
    ]);
    let (reconciliation, rest) = world.attempt(&present(&smooth.spec)).await;
    assert!(matches!(rest, Rest::For(_)), "{rest:?}: it is tried again");
    for (part, code) in [
        (Part::NatGateways, "AddressLimitExceeded"),
        (Part::LoadBalancer, "TooManyLoadBalancers"),
        (Part::Bastion, "VcpuLimitExceeded"),
    ] {
        let problem = problem_of(reconciliation.problems(), part);
        assert_eq!(problem.reason, Reason::QuotaExceeded, "{problem:?}");
        assert!(problem.message.contains(code), "{problem:?}");
    }
    let made = totals(&world).await;
    for kind in ["Vpcs", "Subnets", "InternetGateways", "RouteTables", "SecurityGroups"] {
        assert_eq!(made[kind], smooth.after[kind], "{kind} need none of these");
    }
    world.proxy.forget();
    assert_eq!(world.run(&present(&smooth.spec)).await.1, Rest::Reached);
    assert_eq!(totals(&world).await, smooth.after);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_is_named_with_its_action_and_stops_only_what_needs_it() {
    let Some(world) = World::new().await else { return };
    let smooth = Smooth::new(&world, with_nats(NatMode::PerZone)).await;
    world.proxy.forbid("ec2:CreateNatGateway");
    let (reconciliation, rest) = world.attempt(&present(&smooth.spec)).await;
    assert!(matches!(rest, Rest::For(_)), "{rest:?}: it is tried again");
    let problem = problem_of(reconciliation.problems(), Part::NatGateways);
    assert_eq!(problem.reason, Reason::PermissionDenied);
    assert!(problem.message.contains("CreateNatGateway"), "{problem:?}");
    assert_eq!(totals(&world).await["ClassicLoadBalancers"], 1, "it needs no NAT gateway");
    world.proxy.permit("ec2:CreateNatGateway");
    assert_eq!(world.run(&present(&smooth.spec)).await.1, Rest::Reached);
    assert_eq!(totals(&world).await, smooth.after);
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_of_a_create_need_the_right_to_tag() {
    let Some(world) = World::new().await else { return };
    world.proxy.forbid("ec2:CreateTags");
    let (reconciliation, _) = world.attempt(&present(&with_nats(NatMode::PerZone))).await;
    assert_eq!(problem_of(reconciliation.problems(), Part::Vpc).reason, Reason::PermissionDenied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_used_for_something_else_is_replaced_by_another() {
    let creates = ["CreateNatGateway", "CreateRouteTable", "RunInstances"];
    let fates = creates.map(|action| (action, Fate::Refuse("IdempotentParameterMismatch")));
    made_all_the_same(with_nats(NatMode::PerZone), &fates).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_problem_of_the_spec_is_reported_and_the_rest_is_created() {
    let Some(world) = World::new().await else { return };
    world.proxy.set_pace(Pace::PROMPT);
    world.hit_all(&[("RunInstances", Fate::Refuse("InvalidKeyPair.NotFound"))]);
    let goal = present(&with_nats(NatMode::PerZone));
    let (reconciliation, rest) = world.attempt(&goal).await;
    assert!(matches!(rest, Rest::For(seconds) if seconds >= 600), "{rest:?}: it is not hurried");
    let problem = problem_of(reconciliation.problems(), Part::Bastion);
    assert_eq!(problem.reason, Reason::InvalidConfiguration);
    let Goal::Present(desired) = &goal else { panic!("it shall be there") };
    let all = conditions(
        desired,
        reconciliation.observed(),
        reconciliation.plan(),
        &reconciliation.problems(),
    );
    assert!(is_ready(&all), "a cluster needs no bastion: {all:#?}");
}
