//! VPCs, subnets, gateways, addresses, instances.

use aws_network::{
    Action, Address, Answer, BastionLaunch, DEFAULT_ROUTE, Instance, InstanceState,
    InternetGateway, Ipv6Range, NatGateway, NatState, Route, RouteTable, SecondaryCidr, Subnet,
    Tags, Target, Vpc,
};

use super::{Called, Cloud, Due};

/// An answer with nothing but an id.
#[allow(clippy::unnecessary_wraps, reason = "it is what a call comes to")]
pub(super) fn made(id: &str) -> Called {
    Ok(Answer { id: id.to_owned(), ..Answer::default() })
}

pub(super) const DONE: Called = Ok(Answer { id: String::new(), address: None, dns_name: None });

impl Cloud {
    pub(super) fn call_ec2(&mut self, action: &Action) -> Called {
        match action.clone() {
            Action::CreateVpc { cidr, ipv6, tags } => {
                let id = self.id("vpc");
                let (dns_support, dns_hostnames) = (Some(true), Some(false));
                let vpc = Vpc {
                    id: id.clone(),
                    cidr,
                    ipv6: ipv6.then_some(Ipv6Range::Associating),
                    secondary: Vec::new(),
                    more_ipv6: Vec::new(),
                    dns_support,
                    dns_hostnames,
                    tags,
                };
                self.vpcs.put(&id, self.now, vpc);
                if ipv6 {
                    self.later(Due::Ipv6Chosen(id.clone()));
                }
                made(&id)
            }
            Action::EnableDnsSupport { vpc } => {
                self.vpcs.edit(&vpc, self.now, |found| found.dns_support = Some(true));
                DONE
            }
            Action::EnableDnsHostnames { vpc } => {
                self.vpcs.edit(&vpc, self.now, |found| found.dns_hostnames = Some(true));
                DONE
            }
            Action::AssociateCidr { vpc, cidr } => {
                let found = self.vpcs.get(&vpc).ok_or("InvalidVpcID.NotFound")?;
                if found.secondary.iter().any(|it| it.cidr == cidr) {
                    return Err("CidrConflict");
                }
                let added = SecondaryCidr { cidr, associated: false, failed: false };
                self.vpcs.edit(&vpc, self.now, |found| found.secondary.push(added));
                self.later(Due::CidrAssociated(vpc));
                DONE
            }
            Action::DeleteVpc { vpc } => self.delete_vpc(&vpc),
            create @ Action::CreateSubnet { .. } => self.create_subnet(create),
            Action::AssignIpv6 { subnet } => {
                let found = self.subnets.get(&subnet).ok_or("InvalidSubnetID.NotFound")?;
                found.ipv6.ok_or("InvalidParameterValue")?;
                self.subnets.edit(&subnet, self.now, |found| found.assigns_ipv6 = true);
                DONE
            }
            Action::SetMapPublicIp { subnet, enabled } => {
                let found = self.subnets.get(&subnet).ok_or("InvalidSubnetID.NotFound")?;
                if found.zone.contains("-wlz-") {
                    return Err("InvalidParameterValue");
                }
                self.subnets.edit(&subnet, self.now, |found| found.map_public_ip = enabled);
                DONE
            }
            Action::DeleteSubnet { subnet } => self.delete_subnet(&subnet),
            Action::AllocateAddress { tags, .. } => {
                let (id, ip) = (self.id("eipalloc"), self.ip());
                self.addresses.put(
                    &id,
                    self.now,
                    Address { id: id.clone(), ip, association: None, tags },
                );
                Ok(Answer { id, address: Some(ip), dns_name: None })
            }
            Action::ReleaseAddress { allocation } => self.release(&allocation),
            Action::CreateNatGateway { vpc, subnet, allocation, tags, .. } => {
                self.create_nat(vpc, subnet, allocation, tags)
            }
            Action::CreateRegionalNatGateway { vpc, tags, .. } => {
                self.create_regional_nat(vpc, tags)
            }
            Action::DeleteNatGateway { nat_gateway } => self.delete_nat(&nat_gateway),
            Action::RunBastion { vpc, launch, .. } => self.run(vpc, launch),
            Action::TerminateInstances { instances } => self.terminate(&instances),
            Action::CreateTags { resources, tags } => self.create_tags(&resources, &tags),
            Action::DeleteTags { resources, keys } => self.delete_tags(&resources, &keys),
            Action::DeleteNetworkInterface { interface } => {
                self.interfaces.remove(&interface, self.now);
                DONE
            }
            gateway @ (Action::CreateEgressOnlyGateway { .. }
            | Action::DeleteEgressOnlyGateway { .. }
            | Action::CreateCarrierGateway { .. }
            | Action::DeleteCarrierGateway { .. }) => self.call_attached(gateway),
            gateway @ (Action::CreateInternetGateway { .. }
            | Action::AttachInternetGateway { .. }
            | Action::DetachInternetGateway { .. }
            | Action::DeleteInternetGateway { .. }) => self.call_gateway(gateway),
            other => self.call_routes_and_groups(other),
        }
    }

