//! Internet gateways, elastic IPs, NAT gateways and route tables.

use std::net::Ipv4Addr;

use aws_network::{
    Address, Association, InternetGateway, NatGateway, NatState, Route, RouteTable, Target,
};
use aws_sdk_ec2::types::{
    self, AvailabilityMode, CarrierGatewayState, Filter, NatGatewayState, RouteState,
    RouteTableAssociationStateCode,
};

use super::answers::{Flaws, ec2_pages, one, tags_of_ec2};
use super::{Describe, PAGE};
use crate::call::{AwsError, Call};

/// AWS allows no more route tables in one page, and 255 egress-only gateways.
const SMALL_PAGE: i32 = 100;

impl Describe<'_> {
    pub(super) async fn internet_gateways(
        self,
        filter: Filter,
    ) -> Result<Vec<InternetGateway>, AwsError> {
        let request = self.region.ec2().describe_internet_gateways().filters(filter);
        let request = request.max_results(PAGE);
        let found = ec2_pages!(self, "DescribeInternetGateways", request, internet_gateways)?;
        self.admit(found.into_iter().map(internet_gateway))
    }

    /// A filter by VPC is unknown to AWS (cluster-api-provider-aws#5684).
    pub(super) async fn egress_only_gateways(
        self,
        filter: Option<Filter>,
    ) -> Result<Vec<InternetGateway>, AwsError> {
        let request = self.region.ec2().describe_egress_only_internet_gateways();
        let request = request.set_filters(filter.map(|it| vec![it])).max_results(SMALL_PAGE);
        let found = ec2_pages!(
            self,
            "DescribeEgressOnlyInternetGateways",
            request,
            egress_only_internet_gateways
        )?;
        self.admit(found.into_iter().map(egress_only_gateway))
    }

    /// Those that are being deleted, too, are gone: a VPC cannot be deleted before its carrier gateway.
    pub(super) async fn carrier_gateways(
        self,
        filter: Filter,
    ) -> Result<Vec<InternetGateway>, AwsError> {
        let request = self.region.ec2().describe_carrier_gateways().filters(filter);
        let request = request.max_results(PAGE);
        let mut found = ec2_pages!(self, "DescribeCarrierGateways", request, carrier_gateways)?;
        let gone = [Some(CarrierGatewayState::Deleting), Some(CarrierGatewayState::Deleted)];
        found.retain(|gateway| !gone.contains(&gateway.state));
        self.admit(found.into_iter().map(carrier_gateway))
    }

    /// This call has no pages.
    pub(super) async fn addresses(self, filter: Filter) -> Result<Vec<Address>, AwsError> {
        let request = self.region.ec2().describe_addresses().filters(filter);
        let call = Call::ec2_read("DescribeAddresses");
        let answer = one(self.region, call, || request.clone().send()).await?;
        // Those that AWS manages, such as those of regional NAT gateways, are released by AWS.
        let all = answer.addresses.unwrap_or_default().into_iter();
        self.admit(all.filter(|found| found.service_managed.is_none()).map(address))
    }

    pub(crate) async fn nat_gateways(self, filter: Filter) -> Result<Vec<NatGateway>, AwsError> {
        let request = self.region.ec2().describe_nat_gateways().filter(filter).max_results(PAGE);
        let found = ec2_pages!(self, "DescribeNatGateways", request, nat_gateways)?;
        self.admit(found.into_iter().map(nat_gateway))
    }

    pub(super) async fn route_tables(self, filter: Filter) -> Result<Vec<RouteTable>, AwsError> {
        let request = self.region.ec2().describe_route_tables().filters(filter);
        let request = request.max_results(SMALL_PAGE);
        let found = ec2_pages!(self, "DescribeRouteTables", request, route_tables)?;
        self.admit(found.into_iter().map(route_table))
    }
}

fn internet_gateway(gateway: types::InternetGateway) -> (InternetGateway, Flaws) {
    let mut flaws = Flaws::default();
    let attachments = gateway.attachments.unwrap_or_default();
    let gateway = InternetGateway {
        id: flaws.id(gateway.internet_gateway_id, "id of an internet gateway"),
        attached_to: attachments.into_iter().find_map(|attachment| attachment.vpc_id),
        pending: false,
        tags: tags_of_ec2(gateway.tags),
    };
    (gateway, flaws)
}

fn egress_only_gateway(gateway: types::EgressOnlyInternetGateway) -> (InternetGateway, Flaws) {
    let mut flaws = Flaws::default();
    let attachments = gateway.attachments.unwrap_or_default();
    let id = gateway.egress_only_internet_gateway_id;
    let gateway = InternetGateway {
        id: flaws.id(id, "id of an egress-only internet gateway"),
        attached_to: attachments.into_iter().find_map(|attachment| attachment.vpc_id),
        pending: false,
        tags: tags_of_ec2(gateway.tags),
    };
    (gateway, flaws)
}

fn carrier_gateway(gateway: types::CarrierGateway) -> (InternetGateway, Flaws) {
    let mut flaws = Flaws::default();
    let found = InternetGateway {
        id: flaws.id(gateway.carrier_gateway_id, "id of a carrier gateway"),
        attached_to: gateway.vpc_id,
        pending: gateway.state != Some(CarrierGatewayState::Available),
        tags: tags_of_ec2(gateway.tags),
    };
    (found, flaws)
}

