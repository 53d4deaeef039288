//! Writes: each action is one request. This file has those of EC2, the files below it those of both
//! kinds of load balancers.

use aws_network::{Action, Answer, BastionLaunch, Rule, Source, Tags, Target};
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{
    AttributeBooleanValue, AvailabilityMode, ConnectivityType, DomainType, HttpTokensState,
    InstanceMetadataOptionsRequest, InstanceNetworkInterfaceSpecification, InstanceType,
    IpPermission, IpRange, Ipv6Range, PrefixListId, ResourceType, Tag, TagSpecification,
    UserIdGroupPair,
};
use cidr::IpNet;

use crate::call::AwsError;

pub(crate) mod classic;
pub(crate) mod network_balancers;

/// An answer, or the error.
pub(crate) type Performed = Result<Answer, AwsError>;

/// A write whose answer says nothing.
fn done<T, E>(sent: Result<T, E>) -> Performed
where
    AwsError: From<E>,
{
    sent?;
    Ok(Answer::default())
}

/// The answer to a create. One without an id may have made something.
fn made(id: Option<String>, what: &'static str) -> Performed {
    let id = id.ok_or_else(|| AwsError::without(what))?;
    Ok(Answer { id, ..Answer::default() })
}

/// The error for values that cannot be put into a request, which was not sent.
fn unbuildable(error: impl std::fmt::Display) -> AwsError {
    AwsError::NotSent { reason: error.to_string() }
}

/// The destination of a route, of either family, which three calls name.
macro_rules! to_destination {
    ($call:expr, $destination:expr) => {
        if $destination.contains(':') {
            $call.destination_ipv6_cidr_block(*$destination)
        } else {
            $call.destination_cidr_block(*$destination)
        }
    };
}

/// The target of a default route, which two calls set.
macro_rules! to_target {
    ($call:expr, $target:expr) => {
        match $target {
            Target::InternetGateway(id) => $call.gateway_id(id),
            Target::NatGateway(id) => $call.nat_gateway_id(id),
            Target::EgressOnlyGateway(id) => $call.egress_only_internet_gateway_id(id),
            Target::CarrierGateway(id) => $call.carrier_gateway_id(id),
            Target::Other(id) => {
                return Err(unbuildable(format!("{id} is not a gateway for a default route")));
            }
        }
    };
}