    /// A VPC has one of each kind, and a carrier gateway only if it has a subnet in a wavelength zone.
    fn call_attached(&mut self, action: Action) -> Called {
        match action {
            Action::CreateEgressOnlyGateway { vpc, tags, .. } => {
                let gateway = self.attached("eigw", vpc, tags)?;
                let has_one = |it: &InternetGateway| it.attached_to == gateway.attached_to;
                if self.egress_only.all().iter().any(has_one) {
                    return Err("Resource.AlreadyAssociated");
                }
                let id = gateway.id.clone();
                self.egress_only.put(&id, self.now, gateway);
                made(&id)
            }
            Action::CreateCarrierGateway { vpc, tags, .. } => {
                let is_far = |it: &Subnet| it.vpc == vpc && it.zone.contains("-wlz-");
                if !self.subnets.all().iter().any(is_far) {
                    return Err("InvalidParameterValue");
                }
                let gateway = self.attached("cagw", vpc, tags)?;
                let has_one = |it: &InternetGateway| it.attached_to == gateway.attached_to;
                if self.carriers.all().iter().any(has_one) {
                    return Err("Resource.AlreadyAssociated");
                }
                let id = gateway.id.clone();
                self.carriers.put(&id, self.now, InternetGateway { pending: true, ..gateway });
                self.later(Due::CarrierReady(id.clone()));
                made(&id)
            }
            Action::DeleteEgressOnlyGateway { gateway } => {
                self.egress_only.get(&gateway).ok_or("InvalidGatewayID.NotFound")?;
                self.egress_only.remove(&gateway, self.now);
                DONE
            }
            Action::DeleteCarrierGateway { gateway } => {
                self.carriers.get(&gateway).ok_or("InvalidCarrierGatewayID.NotFound")?;
                self.carriers.remove(&gateway, self.now);
                DONE
            }
            other => panic!("{other:?} is no call of attached gateways"),
        }
    }

