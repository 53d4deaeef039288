//! Clusters at rest that share their reads: one shared read shows of each cluster what its own reads show, and any
//! difference sends it back to its own reads.

use aws::{Judged, judge, run_pass};
use aws_fixtures::{dual_stack, identity, present, with_nats};
use aws_network::{Goal, Identity, NatMode, NatState, Observed, Reconciliation, Rest, Spec};
use tests::aws_proxy::{Fate, Pace};

use crate::world::{REGION, World};

/// Seconds between two looks at a cluster at rest.
const PERIOD: u64 = 600;
/// Seconds for which a shared read that failed is not repeated.
const FAILS_FOR: u64 = 60;

/// A cluster at rest.
struct Cluster {
    identity: Identity,
    goal: Goal,
    reconciliation: Reconciliation,
}

impl Cluster {
    async fn make(world: &World, name: &str, spec: Spec) -> Self {
        let (cluster, owner_id) = (name.to_owned(), format!("{name}-owner"));
        let identity = Identity { cluster, owner_id, ..identity() };
        let goal = present(&Spec { identity: identity.clone(), ..spec });
        let reconciliation = Reconciliation::new(goal.clone(), world.memory());
        let mut cluster = Self { identity, goal, reconciliation };
        cluster.read_alone(world).await;
        cluster
    }

    /// Passes with reads of its own, until it rests.
    async fn read_alone(&mut self, world: &World) {
        world.turn_to(&self.identity);
        let (reconciliation, rest) = Box::pin(world.run(&self.goal)).await;
        assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
        self.reconciliation = reconciliation;
    }

    async fn judge(&mut self, world: &World) -> Judged {
        world.turn_to(&self.identity);
        let mut resumed = self.reconciliation.clone();
        resumed.resume();
        let judged = Box::pin(judge(&resumed, &world.executor(), world)).await;
        if let Judged::AtRest(judged, _) = &judged {
            self.reconciliation = (**judged).clone();
        }
        judged
    }

    /// Whether a shared read shows no difference.
    async fn rests(&mut self, world: &World) -> bool {
        matches!(self.judge(world).await, Judged::AtRest(..))
    }

    /// What its own reads show now.
    async fn own_view(&self, world: &World) -> Observed {
        world.turn_to(&self.identity);
        let mut resumed = self.reconciliation.clone();
        resumed.resume();
        assert_eq!(run_pass(&mut resumed, &world.executor(), world).await, Rest::Reached);
        resumed.observed().clone()
    }
}

