//! Route tables.

use aws_network::{Action, Association, DEFAULT_ROUTE, Route, RouteTable, Tags, Target};

use super::ec2::{DONE, made};
use super::{Called, Cloud};

impl Cloud {
    pub(super) fn call_routes_and_groups(&mut self, action: Action) -> Called {
        match action {
            Action::CreateRouteTable { vpc, tags, .. } => self.create_table(vpc, tags),
            Action::CreateRoute { table, target } => self.set_route(&table, target, false),
            Action::ReplaceRoute { table, target } => self.set_route(&table, target, true),
            Action::DeleteRoute { table } => {
                let found = self.tables.get(&table).ok_or("InvalidRouteTableID.NotFound")?;
                found.default_route().ok_or("InvalidRoute.NotFound")?;
                self.tables.edit(&table, self.now, |found| {
                    found.routes.retain(|route| route.destination != DEFAULT_ROUTE);
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
        let cidr = self.vpcs.get(&vpc).ok_or("InvalidVpcID.NotFound")?.cidr.to_string();
        let id = self.id("rtb");
        let target = Target::Other("local".to_owned());
        let routes = vec![Route { destination: cidr, target, blackhole: false }];
        let table = RouteTable { id: id.clone(), vpc, associations: Vec::new(), routes, tags };
        self.tables.put(&id, self.now, table);
        made(&id)
    }

    fn set_route(&mut self, table: &str, target: Target, replace: bool) -> Called {
        let found = self.tables.get(table).ok_or("InvalidRouteTableID.NotFound")?.clone();
        match found.default_route() {
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
            _ => {}
        }
        self.tables.edit(table, self.now, |found| {
            found.routes.retain(|route| route.destination != DEFAULT_ROUTE);
            found.routes.push(Route {
                destination: DEFAULT_ROUTE.to_owned(),
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
