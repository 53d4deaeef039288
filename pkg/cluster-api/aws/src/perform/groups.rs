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
