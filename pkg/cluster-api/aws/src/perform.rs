//! Writes: each action is one request.

use aws_network::Action;

use crate::gate::Gate;
use crate::region::Region;

use performed::{DONE, Performed};

mod classic;
mod gateways;
mod groups;
mod instances;
mod network_balancers;
mod performed;
mod routes;
mod tags;
mod vpcs;

/// Sends one request for an action, through the gate.
pub(crate) async fn perform(region: &Region, gate: &Gate, action: &Action) -> Performed {
    let ec2 = &match action {
        Action::Elb(action) => return classic::perform(&region.gated_elb(gate), action).await,
        Action::ElbV2(action) => {
            return network_balancers::perform(&region.gated_elbv2(gate), action).await;
        }
        _ => region.gated_ec2(gate),
    };
    match action {
        Action::Elb(_) | Action::ElbV2(_) => DONE,
        Action::CreateVpc { cidr, tags } => vpcs::create(ec2, *cidr, tags).await,
        Action::EnableDnsSupport { vpc } => vpcs::enable_dns_support(ec2, vpc).await,
        Action::EnableDnsHostnames { vpc } => vpcs::enable_dns_hostnames(ec2, vpc).await,
        Action::DeleteVpc { vpc } => vpcs::delete(ec2, vpc).await,
        Action::CreateSubnet { vpc, cidr, zone, tags } => {
            vpcs::create_subnet(ec2, vpc, *cidr, zone, tags).await
        }
        Action::SetMapPublicIp { subnet, enabled } => vpcs::map_ip(ec2, subnet, *enabled).await,
        Action::DeleteSubnet { subnet } => vpcs::delete_subnet(ec2, subnet).await,
        Action::CreateInternetGateway { tags } => gateways::create(ec2, tags).await,
        Action::AttachInternetGateway { gateway, vpc } => gateways::attach(ec2, gateway, vpc).await,
        Action::DetachInternetGateway { gateway, vpc } => gateways::detach(ec2, gateway, vpc).await,
        Action::DeleteInternetGateway { gateway } => gateways::delete(ec2, gateway).await,
        Action::AllocateAddress { tags, .. } => gateways::allocate(ec2, tags).await,
        Action::ReleaseAddress { allocation } => gateways::release(ec2, allocation).await,
        Action::CreateNatGateway { subnet, allocation, token, tags, .. } => {
            gateways::create_nat(ec2, subnet, allocation, token, tags).await
        }
        Action::DeleteNatGateway { nat_gateway } => gateways::delete_nat(ec2, nat_gateway).await,
        Action::CreateRouteTable { vpc, token, tags, .. } => {
            routes::create_table(ec2, vpc, token, tags).await
        }
        Action::CreateRoute { table, target } => routes::create(ec2, table, target).await,
        Action::ReplaceRoute { table, target } => routes::replace(ec2, table, target).await,
        Action::DeleteRoute { table } => routes::delete(ec2, table).await,
        Action::AssociateRouteTable { table, subnet } => {
            routes::associate(ec2, table, subnet).await
        }
        Action::ReplaceAssociation { association, table } => {
            routes::replace_association(ec2, association, table).await
        }
        Action::DisassociateRouteTable { association } => {
            routes::disassociate(ec2, association).await
        }
        Action::DeleteRouteTable { table } => routes::delete_table(ec2, table).await,
        Action::CreateSecurityGroup { vpc, name, description, tags, .. } => {
            groups::create(ec2, vpc, name, description, tags).await
        }
        Action::AuthorizeIngress { group, rules } => groups::authorize(ec2, group, rules).await,
        Action::RevokeIngress { group, rules } => groups::revoke(ec2, group, rules).await,
        Action::DescribeIngress { group, rules } => groups::describe(ec2, group, rules).await,
        Action::DeleteSecurityGroup { group } => groups::delete(ec2, group).await,
        Action::RunBastion { launch, .. } => instances::run(ec2, launch).await,
        Action::TerminateInstances { instances } => instances::terminate(ec2, instances).await,
        Action::DeleteNetworkInterface { interface } => {
            instances::delete_interface(ec2, interface).await
        }
        Action::CreateTags { resources, tags } => tags::create(ec2, resources, tags).await,
        Action::DeleteTags { resources, keys } => tags::delete(ec2, resources, keys).await,
    }
}
