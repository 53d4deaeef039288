//! Internet gateways, elastic IPs and NAT gateways.

use aws_network::{Answer, Tags};
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{DomainType, ResourceType};

use super::performed::{DONE, Performed, made};
use super::tags::specification;

pub(super) async fn create(ec2: &Client, tags: &Tags) -> Performed {
    let specification = specification(ResourceType::InternetGateway, tags);
    let answer = ec2.create_internet_gateway().tag_specifications(specification).send().await?;
    let gateway = answer.internet_gateway;
    made(gateway.and_then(|gateway| gateway.internet_gateway_id), "id of the internet gateway")
}

pub(super) async fn attach(ec2: &Client, gateway: &str, vpc: &str) -> Performed {
    ec2.attach_internet_gateway().internet_gateway_id(gateway).vpc_id(vpc).send().await?;
    DONE
}

pub(super) async fn detach(ec2: &Client, gateway: &str, vpc: &str) -> Performed {
    ec2.detach_internet_gateway().internet_gateway_id(gateway).vpc_id(vpc).send().await?;
    DONE
}

pub(super) async fn delete(ec2: &Client, gateway: &str) -> Performed {
    ec2.delete_internet_gateway().internet_gateway_id(gateway).send().await?;
    DONE
}

pub(super) async fn allocate(ec2: &Client, tags: &Tags) -> Performed {
    let call = ec2.allocate_address().domain(DomainType::Vpc);
    let answer =
        call.tag_specifications(specification(ResourceType::ElasticIp, tags)).send().await?;
    let address = answer.public_ip.and_then(|text| text.parse().ok());
    let made = made(answer.allocation_id, "allocation id of the address")?;
    Ok(Answer { address, ..made })
}

pub(super) async fn release(ec2: &Client, allocation: &str) -> Performed {
    ec2.release_address().allocation_id(allocation).send().await?;
    DONE
}

pub(super) async fn create_nat(
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

pub(super) async fn delete_nat(ec2: &Client, nat_gateway: &str) -> Performed {
    ec2.delete_nat_gateway().nat_gateway_id(nat_gateway).send().await?;
    DONE
}
