//! Security groups and their rules.

use aws_network::{Rule, Source, Tags};
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{
    IpPermission, IpRange, Ipv6Range, PrefixListId, ResourceType, UserIdGroupPair,
};
use cidr::IpNet;

use super::performed::{DONE, Performed, made};
use super::tags::specification;

pub(super) async fn create(
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

pub(super) async fn authorize(ec2: &Client, group: &str, rules: &[Rule]) -> Performed {
    let call = ec2.authorize_security_group_ingress().group_id(group);
    call.set_ip_permissions(Some(permissions(rules))).send().await?;
    DONE
}

pub(super) async fn revoke(ec2: &Client, group: &str, rules: &[Rule]) -> Performed {
    let call = ec2.revoke_security_group_ingress().group_id(group);
    call.set_ip_permissions(Some(permissions(rules))).send().await?;
    DONE
}

pub(super) async fn describe(ec2: &Client, group: &str, rules: &[Rule]) -> Performed {
    let call = ec2.update_security_group_rule_descriptions_ingress().group_id(group);
    call.set_ip_permissions(Some(permissions(rules))).send().await?;
    DONE
}

pub(super) async fn delete(ec2: &Client, group: &str) -> Performed {
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
            let pair = UserIdGroupPair::builder().group_id(id);
            permission.user_id_group_pairs(pair.set_description(description).build())
        }
        Source::PrefixList(id) => {
            let list = PrefixListId::builder().prefix_list_id(id);
            permission.prefix_list_ids(list.set_description(description).build())
        }
    };
    permission.build()
}
