//! What users of upstream's AWS provider have complained about, and what does not happen here. More
//! of it is in other files, each test with the numbers of its complaints: too many NAT gateways and
//! slow ones in `policies.rs`, throttling in `polls.rs`, quotas and blocked deletions in
//! `error_classes.rs`, objects that are deleted at once or cannot be in `tests/e2e/cluster_api`,
//! and what needs no AWS in the crate `aws-network`.

use aws_fixtures::{absent, identity, present, with_nats};
use aws_network::{
    Action, Answer, Identity, NAT_ZONE_TAG, NatGateway, NatMode, Outcome, Query, ROLE_TAG, Reply,
    Rest, Route, RouteTable, Scope, SecurityGroup, Spec, Subnet, SubnetSpec, Tags, Target,
};
use roxmltree::Document;

use crate::inventory::{differences, inventory};
use crate::totals::totals;
use crate::world::{REGION, World};

/// The text of the first element of a name in an answer.
pub(crate) fn text(answer: &str, name: &str) -> String {
    let document = Document::parse(answer).unwrap();
    let mut named = document.descendants().filter(|node| node.tag_name().name() == name);
    let found = named.next().and_then(|node| node.text());
    found.unwrap_or_else(|| panic!("no {name} in {answer}")).to_owned()
}

/// A call that is not ours.
async fn another_client(world: &World, parameters: &[(&str, &str)]) -> String {
    world.proxy.upstream().ec2(REGION, parameters).await
}

async fn nat_gateways(world: &World) -> Vec<NatGateway> {
    let reply = world.executor().read(&Query::NatGateways(Scope::Tagged)).await.unwrap();
    let Reply::NatGateways(found) = reply else { panic!("no NAT gateways") };
    found.into_iter().filter(|nat| !nat.is_gone()).collect()
}

async fn tables(world: &World) -> Vec<RouteTable> {
    let reply = world.executor().read(&Query::RouteTables(Scope::Tagged)).await.unwrap();
    let Reply::RouteTables(found) = reply else { panic!("no route tables") };
    found
}

async fn subnets(world: &World) -> Vec<Subnet> {
    let reply = world.executor().read(&Query::Subnets(Scope::Tagged)).await.unwrap();
    let Reply::Subnets(found) = reply else { panic!("no subnets") };
    found
}

/// Carries out a write that no plan has asked for.
async fn write(world: &World, action: &Action) -> Answer {
    let soon = tokio::time::Instant::now() + tests::PATIENCE;
    match world.executor().write(action, soon).await {
        Outcome::Done(answer) => answer,
        other => panic!("{action}: {other:?}"),
    }
}

async fn group(world: &World, end: &str) -> SecurityGroup {
    let reply = world.executor().read(&Query::SecurityGroups(Scope::Tagged)).await.unwrap();
    let Reply::SecurityGroups(found) = reply else { panic!("no groups") };
    found.into_iter().find(|group| group.name.ends_with(end)).unwrap()
}