/// Two clusters at rest: one with a classic load balancer, one with IPv6 and a network load balancer.
async fn two(world: &World) -> [Cluster; 2] {
    world.proxy.set_pace(Pace::PROMPT);
    let plain = Cluster::make(world, "plain", with_nats(NatMode::Single)).await;
    let dual = Spec { nat_mode: NatMode::Single, ..dual_stack() };
    let mut both = [plain, Cluster::make(world, "dual", dual).await];
    for cluster in &mut both {
        cluster.read_alone(world).await;
    }
    both
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_read_shows_of_each_cluster_what_its_own_reads_show() {
    let Some(world) = World::new().await else { return };
    let mut both = two(&world).await;
    for _ in 0..2 {
        world.advance(PERIOD);
        world.proxy.forget();
        for cluster in &mut both {
            assert!(cluster.rests(&world).await, "{:#?}", cluster.identity);
        }
        let actions = world.actions();
        let reads = |action: &str| actions.iter().filter(|it| *it == action).count();
        for action in ["DescribeSubnets", "DescribeRouteTables", "DescribeSecurityGroups"] {
            assert_eq!(reads(action), 1, "{actions:?}");
        }
        assert_eq!(reads("DescribeEgressOnlyInternetGateways"), 1, "{actions:?}");
        // Load balancers of both generations, and target groups.
        assert_eq!((reads("DescribeLoadBalancers"), actions.len()), (2, 12), "{actions:?}");
        for cluster in &both {
            assert_eq!(*cluster.reconciliation.observed(), cluster.own_view(&world).await);
        }
    }
    // Both deep checks are due.
    world.advance(3600);
    assert!(both[0].rests(&world).await && both[1].rests(&world).await);
    world.advance(1);
    for (cluster, own) in both.iter_mut().zip([4, 8]) {
        world.advance(3600);
        world.proxy.forget();
        assert!(cluster.rests(&world).await);
        let actions = world.actions();
        println!("a deep check of {:?}: {} reads: {actions:?}", cluster.identity, actions.len());
        assert!(actions.len() <= 9 + own, "{actions:?}");
    }
}

type Call = Vec<(&'static str, String)>;

fn call(action: &str, parameters: &[(&'static str, &str)]) -> Call {
    let parameters = [&[("Action", action)], parameters].concat();
    parameters.into_iter().map(|(name, value)| (name, value.to_owned())).collect()
}

async fn carry_out(world: &World, calls: &[Call]) {
    for call in calls {
        // The proxy knows what a NAT gateway uses.
        let is_followed = ["DeleteNatGateway", "DeleteLoadBalancer"].contains(&&*call[0].1);
        let upstream = if is_followed { &world.proxy.itself() } else { world.proxy.upstream() };
        let call: Vec<_> = call.iter().map(|(name, value)| (*name, &**value)).collect();
        match call[1].0 {
            "LoadBalancerName" => upstream.elb(REGION, &call).await,
            "LoadBalancerArn" | "TargetGroupArn" => upstream.elbv2(REGION, &call).await,
            _ => upstream.ec2(REGION, &call).await,
        };
    }
}

/// What somebody does to a cluster, and what has to be undone before the controller can repair the rest.
type Damage = (Vec<Call>, Vec<Call>);

/// A resource of each kind of EC2 loses its name, or belongs to another cluster.
fn damages_of_tags(seen: &Observed, identity: &Identity) -> Vec<Damage> {
    let (tag, owner) = (identity.cluster_tag(), &identity.owner_tag);
    let mut ids = vec![&seen.vpcs.all()[0].id];
    macro_rules! of_ours {
        ($($kind:ident)*) => {$(
            ids.extend(seen.$kind.all().iter().find(|it| it.tags.contains_key(&tag)).map(|it| &it.id));
        )*};
    }
    of_ours!(subnets internet_gateways egress_only_gateways addresses nat_gateways route_tables security_groups);
    ids.extend(seen.bastions.all().iter().find(|it| it.is_live()).map(|it| &it.id));
    let unnamed = |id: &&String| {
        (vec![call("DeleteTags", &[("ResourceId.1", id), ("Tag.1.Key", "Name")])], Vec::new())
    };
    let owned = |id: &str, by: &str| {
        let tag = [("ResourceId.1", id), ("Tag.1.Key", owner), ("Tag.1.Value", by)];
        vec![call("CreateTags", &tag)]
    };
    let anothers = |id: &&String| (owned(id, "another-owner"), owned(id, &identity.owner_id));
    // A VPC keeps the gateways of others, and a NAT gateway the address of others.
    let stays = |id: &&&String| ["igw-", "eigw-", "eipalloc-"].iter().any(|it| id.starts_with(it));
    let changed = ids.iter().filter(|id| !stays(id)).map(anothers);
    ids.iter().map(unnamed).chain(changed).collect()
}

/// Something is gone, or another than it was.
fn damages_of_things(seen: &Observed, identity: &Identity) -> Vec<Damage> {
    let tag = identity.cluster_tag();
    let mut all = Vec::new();
    let table = seen.route_tables.all().iter().find(|it| it.tags.contains_key(&tag)).unwrap();
    let (of_table, away) = (("RouteTableId", &*table.id), ("DestinationCidrBlock", "0.0.0.0/0"));
    all.push(vec![call("DeleteRoute", &[of_table, away])]);
    let association = ("AssociationId", &*table.associations[0].id);
    let alone = call("DisassociateRouteTable", &[association]);
    all.push(vec![alone.clone()]);
    all.push(vec![alone, call("DeleteRouteTable", &[of_table])]);
    let public = seen.subnets.all().iter().find(|it| it.map_public_ip).unwrap();
    let private = ("MapPublicIpOnLaunch.Value", "false");
    all.push(vec![call("ModifySubnetAttribute", &[("SubnetId", &public.id), private])]);
    let bastion = seen.bastions.all().iter().find(|it| it.is_live()).unwrap();
    all.push(vec![call("TerminateInstances", &[("InstanceId.1", &bastion.id)])]);
    let nat = seen.nat_gateways.all().iter().find(|it| it.state == NatState::Available).unwrap();
    all.push(vec![call("DeleteNatGateway", &[("NatGatewayId", &nat.id)])]);
    let named = |name: &str| seen.security_groups.all().iter().find(|it| it.name.ends_with(name));
    let group = named("-node").unwrap();
    let rule = [
        ("IpPermissions.1.IpProtocol", "tcp"),
        ("IpPermissions.1.FromPort", "1"),
        ("IpPermissions.1.ToPort", "2"),
        ("IpPermissions.1.IpRanges.1.CidrIp", "0.0.0.0/0"),
    ];
    let opened = [&[("GroupId", &*group.id)], &rule[..]].concat();
    all.push(vec![call("AuthorizeSecurityGroupIngress", &opened)]);
    for balancer in seen.classic.all() {
        all.push(vec![call("DeleteLoadBalancer", &[("LoadBalancerName", &balancer.name)])]);
    }
    for balancer in seen.network.all() {
        let mut lost = vec![call("DeleteLoadBalancer", &[("LoadBalancerArn", &balancer.arn)])];
        // To moto a target group belongs to its first load balancer for good.
        let groups = seen.target_groups.all().iter();
        lost.extend(groups.map(|it| call("DeleteTargetGroup", &[("TargetGroupArn", &it.arn)])));
        all.push(lost);
    }
    for group in seen.target_groups.all() {
        let interval = [("TargetGroupArn", &*group.arn), ("HealthCheckIntervalSeconds", "20")];
        all.push(vec![call("ModifyTargetGroup", &interval)]);
    }
    for gateway in seen.egress_only_gateways.all() {
        let id = ("EgressOnlyInternetGatewayId", &*gateway.id);
        all.push(vec![call("DeleteEgressOnlyInternetGateway", &[id])]);
        let six = ("DestinationIpv6CidrBlock", "::/0");
        all.push(vec![call("DeleteRoute", &[of_table, six])]);
    }
    all.into_iter().map(|damage| (damage, Vec::new())).collect()
}

/// Does each damage to one of two clusters, and looks at both.
async fn is_noticed(number: usize, damages: fn(&Observed, &Identity) -> Vec<Damage>) {
    let Some(world) = World::new().await else { return };
    let mut both = two(&world).await;
    for turn in 0.. {
        let seen = both[number].own_view(&world).await;
        let Some((damage, undo)) = damages(&seen, &both[number].identity).into_iter().nth(turn)
        else {
            assert!(turn > 0, "there are damages");
            break;
        };
        carry_out(&world, &damage).await;
        world.advance(PERIOD);
        world.proxy.forget();
        assert!(!both[number].rests(&world).await, "{damage:?} is not noticed");
        assert!(
            both[1 - number].rests(&world).await,
            "{damage:?} is taken for one of another cluster"
        );
        assert_eq!(world.writes(), [""; 0], "a shared read leads to no write");
        carry_out(&world, &undo).await;
        both[number].read_alone(&world).await;
        world.advance(PERIOD);
        for cluster in &mut both {
            assert!(cluster.rests(&world).await, "{:?} after {damage:?}", cluster.identity);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_tag_of_any_resource_of_a_cluster_with_ipv6_is_noticed() {
    Box::pin(is_noticed(1, damages_of_tags)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cluster_loses_is_noticed() {
    Box::pin(is_noticed(0, damages_of_things)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cluster_with_ipv6_loses_is_noticed() {
    Box::pin(is_noticed(1, damages_of_things)).await;
}

/// The clusters read for themselves then.
#[tokio::test(flavor = "multi_thread")]
async fn a_shared_read_that_fails_leaves_no_cluster_at_rest() {
    let Some(world) = World::new().await else { return };
    let mut both = two(&world).await;
    for action in ["DescribeSubnets", "DescribeEgressOnlyInternetGateways", "DescribeTargetGroups"]
    {
        world.advance(PERIOD);
        world.proxy.forget();
        world.hit_all(&[(action, Fate::Refuse("UnauthorizedOperation"))]);
        let judged = both[1].judge(&world).await;
        assert!(matches!(judged, Judged::Unread), "{action}: {judged:?}");
        world.proxy.forget();
        assert!(matches!(both[1].judge(&world).await, Judged::Unread), "{action}");
        assert_eq!(world.actions(), [""; 0], "{action}: the failed read is repeated");
        world.advance(FAILS_FOR + 1);
        assert!(both[1].rests(&world).await, "{action}");
    }
}