/// Sends the request of a write that creates nothing.
pub(crate) async fn perform(ec2: &Client, action: &Action) -> Performed {
    match action {
        Action::EnableDnsSupport { vpc } => {
            let call = ec2.modify_vpc_attribute().vpc_id(vpc);
            done(call.enable_dns_support(flag(true)).send().await)
        }
        Action::EnableDnsHostnames { vpc } => {
            let call = ec2.modify_vpc_attribute().vpc_id(vpc);
            done(call.enable_dns_hostnames(flag(true)).send().await)
        }
        Action::AssociateCidr { vpc, cidr } => {
            let call = ec2.associate_vpc_cidr_block().vpc_id(vpc).cidr_block(cidr.to_string());
            done(call.send().await)
        }
        Action::DeleteVpc { vpc } => done(ec2.delete_vpc().vpc_id(vpc).send().await),
        Action::SetMapPublicIp { subnet, enabled } => {
            let call = ec2.modify_subnet_attribute().subnet_id(subnet);
            done(call.map_public_ip_on_launch(flag(*enabled)).send().await)
        }
        Action::AssignIpv6 { subnet } => {
            let call = ec2.modify_subnet_attribute().subnet_id(subnet);
            done(call.assign_ipv6_address_on_creation(flag(true)).send().await)
        }
        Action::DeleteSubnet { subnet } => done(ec2.delete_subnet().subnet_id(subnet).send().await),
        Action::AttachInternetGateway { gateway, vpc } => {
            let call = ec2.attach_internet_gateway().internet_gateway_id(gateway);
            done(call.vpc_id(vpc).send().await)
        }
        Action::DetachInternetGateway { gateway, vpc } => {
            let call = ec2.detach_internet_gateway().internet_gateway_id(gateway);
            done(call.vpc_id(vpc).send().await)
        }
        Action::DeleteInternetGateway { gateway } => {
            done(ec2.delete_internet_gateway().internet_gateway_id(gateway).send().await)
        }
        Action::DeleteEgressOnlyGateway { gateway } => {
            let call = ec2.delete_egress_only_internet_gateway();
            done(call.egress_only_internet_gateway_id(gateway).send().await)
        }
        Action::DeleteCarrierGateway { gateway } => {
            done(ec2.delete_carrier_gateway().carrier_gateway_id(gateway).send().await)
        }
        Action::ReleaseAddress { allocation } => {
            done(ec2.release_address().allocation_id(allocation).send().await)
        }
        Action::DeleteNatGateway { nat_gateway } => {
            done(ec2.delete_nat_gateway().nat_gateway_id(nat_gateway).send().await)
        }
        Action::AuthorizeIngress { group, rules } => {
            let call = ec2.authorize_security_group_ingress().group_id(group);
            done(call.set_ip_permissions(Some(permissions(rules))).send().await)
        }
        Action::RevokeIngress { group, rules } => {
            let call = ec2.revoke_security_group_ingress().group_id(group);
            done(call.set_ip_permissions(Some(permissions(rules))).send().await)
        }
        Action::DescribeIngress { group, rules } => {
            let call = ec2.update_security_group_rule_descriptions_ingress().group_id(group);
            done(call.set_ip_permissions(Some(permissions(rules))).send().await)
        }
        Action::DeleteSecurityGroup { group } => {
            done(ec2.delete_security_group().group_id(group).send().await)
        }
        Action::TerminateInstances { instances } => {
            done(ec2.terminate_instances().set_instance_ids(Some(instances.clone())).send().await)
        }
        Action::DeleteNetworkInterface { interface } => {
            done(ec2.delete_network_interface().network_interface_id(interface).send().await)
        }
        Action::CreateTags { resources, tags } => {
            let call = ec2.create_tags().set_resources(Some(resources.clone()));
            done(call.set_tags(Some(list(tags))).send().await)
        }
        Action::DeleteTags { resources, keys } => {
            let keys = keys.iter().map(|key| Tag::builder().key(key).build()).collect();
            let call = ec2.delete_tags().set_resources(Some(resources.clone()));
            done(call.set_tags(Some(keys)).send().await)
        }
        other => perform_on_routes(ec2, other).await,
    }
}

async fn perform_on_routes(ec2: &Client, action: &Action) -> Performed {
    match action {
        Action::CreateRoute { table, destination, target } => {
            let call = ec2.create_route().route_table_id(table);
            let call = to_target!(to_destination!(call, destination), target);
            done(call.send().await)
        }
        Action::ReplaceRoute { table, destination, target } => {
            let call = ec2.replace_route().route_table_id(table);
            let call = to_target!(to_destination!(call, destination), target);
            done(call.send().await)
        }
        Action::DeleteRoute { table, destination } => {
            let call = ec2.delete_route().route_table_id(table);
            done(to_destination!(call, destination).send().await)
        }
        Action::AssociateRouteTable { table, subnet } => {
            let call = ec2.associate_route_table().route_table_id(table);
            made(call.subnet_id(subnet).send().await?.association_id, "id of the association")
        }
        Action::ReplaceAssociation { association, table } => {
            let call = ec2.replace_route_table_association().association_id(association);
            let answer = call.route_table_id(table).send().await?;
            made(answer.new_association_id, "id of the new association")
        }
        Action::DisassociateRouteTable { association } => {
            done(ec2.disassociate_route_table().association_id(association).send().await)
        }
        Action::DeleteRouteTable { table } => {
            done(ec2.delete_route_table().route_table_id(table).send().await)
        }
        create => make(ec2, create).await,
    }
}

