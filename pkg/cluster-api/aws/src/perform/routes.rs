//! Route tables, their default route, and who uses them.

use aws_network::{DEFAULT_ROUTE, Tags, Target};
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::ResourceType;

use super::performed::{DONE, Performed, made, unbuildable};
use super::tags::specification;

pub(super) async fn create_table(ec2: &Client, vpc: &str, token: &str, tags: &Tags) -> Performed {
    let call = ec2.create_route_table().vpc_id(vpc).client_token(token);
    let answer =
        call.tag_specifications(specification(ResourceType::RouteTable, tags)).send().await?;
    made(answer.route_table.and_then(|table| table.route_table_id), "id of the route table")
}

pub(super) async fn create(ec2: &Client, table: &str, target: &Target) -> Performed {
    let call = ec2.create_route().route_table_id(table).destination_cidr_block(DEFAULT_ROUTE);
    let call = match target {
        Target::InternetGateway(id) => call.gateway_id(id),
        Target::NatGateway(id) => call.nat_gateway_id(id),
        Target::Other(id) => return Err(no_target(id)),
    };
    call.send().await?;
    DONE
}

pub(super) async fn replace(ec2: &Client, table: &str, target: &Target) -> Performed {
    let call = ec2.replace_route().route_table_id(table).destination_cidr_block(DEFAULT_ROUTE);
    let call = match target {
        Target::InternetGateway(id) => call.gateway_id(id),
        Target::NatGateway(id) => call.nat_gateway_id(id),
        Target::Other(id) => return Err(no_target(id)),
    };
    call.send().await?;
    DONE
}

fn no_target(id: &str) -> crate::call_error::CallError {
    unbuildable(format!("{id} is no gateway that a default route may lead to"))
}

pub(super) async fn delete(ec2: &Client, table: &str) -> Performed {
    let call = ec2.delete_route().route_table_id(table);
    call.destination_cidr_block(DEFAULT_ROUTE).send().await?;
    DONE
}

pub(super) async fn associate(ec2: &Client, table: &str, subnet: &str) -> Performed {
    let call = ec2.associate_route_table().route_table_id(table);
    let answer = call.subnet_id(subnet).send().await?;
    made(answer.association_id, "id of the association")
}

pub(super) async fn replace_association(ec2: &Client, association: &str, table: &str) -> Performed {
    let call = ec2.replace_route_table_association().association_id(association);
    let answer = call.route_table_id(table).send().await?;
    made(answer.new_association_id, "id of the new association")
}

pub(super) async fn disassociate(ec2: &Client, association: &str) -> Performed {
    ec2.disassociate_route_table().association_id(association).send().await?;
    DONE
}

pub(super) async fn delete_table(ec2: &Client, table: &str) -> Performed {
    ec2.delete_route_table().route_table_id(table).send().await?;
    DONE
}
