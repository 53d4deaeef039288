//! Calls of EC2 that write: one function, one request.

use aws_network::{Answer, BastionLaunch, DEFAULT_ROUTE, Rule, Source, Tags, Target};
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{
    AttributeBooleanValue, DomainType, HttpTokensState, InstanceMetadataOptionsRequest,
    InstanceNetworkInterfaceSpecification, InstanceType, IpPermission, IpRange, Ipv6Range,
    PrefixListId, ResourceType, Tag, TagSpecification, UserIdGroupPair,
};
use cidr::IpNet;

use super::performed::{DONE, Performed, made, unbuildable};

fn flag(value: bool) -> AttributeBooleanValue {
    AttributeBooleanValue::builder().value(value).build()
}

pub(super) async fn create_vpc(ec2: &Client, cidr: IpNet, tags: &Tags) -> Performed {
    let call = ec2.create_vpc().cidr_block(cidr.to_string());
    let answer = call.tag_specifications(specification(ResourceType::Vpc, tags)).send().await?;
    made(answer.vpc.and_then(|vpc| vpc.vpc_id), "id of the VPC")
}

pub(super) async fn enable_dns_support(ec2: &Client, vpc: &str) -> Performed {
    ec2.modify_vpc_attribute().vpc_id(vpc).enable_dns_support(flag(true)).send().await?;
    DONE
}

pub(super) async fn enable_dns_hostnames(ec2: &Client, vpc: &str) -> Performed {
    ec2.modify_vpc_attribute().vpc_id(vpc).enable_dns_hostnames(flag(true)).send().await?;
    DONE
}

pub(super) async fn delete_vpc(ec2: &Client, vpc: &str) -> Performed {
    ec2.delete_vpc().vpc_id(vpc).send().await?;
    DONE
}

pub(super) async fn create_subnet(
    ec2: &Client,
    vpc: &str,
    cidr: IpNet,
    zone: &str,
    tags: &Tags,
) -> Performed {
    let call = ec2.create_subnet().vpc_id(vpc).cidr_block(cidr.to_string()).availability_zone(zone);
    let answer = call.tag_specifications(specification(ResourceType::Subnet, tags)).send().await?;
    made(answer.subnet.and_then(|subnet| subnet.subnet_id), "id of the subnet")
}

pub(super) async fn map_public_ip(ec2: &Client, subnet: &str, enabled: bool) -> Performed {
    let call = ec2.modify_subnet_attribute().subnet_id(subnet);
    call.map_public_ip_on_launch(flag(enabled)).send().await?;
    DONE
}

pub(super) async fn delete_subnet(ec2: &Client, subnet: &str) -> Performed {
    ec2.delete_subnet().subnet_id(subnet).send().await?;
    DONE
}

pub(super) async fn create_internet_gateway(ec2: &Client, tags: &Tags) -> Performed {
    let specification = specification(ResourceType::InternetGateway, tags);
    let answer = ec2.create_internet_gateway().tag_specifications(specification).send().await?;
    let gateway = answer.internet_gateway;
    made(gateway.and_then(|gateway| gateway.internet_gateway_id), "id of the internet gateway")
}

pub(super) async fn attach_internet_gateway(ec2: &Client, gateway: &str, vpc: &str) -> Performed {
    ec2.attach_internet_gateway().internet_gateway_id(gateway).vpc_id(vpc).send().await?;
    DONE
}

pub(super) async fn detach_internet_gateway(ec2: &Client, gateway: &str, vpc: &str) -> Performed {
    ec2.detach_internet_gateway().internet_gateway_id(gateway).vpc_id(vpc).send().await?;
    DONE
}

pub(super) async fn delete_internet_gateway(ec2: &Client, gateway: &str) -> Performed {
    ec2.delete_internet_gateway().internet_gateway_id(gateway).send().await?;
    DONE
}

pub(super) async fn allocate_address(ec2: &Client, tags: &Tags) -> Performed {
    let call = ec2.allocate_address().domain(DomainType::Vpc);
    let answer =
        call.tag_specifications(specification(ResourceType::ElasticIp, tags)).send().await?;
    let address = answer.public_ip.and_then(|text| text.parse().ok());
    let made = made(answer.allocation_id, "allocation id of the address")?;
    Ok(Answer { address, ..made })
}

pub(super) async fn release_address(ec2: &Client, allocation: &str) -> Performed {
    ec2.release_address().allocation_id(allocation).send().await?;
    DONE
}

pub(super) async fn create_nat_gateway(
    ec2: &Client,
    subnet: &str,
    allocation: &str,
    token: &str,
    tags: &Tags,
) -> Performed {
    let call = ec2.create_nat_gateway().subnet_id(subnet).allocation_id(allocation);
    let call = call.client_token(token);
    let answer =
        call.tag_specifications(specification(ResourceType::Natgateway, tags)).send().await?;
    made(answer.nat_gateway.and_then(|nat| nat.nat_gateway_id), "id of the NAT gateway")
}

pub(super) async fn delete_nat_gateway(ec2: &Client, nat_gateway: &str) -> Performed {
    ec2.delete_nat_gateway().nat_gateway_id(nat_gateway).send().await?;
    DONE
}

pub(super) async fn create_route_table(
    ec2: &Client,
    vpc: &str,
    token: &str,
    tags: &Tags,
) -> Performed {
    let call = ec2.create_route_table().vpc_id(vpc).client_token(token);
    let answer =
        call.tag_specifications(specification(ResourceType::RouteTable, tags)).send().await?;
    made(answer.route_table.and_then(|table| table.route_table_id), "id of the route table")
}

