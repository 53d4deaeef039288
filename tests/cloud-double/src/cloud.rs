//! [`Cloud`]: a naive AWS. It carries out one call after the other, refuses what AWS refuses, lets
//! things take their time, and shows the past when it is told to.

use std::net::Ipv4Addr;

use aws_network::{
    Action, Address, Answer, BalancerState, ClassicLoadBalancer, Instance, InstanceState,
    InternetGateway, Ipv6Range, NatGateway, NatState, NetworkInterface, NetworkLoadBalancer, Query,
    Reply, RouteTable, SecurityGroup, Subnet, TargetGroup, Vpc,
};

use crate::store::{Late, Store, Then};

mod balancers;
mod ec2;
mod groups;
mod owned;
mod reads;
mod routes;
mod tags;

/// Verbs of calls that end something.
const REMOVALS: [&str; 6] = ["Delete", "Detach", "Release", "Revoke", "Disassociate", "Terminate"];

fn is_removal(call: &str) -> bool {
    REMOVALS.iter().any(|verb| call.starts_with(verb))
}

/// The result of a call: an answer, or a code.
pub type Called = Result<Answer, &'static str>;

/// Behaviour of AWS that a test sets.
#[derive(Clone, Debug)]
pub struct Nature {
    /// Seconds until a NAT gateway, an instance or a network load balancer is made, or gone.
    pub slow: u64,
    /// Seconds for which interfaces of a deleted load balancer stay.
    pub drain: u64,
    /// Reads may show the state of up to so many seconds ago, and calls may not know ids as young.
    pub lag: u64,
    /// NAT gateways that fail before one is created.
    pub failing_nats: u32,
}

impl Nature {
    /// Without delays.
    pub const PROMPT: Self = Self { slow: 0, drain: 0, lag: 0, failing_nats: 0 };
}

/// AWS, as one account in one region sees it.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// The time in seconds.
    pub now: u64,
    /// How it behaves.
    pub nature: Nature,
    /// VPCs.
    pub vpcs: Store<Vpc>,
    /// Subnets.
    pub subnets: Store<Subnet>,
    /// Internet gateways.
    pub gateways: Store<InternetGateway>,
    /// Egress-only internet gateways.
    pub egress_only: Store<InternetGateway>,
    /// Carrier gateways.
    pub carriers: Store<InternetGateway>,
    /// Elastic IPs.
    pub addresses: Store<Address>,
    /// NAT gateways.
    pub nats: Store<NatGateway>,
    /// Route tables.
    pub tables: Store<RouteTable>,
    /// Security groups.
    pub groups: Store<SecurityGroup>,
    /// Instances.
    pub instances: Store<Instance>,
    /// Classic load balancers.
    pub classic: Store<ClassicLoadBalancer>,
    /// Network load balancers.
    pub network: Store<NetworkLoadBalancer>,
    /// Target groups.
    pub target_groups: Store<TargetGroup>,
    /// Network interfaces that no instance has.
    pub interfaces: Store<NetworkInterface>,
    /// Ids of what else others have put into the VPC.
    pub residents: Vec<String>,
    /// Where a bastion lies and which groups it has, which its description here does not say.
    places: Vec<(String, String, String)>,
    /// Events that happen by themselves, and when.
    due: Vec<(u64, Due)>,
    /// Until when subnets and groups are held by a load balancer that is gone.
    draining: Vec<(u64, Vec<String>)>,
    tokens: Vec<(String, Action, Answer)>,
    late: Late,
    random: u64,
    next_id: u64,
    /// The tag of the cluster, by which reads filter.
    pub cluster_tag: String,
    /// Refuses calls of this operation with this code, so many times.
    pub refusals: Vec<(&'static str, &'static str, u32)>,
}

#[derive(Clone, Debug)]
enum Due {
    NatMade(String),
    NatGone(String),
    Ipv6Chosen(String),
    CidrAssociated(String),
    CarrierReady(String),
    InstanceRuns(String),
    InstanceGone(String),
    BalancerActive(String),
}