fn address(address: types::Address) -> (Address, Flaws) {
    let mut flaws = Flaws::default();
    let ip = address.public_ip.as_deref();
    let address = Address {
        id: flaws.id(address.allocation_id, "allocation id of an address"),
        ip: flaws.parsed(ip, "public address", Ipv4Addr::UNSPECIFIED),
        association: address.association_id.filter(|id| !id.is_empty()),
        tags: tags_of_ec2(address.tags),
    };
    (address, flaws)
}

fn nat_gateway(nat: types::NatGateway) -> (NatGateway, Flaws) {
    let mut flaws = Flaws::default();
    let addresses = nat.nat_gateway_addresses.unwrap_or_default();
    let failure = nat.failure_code.map(|code| {
        let message = nat.failure_message.unwrap_or_default();
        format!("{code}: {message}")
    });
    let state = nat_state(nat.state.as_ref());
    let nat = NatGateway {
        id: flaws.id(nat.nat_gateway_id, "id of a NAT gateway"),
        vpc: nat.vpc_id.unwrap_or_default(),
        subnet: nat.subnet_id.unwrap_or_default(),
        is_regional: nat.availability_mode == Some(AvailabilityMode::Regional),
        route_table: nat.route_table_id,
        allocations: addresses.iter().filter_map(|one| one.allocation_id.clone()).collect(),
        public_ips: addresses
            .iter()
            .filter_map(|one| one.public_ip.as_deref()?.parse().ok())
            .collect(),
        // One of others in a state that is not known holds its addresses.
        state: flaws.needed(state, "known state of a NAT gateway", NatState::Pending),
        failure,
        tags: tags_of_ec2(nat.tags),
    };
    (nat, flaws)
}

fn nat_state(state: Option<&NatGatewayState>) -> Option<NatState> {
    match state {
        Some(NatGatewayState::Pending) => Some(NatState::Pending),
        Some(NatGatewayState::Available) => Some(NatState::Available),
        Some(NatGatewayState::Failed) => Some(NatState::Failed),
        Some(NatGatewayState::Deleting) => Some(NatState::Deleting),
        Some(NatGatewayState::Deleted) => Some(NatState::Deleted),
        _ => None,
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
        tags: tags_of_ec2(table.tags),
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
    let egress_only = route.egress_only_internet_gateway_id.map(Target::EgressOnlyGateway);
    let attached = egress_only.or(route.carrier_gateway_id.map(Target::CarrierGateway));
    let target = match (route.gateway_id, route.nat_gateway_id, attached) {
        (_, Some(nat), _) => Target::NatGateway(nat),
        (None, None, Some(gateway)) => gateway,
        (Some(gateway), None, _) if gateway.starts_with("igw-") => Target::InternetGateway(gateway),
        (Some(gateway), None, _) => Target::Other(gateway),
        (None, None, None) => Target::Other(
            route
                .transit_gateway_id
                .or(route.vpc_peering_connection_id)
                .or(route.network_interface_id)
                .or(route.instance_id)
                .or(route.local_gateway_id)
                .or(route.core_network_arn)
                .unwrap_or_default(),
        ),
    };
    Some(Route { destination, target, blackhole: route.state == Some(RouteState::Blackhole) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nat_gateway_of_others_may_have_an_unknown_state_and_no_subnet() {
        let read = types::NatGateway::builder().nat_gateway_id("nat-1").state("moving".into());
        let (found, flaws) = nat_gateway(read.clone().build());
        assert_eq!((found.state, &*found.subnet), (NatState::Pending, ""));
        assert!(flaws.admits(false).unwrap());
        let (_, flaws) = nat_gateway(read.build());
        assert!(flaws.admits(true).is_err(), "one of ours would be made twice, or survive");
    }

    #[test]
    fn a_regional_nat_gateway_has_a_route_table_and_addresses_of_aws_and_no_subnet() {
        let address = |ip: &str| types::NatGatewayAddress::builder().public_ip(ip).build();
        let read = types::NatGateway::builder().nat_gateway_id("nat-1").state("available".into());
        let read = read.set_availability_mode(Some("regional".into())).route_table_id("rtb-1");
        let both = vec![address("52.1.2.3"), address("52.1.2.4")];
        let (found, _) = nat_gateway(read.set_nat_gateway_addresses(Some(both)).build());
        assert!(found.is_regional && found.subnet.is_empty());
        assert_eq!((found.route_table.as_deref(), found.public_ips.len()), (Some("rtb-1"), 2));
    }

    #[test]
    fn a_route_leads_to_a_carrier_gateway_which_takes_its_time() {
        let read = types::Route::builder().destination_cidr_block("0.0.0.0/0");
        let found = route(read.carrier_gateway_id("cagw-1").build()).unwrap();
        assert_eq!(found.target, Target::CarrierGateway("cagw-1".to_owned()));
        let pending = |state: &str| {
            let read = types::CarrierGateway::builder().carrier_gateway_id("cagw-1");
            carrier_gateway(read.vpc_id("vpc-1").state(state.into()).build()).0.pending
        };
        assert!(pending("pending") && !pending("available"));
    }

    #[test]
    fn a_route_of_ipv6_leads_to_an_egress_only_gateway() {
        let read = types::Route::builder().destination_ipv6_cidr_block("::/0");
        let found = route(read.egress_only_internet_gateway_id("eigw-1").build()).unwrap();
        let target = Target::EgressOnlyGateway("eigw-1".to_owned());
        assert_eq!((&*found.destination, found.target), ("::/0", target));
    }

    #[test]
    fn an_address_of_others_may_lack_an_allocation() {
        let (_, flaws) = address(types::Address::builder().public_ip("52.1.2.3").build());
        assert!(!flaws.admits(false).unwrap());
    }
}
