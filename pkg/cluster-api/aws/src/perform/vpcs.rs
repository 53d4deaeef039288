//! VPCs and subnets.

use aws_network::Tags;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{AttributeBooleanValue, ResourceType};
use cidr::IpNet;

use super::performed::{DONE, Performed, made};
use super::tags::specification;

fn flag(value: bool) -> AttributeBooleanValue {
    AttributeBooleanValue::builder().value(value).build()
}

pub(super) async fn create(ec2: &Client, cidr: IpNet, tags: &Tags) -> Performed {
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

pub(super) async fn delete(ec2: &Client, vpc: &str) -> Performed {
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

pub(super) async fn map_ip(ec2: &Client, subnet: &str, enabled: bool) -> Performed {
    let call = ec2.modify_subnet_attribute().subnet_id(subnet);
    call.map_public_ip_on_launch(flag(enabled)).send().await?;
    DONE
}

pub(super) async fn delete_subnet(ec2: &Client, subnet: &str) -> Performed {
    ec2.delete_subnet().subnet_id(subnet).send().await?;
    DONE
}