    fn attached(
        &mut self,
        prefix: &str,
        vpc: String,
        tags: Tags,
    ) -> Result<InternetGateway, &'static str> {
        self.vpcs.get(&vpc).ok_or("InvalidVpcID.NotFound")?;
        let (id, attached_to) = (self.id(prefix), Some(vpc));
        Ok(InternetGateway { id, attached_to, pending: false, tags })
    }

    fn call_gateway(&mut self, action: Action) -> Called {
        match action {
            Action::CreateInternetGateway { tags } => {
                let id = self.id("igw");
                let gateway =
                    InternetGateway { id: id.clone(), attached_to: None, pending: false, tags };
                self.gateways.put(&id, self.now, gateway);
                made(&id)
            }
            Action::AttachInternetGateway { gateway, vpc } => {
                let found =
                    self.gateways.get(&gateway).ok_or("InvalidInternetGatewayID.NotFound")?;
                self.vpcs.get(&vpc).ok_or("InvalidVpcID.NotFound")?;
                let has_one = self
                    .gateways
                    .all()
                    .iter()
                    .any(|found| found.attached_to.as_ref() == Some(&vpc));
                if found.attached_to.is_some() || has_one {
                    return Err("Resource.AlreadyAssociated");
                }
                self.gateways.edit(&gateway, self.now, |found| found.attached_to = Some(vpc));
                DONE
            }
            Action::DetachInternetGateway { gateway, vpc } => {
                let found =
                    self.gateways.get(&gateway).ok_or("InvalidInternetGatewayID.NotFound")?;
                if found.attached_to.as_ref() != Some(&vpc) {
                    return Err("Gateway.NotAttached");
                }
                if self.maps_public_addresses(&vpc) {
                    return Err("DependencyViolation");
                }
                self.gateways.edit(&gateway, self.now, |found| found.attached_to = None);
                DONE
            }
            Action::DeleteInternetGateway { gateway } => {
                let found =
                    self.gateways.get(&gateway).ok_or("InvalidInternetGatewayID.NotFound")?;
                if found.attached_to.is_some() {
                    return Err("DependencyViolation");
                }
                self.gateways.remove(&gateway, self.now);
                DONE
            }
            other => panic!("{other:?} is no call of gateways"),
        }
    }

    fn maps_public_addresses(&self, vpc: &str) -> bool {
        self.nats.all().iter().any(|found| found.vpc == vpc && !found.is_gone())
            || self
                .instances
                .all()
                .iter()
                .any(|found| found.vpc == vpc && found.state != InstanceState::Terminated)
            || self.classic.all().iter().any(|found| found.vpc == vpc)
            || self.network.all().iter().any(|found| found.vpc == vpc)
            || self
                .subnets
                .all()
                .iter()
                .any(|found| found.vpc == vpc && self.is_draining(&found.id))
    }

    pub(super) fn is_draining(&self, id: &str) -> bool {
        self.draining.iter().any(|(_, held)| held.iter().any(|held| held == id))
    }

    fn delete_vpc(&mut self, vpc: &str) -> Called {
        self.vpcs.get(vpc).ok_or("InvalidVpcID.NotFound")?;
        let is_used = self.subnets.all().iter().any(|found| found.vpc == vpc)
            || self.gateways.all().iter().any(|found| found.attached_to.as_deref() == Some(vpc))
            || self.egress_only.all().iter().any(|it| it.attached_to.as_deref() == Some(vpc))
            || self.carriers.all().iter().any(|it| it.attached_to.as_deref() == Some(vpc))
            || self.tables.all().iter().any(|found| found.vpc == vpc && !found.is_main())
            || self.groups.all().iter().any(|found| found.vpc == vpc && found.name != "default")
            || self.nats.all().iter().any(|found| found.vpc == vpc && !found.is_gone());
        if is_used {
            return Err("DependencyViolation");
        }
        self.vpcs.remove(vpc, self.now);
        DONE
    }

    fn create_subnet(&mut self, create: Action) -> Called {
        let Action::CreateSubnet { vpc, cidr, ipv6, zone, tags } = create else {
            panic!("{create:?} creates no subnet")
        };
        let home = self.vpcs.get(&vpc).ok_or("InvalidVpcID.NotFound")?;
        let holds = |block: &cidr::IpNet| {
            let first = matches!(home.ipv6, Some(Ipv6Range::Associated(it)) if it.contains(block));
            first || home.more_ipv6.iter().any(|it| it.contains(block))
        };
        let mut secondary = home.secondary.iter().filter(|it| it.associated);
        let is_inside = home.cidr.contains(&cidr) || secondary.any(|it| it.cidr.contains(&cidr));
        if !is_inside || ipv6.is_some_and(|block| !holds(&block)) {
            return Err("InvalidSubnet.Range");
        }
        let overlaps = |found: &Subnet| {
            found.cidr.contains(&cidr)
                || cidr.contains(&found.cidr)
                || (ipv6.is_some() && found.ipv6 == ipv6)
        };
        if self.subnets.all().iter().any(|found| found.vpc == vpc && overlaps(found)) {
            return Err("InvalidSubnet.Conflict");
        }
        let id = self.id("subnet");
        let (map_public_ip, assigns_ipv6, available) = (false, false, true);
        let own = id.clone();
        let subnet =
            Subnet { id: own, vpc, cidr, ipv6, zone, map_public_ip, assigns_ipv6, available, tags };
        self.subnets.put(&id, self.now, subnet);
        made(&id)
    }

    fn delete_subnet(&mut self, subnet: &str) -> Called {
        let now = self.now;
        self.subnets.get(subnet).ok_or("InvalidSubnetID.NotFound")?;
        let has_instance = |(id, place, _): &(String, String, String)| {
            place == subnet
                && self
                    .instances
                    .get(id)
                    .is_some_and(|found| found.state != InstanceState::Terminated)
        };
        let is_used = self
            .nats
            .all()
            .iter()
            .any(|found| found.subnet == subnet && !found.is_gone())
            || self.classic.all().iter().any(|found| found.subnets.iter().any(|id| id == subnet))
            || self.network.all().iter().any(|found| found.subnets.iter().any(|id| id == subnet))
            || self.places.iter().any(has_instance)
            || self.is_draining(subnet);
        if is_used {
            return Err("DependencyViolation");
        }
        for table in self.tables.all() {
            if table.association_of(subnet).is_some() {
                self.tables.edit(&table.id, now, |found| {
                    found.associations.retain(|old| old.subnet.as_deref() != Some(subnet));
                });
            }
        }
        self.subnets.remove(subnet, now);
        DONE
    }

    fn release(&mut self, allocation: &str) -> Called {
        let address = self.addresses.get(allocation).ok_or("InvalidAllocationID.NotFound")?;
        let is_held = self.nats.all().iter().any(|nat| {
            matches!(nat.state, NatState::Pending | NatState::Available | NatState::Deleting)
                && nat.allocations.iter().any(|id| id == allocation)
        });
        if address.association.is_some() || is_held {
            return Err("InvalidIPAddress.InUse");
        }
        self.addresses.remove(allocation, self.now);
        DONE
    }

    fn create_nat(
        &mut self,
        vpc: String,
        subnet: String,
        allocation: String,
        tags: Tags,
    ) -> Called {
        if self.vpc_of(&subnet).as_ref() != Some(&vpc) {
            return Err("InvalidSubnetID.NotFound");
        }
        if self.are_far(std::slice::from_ref(&subnet)) {
            return Err("InvalidParameterValue");
        }
        let address = self.addresses.get(&allocation).ok_or("InvalidAllocationID.NotFound")?;
        let ip = address.ip;
        let is_held = self.nats.all().iter().any(|nat| {
            matches!(nat.state, NatState::Pending | NatState::Available | NatState::Deleting)
                && nat.allocations.contains(&allocation)
        });
        if address.association.is_some() || is_held {
            return Err("Resource.AlreadyAssociated");
        }
        if !self.gateways.all().iter().any(|found| found.attached_to.as_ref() == Some(&vpc)) {
            return Err("Gateway.NotAttached");
        }
        let id = self.id("nat");
        let nat = NatGateway {
            id: id.clone(),
            vpc,
            subnet,
            is_regional: false,
            route_table: None,
            allocations: vec![allocation],
            public_ips: vec![ip],
            state: NatState::Pending,
            failure: None,
            tags,
        };
        self.nats.put(&id, self.now, nat);
        self.later(Due::NatMade(id.clone()));
        made(&id)
    }

    /// AWS makes a route table for it, here with the tags of the gateway.
    fn create_regional_nat(&mut self, vpc: String, tags: Tags) -> Called {
        let gateways = self.gateways.all();
        let gateway = gateways.iter().find(|found| found.attached_to.as_ref() == Some(&vpc));
        let target = Target::InternetGateway(gateway.ok_or("Gateway.NotAttached")?.id.clone());
        let (id, table) = (self.id("nat"), self.id("rtb"));
        let destination = DEFAULT_ROUTE.to_owned();
        let made_by_aws = RouteTable {
            id: table.clone(),
            vpc: vpc.clone(),
            associations: Vec::new(),
            routes: vec![Route { destination, target, blackhole: false }],
            tags: tags.clone(),
        };
        self.tables.put(&table, self.now, made_by_aws);
        let nat = NatGateway {
            id: id.clone(),
            vpc,
            subnet: String::new(),
            is_regional: true,
            route_table: Some(table),
            allocations: Vec::new(),
            public_ips: Vec::new(),
            state: NatState::Pending,
            failure: None,
            tags,
        };
        self.nats.put(&id, self.now, nat);
        self.later(Due::NatMade(id.clone()));
        made(&id)
    }

    fn delete_nat(&mut self, id: &str) -> Called {
        let nat = self.nats.get(id).ok_or("NatGatewayNotFound")?;
        if nat.is_gone() {
            return Err("NatGatewayNotFound");
        }
        self.nats.edit(id, self.now, |nat| nat.state = NatState::Deleting);
        self.later(Due::NatGone(id.to_owned()));
        DONE
    }

    fn run(&mut self, vpc: String, launch: BastionLaunch) -> Called {
        self.subnets.get(&launch.subnet).ok_or("InvalidSubnetID.NotFound")?;
        self.groups.get(&launch.group).ok_or("InvalidGroup.NotFound")?;
        let id = self.id("i");
        let state = InstanceState::Pending;
        let (launched, public_ip) = (self.now, None);
        let instance =
            Instance { id: id.clone(), vpc, state, launched, public_ip, tags: launch.tags };
        self.instances.put(&id, self.now, instance);
        self.places.push((id.clone(), launch.subnet, launch.group));
        self.later(Due::InstanceRuns(id.clone()));
        made(&id)
    }

    fn terminate(&mut self, ids: &[String]) -> Called {
        for id in ids {
            self.instances.get(id).ok_or("InvalidInstanceID.NotFound")?;
        }
        for id in ids {
            self.instances.edit(id, self.now, |found| found.state = InstanceState::ShuttingDown);
            self.later(Due::InstanceGone(id.clone()));
        }
        DONE
    }

    /// Whether an instance that is not gone has a group.
    pub(super) fn has_instance(&self, group: &str) -> bool {
        self.places.iter().any(|(id, _, of)| {
            of == group
                && self
                    .instances
                    .get(id)
                    .is_some_and(|found| found.state != InstanceState::Terminated)
        })
    }
}