impl Cloud {
    /// An empty account, whose reads filter by the tag of this cluster.
    pub fn new(nature: Nature, seed: u64, cluster: &str) -> Self {
        Self {
            now: 1_000_000,
            nature,
            vpcs: Store::default(),
            subnets: Store::default(),
            gateways: Store::default(),
            egress_only: Store::default(),
            carriers: Store::default(),
            addresses: Store::default(),
            nats: Store::default(),
            tables: Store::default(),
            groups: Store::default(),
            instances: Store::default(),
            classic: Store::default(),
            network: Store::default(),
            target_groups: Store::default(),
            interfaces: Store::default(),
            residents: Vec::new(),
            places: Vec::new(),
            due: Vec::new(),
            draining: Vec::new(),
            tokens: Vec::new(),
            late: Late::default(),
            random: seed,
            next_id: 0,
            cluster_tag: format!("sigs.k8s.io/cluster-api-provider-aws/cluster/{cluster}"),
            refusals: Vec::new(),
        }
    }

    /// A number below `bound`, from the seed.
    pub fn draw(&mut self, bound: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound.max(1)
    }

    pub(crate) fn id(&mut self, prefix: &str) -> String {
        self.next_id += 1;
        format!("{prefix}-{:08}", self.next_id)
    }

    pub(crate) fn ip(&mut self) -> Ipv4Addr {
        self.next_id += 1;
        Ipv4Addr::from_bits(0x3412_0000 + u32::try_from(self.next_id).unwrap())
    }

    /// Lets time pass, and with it what happens by itself.
    pub fn advance(&mut self, seconds: u64) {
        self.now += seconds;
        self.settle();
    }

    fn settle(&mut self) {
        let (now, due) = (self.now, std::mem::take(&mut self.due));
        let (ripe, later): (Vec<_>, Vec<_>) = due.into_iter().partition(|(at, _)| *at <= now);
        self.due = later;
        for (_, event) in ripe {
            self.happen(event);
        }
        self.draining.retain(|(until, _)| *until > now);
    }

    fn happen(&mut self, event: Due) {
        let now = self.now;
        match event {
            Due::NatMade(id) => self.finish_nat(&id),
            Due::NatGone(id) => {
                self.nats.edit(&id, now, |nat| nat.state = NatState::Deleted);
                let nat = self.nats.get(&id).cloned().unwrap();
                for allocation in nat.allocations {
                    self.addresses.edit(&allocation, now, |address| address.association = None);
                }
                if let Some(table) = nat.route_table {
                    self.tables.remove(&table, now);
                }
            }
            Due::Ipv6Chosen(id) => {
                let range = "2600:db8:0:100::/56".parse().unwrap();
                self.vpcs.edit(&id, now, |vpc| vpc.ipv6 = Some(Ipv6Range::Associated(range)));
            }
            Due::CidrAssociated(id) => self.vpcs.edit(&id, now, |vpc| {
                vpc.secondary.iter_mut().for_each(|it| it.associated = true);
            }),
            Due::CarrierReady(id) => self.carriers.edit(&id, now, |it| it.pending = false),
            Due::InstanceRuns(id) => self.instances.edit(&id, now, |instance| {
                if instance.state == InstanceState::Pending {
                    instance.state = InstanceState::Running;
                    instance.public_ip = Some(Ipv4Addr::new(52, 1, 2, 3));
                }
            }),
            Due::InstanceGone(id) => {
                self.instances
                    .edit(&id, now, |instance| instance.state = InstanceState::Terminated);
            }
            Due::BalancerActive(arn) => {
                self.network.edit(&arn, now, |found| found.state = BalancerState::Active);
            }
        }
    }

