//! Internet gateways, elastic IPs and NAT gateways.

use aws_network::{Address, InternetGateway, NatGateway, NatState, Scope};
use aws_sdk_ec2::types::{self, Filter, NatGatewayState};

use crate::call::Call;
use crate::call_error::CallError;

use super::pages::{one, pages};
use super::{Describe, PAGE, filter, parsed, required, tags};

impl Describe<'_> {
    pub(super) async fn internet_gateways(
        self,
        scope: &Scope,
    ) -> Result<Vec<InternetGateway>, CallError> {
        let filter = match scope {
            Scope::Tagged => self.tag_filter(),
            Scope::Vpc(id) => filter("attachment.vpc-id", id),
        };
        let mut found = self.internet_gateways_where(filter).await?;
        found.retain(|gateway| {
            self.is_in(scope, gateway.attached_to.as_deref().unwrap_or_default(), &gateway.tags)
        });
        Ok(found)
    }

    pub(super) async fn internet_gateways_where(
        self,
        filter: Filter,
    ) -> Result<Vec<InternetGateway>, CallError> {
        let request =
            self.region.ec2().describe_internet_gateways().filters(filter).max_results(PAGE);
        let found = pages(
            self.region,
            Call::ec2_read("DescribeInternetGateways"),
            |token| request.clone().set_next_token(token).send(),
            |page| (page.internet_gateways, page.next_token),
        );
        found.await?.into_iter().map(internet_gateway).collect()
    }

    pub(super) async fn addresses(self) -> Result<Vec<Address>, CallError> {
        let mut found = self.addresses_where(self.tag_filter()).await?;
        found.retain(|address| self.is_tagged(&address.tags));
        Ok(found)
    }

    /// This call has no pages.
    pub(super) async fn addresses_where(self, filter: Filter) -> Result<Vec<Address>, CallError> {
        let request = self.region.ec2().describe_addresses().filters(filter);
        let call = Call::ec2_read("DescribeAddresses");
        let answer = one(self.region, call, || request.clone().send()).await?;
        answer.addresses.unwrap_or_default().into_iter().map(address).collect()
    }

    pub(super) async fn nat_gateways(self, scope: &Scope) -> Result<Vec<NatGateway>, CallError> {
        let mut found = self.nat_gateways_where(self.filter(scope)).await?;
        found.retain(|nat| self.is_in(scope, &nat.vpc, &nat.tags));
        Ok(found)
    }

    /// Those of several clusters, which each of them has to filter again.
    pub(crate) async fn nat_gateways_of(
        self,
        name: &str,
        values: Vec<String>,
    ) -> Result<Vec<NatGateway>, CallError> {
        self.nat_gateways_where(Filter::builder().name(name).set_values(Some(values)).build()).await
    }

    pub(super) async fn nat_gateways_where(
        self,
        filter: Filter,
    ) -> Result<Vec<NatGateway>, CallError> {
        let request = self.region.ec2().describe_nat_gateways().filter(filter).max_results(PAGE);
        let found = pages(
            self.region,
            Call::ec2_read("DescribeNatGateways"),
            |token| request.clone().set_next_token(token).send(),
            |page| (page.nat_gateways, page.next_token),
        );
        found.await?.into_iter().map(nat_gateway).collect()
    }
}

fn internet_gateway(gateway: types::InternetGateway) -> Result<InternetGateway, CallError> {
    let attachments = gateway.attachments.unwrap_or_default();
    Ok(InternetGateway {
        id: required(gateway.internet_gateway_id, "id of an internet gateway")?,
        attached_to: attachments.into_iter().find_map(|attachment| attachment.vpc_id),
        tags: tags::of_ec2(gateway.tags),
    })
}

fn address(address: types::Address) -> Result<Address, CallError> {
    Ok(Address {
        id: required(address.allocation_id, "allocation id of an address")?,
        ip: parsed(address.public_ip.as_deref(), "public address")?,
        association: address.association_id.filter(|id| !id.is_empty()),
        tags: tags::of_ec2(address.tags),
    })
}

fn nat_gateway(nat: types::NatGateway) -> Result<NatGateway, CallError> {
    let addresses = nat.nat_gateway_addresses.unwrap_or_default();
    let failure = nat.failure_code.map(|code| {
        let message = nat.failure_message.unwrap_or_default();
        format!("{code}: {message}")
    });
    Ok(NatGateway {
        id: required(nat.nat_gateway_id, "id of a NAT gateway")?,
        vpc: nat.vpc_id.unwrap_or_default(),
        subnet: nat.subnet_id.unwrap_or_default(),
        allocations: addresses.iter().filter_map(|one| one.allocation_id.clone()).collect(),
        public_ips: addresses
            .iter()
            .filter_map(|one| one.public_ip.as_deref()?.parse().ok())
            .collect(),
        state: nat_state(nat.state.as_ref())?,
        failure,
        tags: tags::of_ec2(nat.tags),
    })
}

fn nat_state(state: Option<&NatGatewayState>) -> Result<NatState, CallError> {
    match state {
        Some(NatGatewayState::Pending) => Ok(NatState::Pending),
        Some(NatGatewayState::Available) => Ok(NatState::Available),
        Some(NatGatewayState::Failed) => Ok(NatState::Failed),
        Some(NatGatewayState::Deleting) => Ok(NatState::Deleting),
        Some(NatGatewayState::Deleted) => Ok(NatState::Deleted),
        _ => Err(CallError::without("known state of a NAT gateway")),
    }
}