pub(super) async fn create_route(ec2: &Client, table: &str, target: &Target) -> Performed {
    let call = ec2.create_route().route_table_id(table).destination_cidr_block(DEFAULT_ROUTE);
    let call = match target {
        Target::InternetGateway(id) => call.gateway_id(id),
        Target::NatGateway(id) => call.nat_gateway_id(id),
        Target::Other(id) => return Err(no_target(id)),
    };
    call.send().await?;
    DONE
}

pub(super) async fn replace_route(ec2: &Client, table: &str, target: &Target) -> Performed {
    let call = ec2.replace_route().route_table_id(table).destination_cidr_block(DEFAULT_ROUTE);
    let call = match target {
        Target::InternetGateway(id) => call.gateway_id(id),
        Target::NatGateway(id) => call.nat_gateway_id(id),
        Target::Other(id) => return Err(no_target(id)),
    };
    call.send().await?;
    DONE
}

fn no_target(id: &str) -> crate::call::AwsError {
    unbuildable(format!("{id} is not a gateway for a default route"))
}

pub(super) async fn delete_route(ec2: &Client, table: &str) -> Performed {
    let call = ec2.delete_route().route_table_id(table);
    call.destination_cidr_block(DEFAULT_ROUTE).send().await?;
    DONE
}

pub(super) async fn associate_route_table(ec2: &Client, table: &str, subnet: &str) -> Performed {
    let call = ec2.associate_route_table().route_table_id(table);
    let answer = call.subnet_id(subnet).send().await?;
    made(answer.association_id, "id of the association")
}

pub(super) async fn replace_association(ec2: &Client, association: &str, table: &str) -> Performed {
    let call = ec2.replace_route_table_association().association_id(association);
    let answer = call.route_table_id(table).send().await?;
    made(answer.new_association_id, "id of the new association")
}

pub(super) async fn disassociate_route_table(ec2: &Client, association: &str) -> Performed {
    ec2.disassociate_route_table().association_id(association).send().await?;
    DONE
}

pub(super) async fn delete_route_table(ec2: &Client, table: &str) -> Performed {
    ec2.delete_route_table().route_table_id(table).send().await?;
    DONE
}

pub(super) async fn create_security_group(
    ec2: &Client,
    vpc: &str,
    name: &str,
    description: &str,
    tags: &Tags,
) -> Performed {
    let call = ec2.create_security_group().vpc_id(vpc).group_name(name).description(description);
    let specification = specification(ResourceType::SecurityGroup, tags);
    let answer = call.tag_specifications(specification).send().await?;
    made(answer.group_id, "id of the security group")
}

pub(super) async fn authorize_ingress(ec2: &Client, group: &str, rules: &[Rule]) -> Performed {
    let call = ec2.authorize_security_group_ingress().group_id(group);
    call.set_ip_permissions(Some(permissions(rules))).send().await?;
    DONE
}

pub(super) async fn revoke_ingress(ec2: &Client, group: &str, rules: &[Rule]) -> Performed {
    let call = ec2.revoke_security_group_ingress().group_id(group);
    call.set_ip_permissions(Some(permissions(rules))).send().await?;
    DONE
}

pub(super) async fn describe_ingress(ec2: &Client, group: &str, rules: &[Rule]) -> Performed {
    let call = ec2.update_security_group_rule_descriptions_ingress().group_id(group);
    call.set_ip_permissions(Some(permissions(rules))).send().await?;
    DONE
}

pub(super) async fn delete_security_group(ec2: &Client, group: &str) -> Performed {
    ec2.delete_security_group().group_id(group).send().await?;
    DONE
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

pub(super) async fn run_bastion(ec2: &Client, launch: &BastionLaunch) -> Performed {
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
        .tag_specifications(specification(ResourceType::Instance, &launch.tags))
        .tag_specifications(specification(ResourceType::Volume, &launch.tags));
    let instance = call.send().await?.instances.unwrap_or_default().into_iter().next();
    made(instance.and_then(|instance| instance.instance_id), "id of the instance")
}

pub(super) async fn terminate_instances(ec2: &Client, instances: &[String]) -> Performed {
    ec2.terminate_instances().set_instance_ids(Some(instances.to_vec())).send().await?;
    DONE
}

pub(super) async fn delete_network_interface(ec2: &Client, interface: &str) -> Performed {
    ec2.delete_network_interface().network_interface_id(interface).send().await?;
    DONE
}

/// The tags of a resource that is being created.
pub(super) fn specification(kind: ResourceType, tags: &Tags) -> TagSpecification {
    TagSpecification::builder().resource_type(kind).set_tags(Some(list(tags))).build()
}

fn list(tags: &Tags) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}

pub(super) async fn create_tags(ec2: &Client, resources: &[String], tags: &Tags) -> Performed {
    let call = ec2.create_tags().set_resources(Some(resources.to_vec()));
    call.set_tags(Some(list(tags))).send().await?;
    DONE
}

pub(super) async fn delete_tags(ec2: &Client, resources: &[String], keys: &[String]) -> Performed {
    let keys = keys.iter().map(|key| Tag::builder().key(key).build()).collect();
    let call = ec2.delete_tags().set_resources(Some(resources.to_vec()));
    call.set_tags(Some(keys)).send().await?;
    DONE
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