/// Half an hour after another client has changed something, the cluster is as it was. The writes that it
/// took.
async fn mended(world: &World, spec: &Spec, wanted: &[String]) -> Vec<String> {
    let (reconciliation, rest) = world.run_later(&present(spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let writes = world.writes();
    assert_eq!(differences(&inventory(world).await, wanted), Vec::<String>::new());
    world.run_later(&present(spec)).await;
    assert_eq!(world.writes(), Vec::<String>::new());
    writes
}

/// cluster-api-provider-aws#1752
#[tokio::test(flavor = "multi_thread")]
async fn a_nat_gateway_that_fails_is_replaced_with_the_same_address() {
    let Some(world) = World::new().await else { return };
    let before = totals(&world).await;
    let spec = with_nats(NatMode::PerZone);
    world.proxy.nats_pending_for(1);
    world.proxy.nats_fail(1);
    let (reconciliation, rest) = world.run(&present(&spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let count = |name: &str| world.actions().iter().filter(|action| *action == name).count();
    assert_eq!((count("AllocateAddress"), count("ReleaseAddress")), (3, 0));
    assert_eq!((count("CreateNatGateway"), count("DeleteNatGateway")), (4, 1));
    assert_eq!(nat_gateways(&world).await.len(), 3);
    world.run_later(&absent(&spec)).await;
    assert_eq!(totals(&world).await, before);
}

/// cluster-api-provider-aws#791, #1413, #6047
#[tokio::test(flavor = "multi_thread")]
async fn routes_that_are_lost_or_lead_to_what_is_gone_come_back() {
    let Some(world) = World::new().await else { return };
    let spec = with_nats(NatMode::PerZone);
    world.run(&present(&spec)).await;
    let wanted = inventory(&world).await;

    let all = tables(&world).await;
    let leads_to_nat = |route: &Route| matches!(route.target, Target::NatGateway(_));
    let table = all.iter().find(|table| table.routes.iter().any(leads_to_nat)).unwrap();
    let lost = ("RouteTableId", table.id.as_str());
    another_client(
        &world,
        &[("Action", "DeleteRoute"), lost, ("DestinationCidrBlock", "0.0.0.0/0")],
    )
    .await;
    assert_eq!(mended(&world, &spec, &wanted).await, ["CreateRoute"]);

    let lost = nat_gateways(&world).await.remove(0);
    let zone = lost.tags[NAT_ZONE_TAG].clone();
    let delete = Action::DeleteNatGateway { nat_gateway: lost.id.clone() };
    write(&world, &delete).await;
    let writes = mended(&world, &spec, &wanted).await;
    assert_eq!(writes, ["CreateNatGateway", "ReplaceRoute"]);
    let new = nat_gateways(&world).await.into_iter().find(|nat| nat.tags[NAT_ZONE_TAG] == zone);
    assert_eq!(new.unwrap().allocations, lost.allocations, "the address stays in allow-lists");
}

/// cluster-api-provider-aws#2794, #2795: a rule with another description is the same rule.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_somebody_describes_otherwise_is_not_taken_away_meanwhile() {
    let Some(world) = World::new().await else { return };
    let spec = with_nats(NatMode::Single);
    world.run(&present(&spec)).await;
    let wanted = inventory(&world).await;
    let id = group(&world, "-apiserver-lb").await.id;
    let update = [
        ("Action", "UpdateSecurityGroupRuleDescriptionsIngress"),
        ("GroupId", &id),
        ("IpPermissions.1.IpProtocol", "tcp"),
        ("IpPermissions.1.FromPort", "6443"),
        ("IpPermissions.1.ToPort", "6443"),
        ("IpPermissions.1.IpRanges.1.CidrIp", "0.0.0.0/0"),
        ("IpPermissions.1.IpRanges.1.Description", "else"),
    ];
    another_client(&world, &update).await;
    assert_eq!(
        mended(&world, &spec, &wanted).await,
        ["UpdateSecurityGroupRuleDescriptionsIngress"]
    );
}

/// cluster-api-provider-aws#969, #4120, #5684
#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_of_one_name_do_not_touch_each_other() {
    let Some(world) = World::new().await else { return };
    // One name in a region is one load balancer, so neither has one here.
    let theirs = Spec { load_balancer: None, ..with_nats(NatMode::Single) };
    let other = Identity { owner_id: "another-owner".to_owned(), ..identity() };
    let ours = Spec { identity: other, ..theirs.clone() };
    world.run(&present(&theirs)).await;
    let before = (inventory(&world).await, totals(&world).await);

    world.turn_to(&ours.identity);
    let (reconciliation, rest) = world.run(&present(&ours)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let both = totals(&world).await;
    assert_eq!((both["Vpcs"], both["NatGateways"]), (before.1["Vpcs"] + 1, 2));
    let (reconciliation, rest) = world.run_later(&absent(&ours)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert_eq!((inventory(&world).await, totals(&world).await), before);
}

/// cluster-api-provider-aws#1755
#[tokio::test(flavor = "multi_thread")]
async fn in_a_vpc_of_others_groups_and_the_load_balancer_are_all_that_comes_and_goes() {
    let Some(world) = World::new().await else { return };
    let answer =
        another_client(&world, &[("Action", "CreateVpc"), ("CidrBlock", "10.1.0.0/16")]).await;
    let vpc = text(&answer, "vpcId");
    let mut subnets = Vec::new();
    for (cidr, role) in [("10.1.1.0/24", "public"), ("10.1.2.0/24", "private")] {
        let create = [("Action", "CreateSubnet"), ("VpcId", vpc.as_str()), ("CidrBlock", cidr)];
        let id = text(&another_client(&world, &create).await, "subnetId");
        let tag =
            [("Action", "CreateTags"), ("ResourceId.1", id.as_str()), ("Tag.1.Key", ROLE_TAG)];
        another_client(&world, &[&tag[..], &[("Tag.1.Value", role)]].concat()).await;
        subnets.push(SubnetSpec { id: Some(id), ..SubnetSpec::default() });
    }
    another_client(&world, &[("Action", "AllocateAddress"), ("Domain", "vpc")]).await;
    let answer = another_client(&world, &[("Action", "CreateInternetGateway")]).await;
    let gateway = ("InternetGatewayId", &*text(&answer, "internetGatewayId"));
    another_client(&world, &[("Action", "AttachInternetGateway"), gateway, ("VpcId", &vpc)]).await;
    let before = totals(&world).await;

    let spec = Spec { vpc_id: Some(vpc), vpc_cidr: None, subnets, ..with_nats(NatMode::PerZone) };
    let (reconciliation, rest) = world.run(&present(&spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let made = totals(&world).await;
    let changed: Vec<_> = made.keys().filter(|kind| made[*kind] != before[*kind]).collect();
    assert_eq!(changed, ["ClassicLoadBalancers", "SecurityGroups"]);
    let (reconciliation, rest) = world.run_later(&absent(&spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert_eq!(totals(&world).await, before);
}

/// cluster-api-provider-aws#1846, #3810: what the cloud provider has made for Services would hold
/// subnets and groups.
#[tokio::test(flavor = "multi_thread")]
async fn load_balancers_of_services_go_with_their_cluster() {
    let Some(world) = World::new().await else { return };
    let before = totals(&world).await;
    let spec = with_nats(NatMode::Single);
    world.run(&present(&spec)).await;
    let subnets = subnets(&world).await;
    let node = group(&world, "-node").await.id;
    let create = [
        ("Action", "CreateLoadBalancer"),
        ("LoadBalancerName", "a1b2c3"),
        ("Listeners.member.1.Protocol", "TCP"),
        ("Listeners.member.1.LoadBalancerPort", "80"),
        ("Listeners.member.1.InstancePort", "30080"),
        ("Subnets.member.1", &subnets[0].id),
        ("SecurityGroups.member.1", &node),
        ("Tags.member.1.Key", "kubernetes.io/cluster/testnetwork3"),
        ("Tags.member.1.Value", "owned"),
        ("Tags.member.2.Key", "kubernetes.io/service-name"),
        ("Tags.member.2.Value", "default/web"),
    ];
    world.proxy.upstream().elb(REGION, &create).await;
    let (reconciliation, rest) = world.run_later(&absent(&spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert_eq!(totals(&world).await, before);
}

/// cluster-api-provider-aws#986, #1185, #2227
#[tokio::test(flavor = "multi_thread")]
async fn what_neither_the_spec_nor_the_status_names_is_deleted_too() {
    // rule:deletion-follows-tags
    let Some(world) = World::new().await else { return };
    let before = totals(&world).await;
    let spec = with_nats(NatMode::PerZone);
    world.run(&present(&spec)).await;
    // A NAT gateway in a subnet in which no spec wants one, and an address that a crash has left.
    let Identity { owner_tag, owner_id, .. } = identity();
    let tags = Tags::from([(identity().cluster_tag(), "owned".to_owned()), (owner_tag, owner_id)]);
    let zone = "us-east-2a".to_owned();
    let allocate = Action::AllocateAddress { zone: zone.clone(), tags: tags.clone() };
    let allocation = write(&world, &allocate).await.id;
    let private = subnets(&world).await.into_iter().find(|subnet| !subnet.map_public_ip).unwrap();
    let create = Action::CreateNatGateway {
        vpc: private.vpc,
        zone,
        subnet: private.id,
        allocation,
        attempt: 0,
        token: "another".to_owned(),
        tags,
    };
    write(&world, &create).await;
    write(&world, &allocate).await;
    assert_eq!(nat_gateways(&world).await.len(), 4);

    world.lose_status();
    let forgotten = Spec { subnets: Vec::new(), vpc_cidr: None, ..spec };
    let (reconciliation, rest) = world.run_later(&absent(&forgotten)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert_eq!(totals(&world).await, before);
}