    fn finish_nat(&mut self, id: &str) {
        let now = self.now;
        let Some(nat) = self.nats.get(id).cloned().filter(|nat| nat.state == NatState::Pending)
        else {
            return;
        };
        if self.nature.failing_nats > 0 {
            self.nature.failing_nats -= 1;
            self.nats.edit(id, now, |nat| {
                nat.state = NatState::Failed;
                nat.failure = Some("InternalError: try again".to_owned());
            });
            return;
        }
        let association = self.id("eipassoc");
        for allocation in &nat.allocations {
            self.addresses
                .edit(allocation, now, |found| found.association = Some(association.clone()));
        }
        let ip = nat.is_regional.then(|| self.ip());
        self.nats.edit(id, now, |nat| {
            nat.state = NatState::Available;
            nat.public_ips.extend(ip);
        });
    }

    fn later(&mut self, event: Due) {
        self.due.push((self.now + self.nature.slow, event));
        if self.nature.slow == 0 {
            self.settle();
        }
    }

    /// Whether one of these subnets is in an edge zone.
    pub(super) fn are_far(&self, subnets: &[String]) -> bool {
        let mut found = subnets.iter().filter_map(|id| self.subnets.get(id));
        found.any(|it| it.zone.starts_with("us-east-2-"))
    }

    /// Carries out one write.
    pub fn call(&mut self, action: &Action) -> Called {
        let name = format!("{action:?}");
        if let Some(rule) = self
            .refusals
            .iter_mut()
            .find(|(operation, _, left)| *left > 0 && name.contains(operation))
        {
            rule.2 -= 1;
            return Err(rule.1);
        }
        if self.names_unknown_id(&name) || self.names_late_id(&name) {
            return Err("InvalidID.NotFound");
        }
        if let Some(token) = action.token() {
            match self.tokens.iter().find(|(known, ..)| known == token) {
                Some((_, first, answer)) if first == action => return Ok(answer.clone()),
                Some(_) => return Err("IdempotentParameterMismatch"),
                None => {}
            }
        }
        let answer = match action {
            Action::Elb(action) => self.call_elb(action)?,
            Action::ElbV2(action) => self.call_elbv2(action)?,
            action => self.call_ec2(action)?,
        };
        if let Some(token) = action.token() {
            self.tokens.push((token.to_owned(), action.clone(), answer.clone()));
        }
        Ok(answer)
    }

    /// Servers of AWS see the writes of each other late.
    fn names_unknown_id(&mut self, call: &str) -> bool {
        if self.nature.lag == 0 || self.draw(8) > 0 {
            return false;
        }
        let since = self.now.saturating_sub(self.nature.lag.min(3));
        let is_young = |id: &str| {
            self.vpcs.is_younger(id, since)
                || self.subnets.is_younger(id, since)
                || self.gateways.is_younger(id, since)
                || self.egress_only.is_younger(id, since)
                || self.carriers.is_younger(id, since)
                || self.tables.is_younger(id, since)
                || self.groups.is_younger(id, since)
        };
        !is_removal(call) && call.split('"').any(|word| word.contains('-') && is_young(word))
    }

    /// Does not show what was just made in the next so many reads, and knows it in no write, for these seconds.
    pub fn make_late(&mut self, id: &str, seconds: u64, reads: u32) {
        self.late.get_mut().insert(id.to_owned(), (self.now + seconds, reads));
    }

    fn names_late_id(&mut self, call: &str) -> bool {
        let (now, late) = (self.now, self.late.get_mut());
        let mut is_late =
            |id: &str| late.get(id).is_some_and(|(until, left)| now < *until && *left > 0);
        !late.is_empty() && !is_removal(call) && call.split('"').any(&mut is_late)
    }

    /// Answers one query, perhaps with the past.
    pub fn read(&mut self, query: &Query) -> Reply {
        let lag = self.nature.lag;
        let behind = if lag == 0 { 0 } else { self.draw(lag + 1) };
        let (now, late) = (self.now, self.late.clone());
        let reply = self.read_at(query, Then { now, time: now - behind, late: &late });
        self.late = late;
        reply
    }

    pub(crate) fn vpc_of(&self, subnet: &str) -> Option<String> {
        self.subnets.get(subnet).map(|found| found.vpc.clone())
    }
}
