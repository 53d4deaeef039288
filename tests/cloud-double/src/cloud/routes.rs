//! Route tables.

use aws_network::{Action, Association, Ipv6Range, Route, RouteTable, Tags, Target};

use super::ec2::{DONE, made};
use super::{Called, Cloud};

impl Cloud {
    pub(super) fn call_routes_and_groups(&mut self, action: Action) -> Called {
        let of_nat =
            |nat: &aws_network::NatGateway| nat.route_table.clone().filter(|_| !nat.is_gone());
        let mut of_aws = self.nats.all().into_iter().filter_map(|nat| of_nat(&nat));
        if of_aws.any(|id| format!("{action:?}").contains(&format!("{id:?}"))) {
            return Err("OperationNotPermitted");
        }
        match action {
            Action::CreateRouteTable { vpc, tags, .. } => self.create_table(vpc, tags),
            Action::CreateRoute { table, destination, target } => {
                self.set_route(&table, destination, target, false)
            }
            Action::ReplaceRoute { table, destination, target } => {
                self.set_route(&table, destination, target, true)
            }
            Action::DeleteRoute { table, destination } => {
                let found = self.tables.get(&table).ok_or("InvalidRouteTableID.NotFound")?;
                found.route_to(destination).ok_or("InvalidRoute.NotFound")?;
                self.tables.edit(&table, self.now, |found| {
                    found.routes.retain(|route| route.destination != destination);
                });
                DONE
            }
            Action::AssociateRouteTable { table, subnet } => self.associate(&table, subnet),
            Action::ReplaceAssociation { association, table } => {
                self.reassociate(&association, &table)
            }
            Action::DisassociateRouteTable { association } => {
                self.take_association(&association).ok_or("InvalidAssociationID.NotFound")?;
                DONE
            }
            Action::DeleteRouteTable { table } => {
                let found = self.tables.get(&table).ok_or("InvalidRouteTableID.NotFound")?;
                if !found.associations.is_empty() {
                    return Err("DependencyViolation");
                }
                self.tables.remove(&table, self.now);
                DONE
            }
            other => self.call_groups(other),
        }
    }

    fn create_table(&mut self, vpc: String, tags: Tags) -> Called {
        let found = self.vpcs.get(&vpc).ok_or("InvalidVpcID.NotFound")?;
        let ipv6 = found.ipv6.and_then(|range| match range {
            Ipv6Range::Associated(cidr) => Some(cidr),
            Ipv6Range::Associating => None,
        });
        let local = |cidr: cidr::IpNet| {
            let target = Target::Other("local".to_owned());
            Route { destination: cidr.to_string(), target, blackhole: false }
        };
        let routes = std::iter::once(found.cidr).chain(ipv6).map(local).collect();
        let id = self.id("rtb");
        let table = RouteTable { id: id.clone(), vpc, associations: Vec::new(), routes, tags };
        self.tables.put(&id, self.now, table);
        made(&id)
    }

    fn set_route(
        &mut self,
        table: &str,
        destination: &str,
        target: Target,
        replace: bool,
    ) -> Called {
        let found = self.tables.get(table).ok_or("InvalidRouteTableID.NotFound")?.clone();
        match found.route_to(destination) {
            Some(_) if !replace => return Err("RouteAlreadyExists"),
            None if replace => return Err("InvalidParameterValue"),
            _ => {}
        }
        match &target {
            Target::NatGateway(id)
                if !self
                    .nats
                    .get(id)
                    .is_some_and(|nat| nat.state == aws_network::NatState::Available) =>
            {
                return Err("InvalidNatGatewayID.NotFound");
            }
            Target::InternetGateway(id) => {
                let gateway = self.gateways.get(id).ok_or("InvalidGatewayID.NotFound")?;
                if gateway.attached_to.as_ref() != Some(&found.vpc) {
                    return Err("InvalidParameterValue");
                }
            }
            Target::EgressOnlyGateway(id) => {
                let gateway = self.egress_only.get(id).ok_or("InvalidGatewayID.NotFound")?;
                if gateway.attached_to.as_ref() != Some(&found.vpc) {
                    return Err("InvalidGatewayID.NotFound");
                }
            }
            Target::CarrierGateway(id) => {
                let gateway = self.carriers.get(id).ok_or("InvalidGatewayID.NotFound")?;
                if gateway.pending || gateway.attached_to.as_ref() != Some(&found.vpc) {
                    return Err("InvalidGatewayID.NotFound");
                }
            }
            Target::NatGateway(_) | Target::Other(_) => {}
        }
        self.tables.edit(table, self.now, |found| {
            found.routes.retain(|route| route.destination != destination);
            found.routes.push(Route {
                destination: destination.to_owned(),
                target,
                blackhole: false,
            });
        });
        DONE
    }

    fn associate(&mut self, table: &str, subnet: String) -> Called {
        self.tables.get(table).ok_or("InvalidRouteTableID.NotFound")?;
        self.subnets.get(&subnet).ok_or("InvalidSubnetID.NotFound")?;
        for found in self.tables.all() {
            match found.association_of(&subnet) {
                Some(association) if found.id == table => return made(&association.id),
                Some(_) => return Err("Resource.AlreadyAssociated"),
                None => {}
            }
        }
        let id = self.id("rtbassoc");
        let association = Association { id: id.clone(), subnet: Some(subnet) };
        self.tables.edit(table, self.now, |found| found.associations.push(association));
        made(&id)
    }

    fn take_association(&mut self, id: &str) -> Option<Association> {
        let all = self.tables.all();
        let (table, association) = all.iter().find_map(|table| {
            let found = table.associations.iter().find(|association| association.id == id)?;
            Some((table.id.clone(), found.clone()))
        })?;
        self.tables.edit(&table, self.now, |found| found.associations.retain(|old| old.id != id));
        Some(association)
    }

    fn reassociate(&mut self, association: &str, table: &str) -> Called {
        self.tables.get(table).ok_or("InvalidRouteTableID.NotFound")?;
        let old = self.take_association(association).ok_or("InvalidAssociationID.NotFound")?;
        let id = self.id("rtbassoc");
        let new = Association { id: id.clone(), ..old };
        self.tables.edit(table, self.now, |found| found.associations.push(new));
        made(&id)
    }
}
