//! Route tables.

use aws_network::{Association, Route, RouteTable, Scope, Target};
use aws_sdk_ec2::types::{self, Filter, RouteState, RouteTableAssociationStateCode};

use crate::call::Call;
use crate::call_error::CallError;

use super::flaws::Flaws;
use super::pages::pages;
use super::{Describe, PAGE, tags};

impl Describe<'_> {
    pub(super) async fn route_tables(self, scope: &Scope) -> Result<Vec<RouteTable>, CallError> {
        let mut found = self.route_tables_where(self.filter(scope)).await?;
        found.retain(|table| self.is_in(scope, &table.vpc, &table.tags));
        Ok(found)
    }

    pub(super) async fn route_tables_where(
        self,
        filter: Filter,
    ) -> Result<Vec<RouteTable>, CallError> {
        let request = self.region.ec2().describe_route_tables().filters(filter).max_results(PAGE);
        let found = pages(
            self.region,
            Call::ec2_read("DescribeRouteTables"),
            |token| request.clone().set_next_token(token).send(),
            |page| (page.route_tables, page.next_token),
        );
        self.admit(found.await?.into_iter().map(route_table), |table| &table.tags)
    }
}

fn route_table(table: types::RouteTable) -> (RouteTable, Flaws) {
    let mut flaws = Flaws::default();
    let associations = table.associations.unwrap_or_default().into_iter();
    let table = RouteTable {
        id: flaws.id(table.route_table_id, "id of a route table"),
        vpc: flaws.needed(table.vpc_id, "VPC of a route table", String::new()),
        associations: associations.filter_map(association).collect(),
        routes: table.routes.unwrap_or_default().into_iter().filter_map(route).collect(),
        tags: tags::of_ec2(table.tags),
    };
    (table, flaws)
}

/// None for what has ended, and for a table that a gateway uses.
fn association(association: types::RouteTableAssociation) -> Option<Association> {
    let state = association.association_state.and_then(|state| state.state);
    let has_ended = matches!(
        state,
        Some(
            RouteTableAssociationStateCode::Disassociated
                | RouteTableAssociationStateCode::Disassociating
                | RouteTableAssociationStateCode::Failed
        )
    );
    let is_main = association.main.unwrap_or_default();
    if has_ended || (association.subnet_id.is_none() && !is_main) {
        return None;
    }
    let id = association.route_table_association_id?;
    Some(Association { id, subnet: association.subnet_id.filter(|_| !is_main) })
}

fn route(route: types::Route) -> Option<Route> {
    let destination = route
        .destination_cidr_block
        .or(route.destination_ipv6_cidr_block)
        .or(route.destination_prefix_list_id)?;
    let target = match (route.gateway_id, route.nat_gateway_id) {
        (_, Some(nat)) => Target::NatGateway(nat),
        (Some(gateway), None) if gateway.starts_with("igw-") => Target::InternetGateway(gateway),
        (Some(gateway), None) => Target::Other(gateway),
        (None, None) => Target::Other(
            route
                .transit_gateway_id
                .or(route.vpc_peering_connection_id)
                .or(route.network_interface_id)
                .or(route.instance_id)
                .or(route.egress_only_internet_gateway_id)
                .or(route.local_gateway_id)
                .or(route.carrier_gateway_id)
                .or(route.core_network_arn)
                .unwrap_or_default(),
        ),
    };
    Some(Route { destination, target, blackhole: route.state == Some(RouteState::Blackhole) })
}