async fn make(ec2: &Client, action: &Action) -> Performed {
    match action {
        Action::CreateVpc { cidr, ipv6, tags } => {
            let call = ec2.create_vpc().cidr_block(cidr.to_string());
            let call = call.set_amazon_provided_ipv6_cidr_block(ipv6.then_some(true));
            let answer = call.tag_specifications(marks(ResourceType::Vpc, tags)).send().await?;
            made(answer.vpc.and_then(|vpc| vpc.vpc_id), "id of the VPC")
        }
        Action::CreateSubnet { vpc, cidr, ipv6, zone, tags } => {
            let call = ec2.create_subnet().vpc_id(vpc).cidr_block(cidr.to_string());
            let call = call.set_ipv6_cidr_block(ipv6.map(|cidr| cidr.to_string()));
            let call = call.availability_zone(zone);
            let answer = call.tag_specifications(marks(ResourceType::Subnet, tags)).send().await?;
            made(answer.subnet.and_then(|subnet| subnet.subnet_id), "id of the subnet")
        }
        Action::CreateInternetGateway { tags } => {
            let marks = marks(ResourceType::InternetGateway, tags);
            let answer = ec2.create_internet_gateway().tag_specifications(marks).send().await?;
            let id = answer.internet_gateway.and_then(|gateway| gateway.internet_gateway_id);
            made(id, "id of the internet gateway")
        }
        Action::CreateEgressOnlyGateway { vpc, token, tags, .. } => {
            let call = ec2.create_egress_only_internet_gateway().vpc_id(vpc).client_token(token);
            let marks = marks(ResourceType::EgressOnlyInternetGateway, tags);
            let answer = call.tag_specifications(marks).send().await?;
            let gateway = answer.egress_only_internet_gateway;
            let id = gateway.and_then(|gateway| gateway.egress_only_internet_gateway_id);
            made(id, "id of the egress-only internet gateway")
        }
        Action::CreateCarrierGateway { vpc, token, tags, .. } => {
            let call = ec2.create_carrier_gateway().vpc_id(vpc).client_token(token);
            let marks = marks(ResourceType::CarrierGateway, tags);
            let answer = call.tag_specifications(marks).send().await?;
            let id = answer.carrier_gateway.and_then(|gateway| gateway.carrier_gateway_id);
            made(id, "id of the carrier gateway")
        }
        Action::AllocateAddress { tags, .. } => {
            let call = ec2.allocate_address().domain(DomainType::Vpc);
            let marks = marks(ResourceType::ElasticIp, tags);
            let answer = call.tag_specifications(marks).send().await?;
            let address = answer.public_ip.and_then(|text| text.parse().ok());
            let made = made(answer.allocation_id, "allocation id of the address")?;
            Ok(Answer { address, ..made })
        }
        Action::CreateNatGateway { subnet, allocation, token, tags, .. } => {
            let call = ec2.create_nat_gateway().subnet_id(subnet).allocation_id(allocation);
            let call = call.client_token(token);
            let marks = marks(ResourceType::Natgateway, tags);
            let answer = call.tag_specifications(marks).send().await?;
            made(answer.nat_gateway.and_then(|nat| nat.nat_gateway_id), "id of the NAT gateway")
        }
        Action::CreateRegionalNatGateway { vpc, token, tags, .. } => {
            let call = ec2.create_nat_gateway().vpc_id(vpc).client_token(token);
            let call = call.set_availability_mode(Some(AvailabilityMode::Regional));
            let call = call.set_connectivity_type(Some(ConnectivityType::Public));
            let marks = marks(ResourceType::Natgateway, tags);
            let answer = call.tag_specifications(marks).send().await?;
            made(answer.nat_gateway.and_then(|nat| nat.nat_gateway_id), "id of the NAT gateway")
        }
        Action::CreateRouteTable { vpc, token, tags, .. } => {
            let call = ec2.create_route_table().vpc_id(vpc).client_token(token);
            let marks = marks(ResourceType::RouteTable, tags);
            let answer = call.tag_specifications(marks).send().await?;
            made(answer.route_table.and_then(|table| table.route_table_id), "id of the route table")
        }
        Action::CreateSecurityGroup { vpc, name, description, tags, .. } => {
            let call = ec2.create_security_group().vpc_id(vpc).group_name(name);
            let call = call.description(description);
            let marks = marks(ResourceType::SecurityGroup, tags);
            let answer = call.tag_specifications(marks).send().await?;
            made(answer.group_id, "id of the security group")
        }
        Action::RunBastion { launch, .. } => run_bastion(ec2, launch).await,
        other => Err(unbuildable(format!("{} is not a call of EC2", other.operation()))),
    }
}

