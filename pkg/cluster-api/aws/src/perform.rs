//! Writes: each action is one request.

use aws_network::Action;
use performed::{DONE, Performed};

use crate::gate::Gate;
use crate::region::Region;

mod classic;
mod ec2;
mod network_balancers;
mod performed;

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
        Action::CreateVpc { cidr, tags } => ec2::create_vpc(ec2, *cidr, tags).await,
        Action::EnableDnsSupport { vpc } => ec2::enable_dns_support(ec2, vpc).await,
        Action::EnableDnsHostnames { vpc } => ec2::enable_dns_hostnames(ec2, vpc).await,
        Action::DeleteVpc { vpc } => ec2::delete_vpc(ec2, vpc).await,
        Action::CreateSubnet { vpc, cidr, zone, tags } => {
            ec2::create_subnet(ec2, vpc, *cidr, zone, tags).await
        }
        Action::SetMapPublicIp { subnet, enabled } => {
            ec2::map_public_ip(ec2, subnet, *enabled).await
        }
        Action::DeleteSubnet { subnet } => ec2::delete_subnet(ec2, subnet).await,
        Action::CreateInternetGateway { tags } => ec2::create_internet_gateway(ec2, tags).await,
        Action::AttachInternetGateway { gateway, vpc } => {
            ec2::attach_internet_gateway(ec2, gateway, vpc).await
        }
        Action::DetachInternetGateway { gateway, vpc } => {
            ec2::detach_internet_gateway(ec2, gateway, vpc).await
        }
        Action::DeleteInternetGateway { gateway } => {
            ec2::delete_internet_gateway(ec2, gateway).await
        }
        Action::AllocateAddress { tags, .. } => ec2::allocate_address(ec2, tags).await,
        Action::ReleaseAddress { allocation } => ec2::release_address(ec2, allocation).await,
        Action::CreateNatGateway { subnet, allocation, token, tags, .. } => {
            ec2::create_nat_gateway(ec2, subnet, allocation, token, tags).await
        }
        Action::DeleteNatGateway { nat_gateway } => ec2::delete_nat_gateway(ec2, nat_gateway).await,
        Action::CreateRouteTable { vpc, token, tags, .. } => {
            ec2::create_route_table(ec2, vpc, token, tags).await
        }
        Action::CreateRoute { table, target } => ec2::create_route(ec2, table, target).await,
        Action::ReplaceRoute { table, target } => ec2::replace_route(ec2, table, target).await,
        Action::DeleteRoute { table } => ec2::delete_route(ec2, table).await,
        Action::AssociateRouteTable { table, subnet } => {
            ec2::associate_route_table(ec2, table, subnet).await
        }
        Action::ReplaceAssociation { association, table } => {
            ec2::replace_association(ec2, association, table).await
        }
        Action::DisassociateRouteTable { association } => {
            ec2::disassociate_route_table(ec2, association).await
        }
        Action::DeleteRouteTable { table } => ec2::delete_route_table(ec2, table).await,
        Action::CreateSecurityGroup { vpc, name, description, tags, .. } => {
            ec2::create_security_group(ec2, vpc, name, description, tags).await
        }
        Action::AuthorizeIngress { group, rules } => {
            ec2::authorize_ingress(ec2, group, rules).await
        }
        Action::RevokeIngress { group, rules } => ec2::revoke_ingress(ec2, group, rules).await,
        Action::DescribeIngress { group, rules } => ec2::describe_ingress(ec2, group, rules).await,
        Action::DeleteSecurityGroup { group } => ec2::delete_security_group(ec2, group).await,
        Action::RunBastion { launch, .. } => ec2::run_bastion(ec2, launch).await,
        Action::TerminateInstances { instances } => ec2::terminate_instances(ec2, instances).await,
        Action::DeleteNetworkInterface { interface } => {
            ec2::delete_network_interface(ec2, interface).await
        }
        Action::CreateTags { resources, tags } => ec2::create_tags(ec2, resources, tags).await,
        Action::DeleteTags { resources, keys } => ec2::delete_tags(ec2, resources, keys).await,
    }
}
