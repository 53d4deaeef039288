//! What others may have put into a VPC of ours and no other read shows: it keeps the VPC from being
//! deleted, and is read to be named.

use aws_network::{Refusal, classify_read};

use crate::call::Call;
use crate::call_error::CallError;

use super::pages::pages;
use super::{Describe, PAGE, filter};

impl Describe<'_> {
    /// Ids of endpoints, VPN gateways, egress-only gateways and network ACLs of a VPC. Of those that
    /// these credentials may not read nothing is said: nothing but a message rests on it.
    pub(super) async fn residents(self, vpc: &str) -> Result<Vec<String>, CallError> {
        let mut found = if_permitted(self.endpoints(vpc).await)?;
        found.extend(if_permitted(self.vpn_gateways(vpc).await)?);
        found.extend(if_permitted(self.egress_only_gateways(vpc).await)?);
        found.extend(if_permitted(self.network_acls(vpc).await)?);
        Ok(found)
    }

    async fn endpoints(self, vpc: &str) -> Result<Vec<String>, CallError> {
        let request = self.region.ec2().describe_vpc_endpoints();
        let request = request.filters(filter("vpc-id", vpc)).max_results(PAGE);
        let found = pages(
            self.region,
            Call::ec2_read("DescribeVpcEndpoints"),
            |token| request.clone().set_next_token(token).send(),
            |page| (page.vpc_endpoints, page.next_token),
        );
        let here = found.await?.into_iter().filter(|one| one.vpc_id.as_deref() == Some(vpc));
        Ok(here.filter_map(|one| one.vpc_endpoint_id).collect())
    }

    async fn vpn_gateways(self, vpc: &str) -> Result<Vec<String>, CallError> {
        let request = self.region.ec2().describe_vpn_gateways();
        let request = request.filters(filter("attachment.vpc-id", vpc));
        let found = pages(
            self.region,
            Call::ec2_read("DescribeVpnGateways"),
            |_| request.clone().send(),
            |page| (page.vpn_gateways, None),
        );
        let is_here = |one: &aws_sdk_ec2::types::VpnGateway| {
            let mut attachments = one.vpc_attachments.iter().flatten();
            attachments.any(|attachment| attachment.vpc_id.as_deref() == Some(vpc))
        };
        let here = found.await?.into_iter().filter(is_here);
        Ok(here.filter_map(|one| one.vpn_gateway_id).collect())
    }

    /// This call has no filter by VPC (cluster-api-provider-aws#5684).
    async fn egress_only_gateways(self, vpc: &str) -> Result<Vec<String>, CallError> {
        let request = self.region.ec2().describe_egress_only_internet_gateways().max_results(PAGE);
        let found = pages(
            self.region,
            Call::ec2_read("DescribeEgressOnlyInternetGateways"),
            |token| request.clone().set_next_token(token).send(),
            |page| (page.egress_only_internet_gateways, page.next_token),
        );
        let is_here = |one: &aws_sdk_ec2::types::EgressOnlyInternetGateway| {
            let mut attachments = one.attachments.iter().flatten();
            attachments.any(|attachment| attachment.vpc_id.as_deref() == Some(vpc))
        };
        let here = found.await?.into_iter().filter(is_here);
        Ok(here.filter_map(|one| one.egress_only_internet_gateway_id).collect())
    }

    /// Those that do not go with the VPC.
    async fn network_acls(self, vpc: &str) -> Result<Vec<String>, CallError> {
        let request = self.region.ec2().describe_network_acls();
        let request = request.filters(filter("vpc-id", vpc)).max_results(PAGE);
        let found = pages(
            self.region,
            Call::ec2_read("DescribeNetworkAcls"),
            |token| request.clone().set_next_token(token).send(),
            |page| (page.network_acls, page.next_token),
        );
        let here = found
            .await?
            .into_iter()
            .filter(|one| one.vpc_id.as_deref() == Some(vpc) && one.is_default != Some(true));
        Ok(here.filter_map(|one| one.network_acl_id).collect())
    }
}

fn if_permitted(read: Result<Vec<String>, CallError>) -> Result<Vec<String>, CallError> {
    match read {
        Err(error)
            if error.refused().is_some_and(|it| classify_read(it) == Refusal::Permission) =>
        {
            Ok(Vec::new())
        }
        read => read,
    }
}