async fn run_bastion(ec2: &Client, launch: &BastionLaunch) -> Performed {
    let session_tokens_only =
        InstanceMetadataOptionsRequest::builder().http_tokens(HttpTokensState::Required).build();
    // What the subnet gives its instances may change between the plan and the launch, and an
    // instance without a public address never gets one.
    let interface = InstanceNetworkInterfaceSpecification::builder()
        .device_index(0)
        .subnet_id(&launch.subnet)
        .groups(&launch.group)
        .associate_public_ip_address(true)
        .build();
    let call = ec2
        .run_instances()
        .min_count(1)
        .max_count(1)
        .image_id(&launch.image)
        .instance_type(InstanceType::from(launch.instance_type.as_str()))
        .set_key_name(launch.key.clone())
        .network_interfaces(interface)
        .metadata_options(session_tokens_only)
        .client_token(&launch.token)
        .tag_specifications(marks(ResourceType::Instance, &launch.tags))
        .tag_specifications(marks(ResourceType::Volume, &launch.tags));
    let instance = call.send().await?.instances.unwrap_or_default().into_iter().next();
    made(instance.and_then(|instance| instance.instance_id), "id of the instance")
}

fn flag(value: bool) -> AttributeBooleanValue {
    AttributeBooleanValue::builder().value(value).build()
}

/// The tags of a resource that is being created.
fn marks(kind: ResourceType, tags: &Tags) -> TagSpecification {
    TagSpecification::builder().resource_type(kind).set_tags(Some(list(tags))).build()
}

fn list(tags: &Tags) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}

fn permissions(rules: &[Rule]) -> Vec<IpPermission> {
    rules.iter().map(permission).collect()
}

fn permission(rule: &Rule) -> IpPermission {
    let key = &rule.key;
    let permission = IpPermission::builder()
        .ip_protocol(&key.protocol)
        .from_port(key.from_port)
        .to_port(key.to_port);
    // AWS takes no empty description.
    let description = Some(rule.description.clone()).filter(|text| !text.is_empty());
    let permission = match &key.source {
        Source::Cidr(cidr @ IpNet::V4(_)) => {
            let range = IpRange::builder().cidr_ip(cidr.to_string());
            permission.ip_ranges(range.set_description(description).build())
        }
        Source::Cidr(cidr @ IpNet::V6(_)) => {
            let range = Ipv6Range::builder().cidr_ipv6(cidr.to_string());
            permission.ipv6_ranges(range.set_description(description).build())
        }
        Source::Group(id) => {
            // One of another account is named with it, as `describe` reads it.
            let (account, id) = match id.split_once('/') {
                Some((account, id)) => (Some(account.to_owned()), id),
                None => (None, &**id),
            };
            let pair = UserIdGroupPair::builder().group_id(id).set_user_id(account);
            permission.user_id_group_pairs(pair.set_description(description).build())
        }
        Source::PrefixList(id) => {
            let list = PrefixListId::builder().prefix_list_id(id);
            permission.prefix_list_ids(list.set_description(description).build())
        }
    };
    permission.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_a_peer_account_is_named_with_its_account() {
        let pair = |id: &str| {
            let rule = Rule::new("tcp", (22, 22), Source::Group(id.to_owned()), "");
            let pair = permission(&rule).user_id_group_pairs.unwrap().remove(0);
            (pair.user_id, pair.group_id.unwrap())
        };
        assert_eq!(pair("sg-1"), (None, "sg-1".to_owned()));
        assert_eq!(pair("222222222222/sg-1"), (Some("222222222222".to_owned()), "sg-1".to_owned()));
    }
}
