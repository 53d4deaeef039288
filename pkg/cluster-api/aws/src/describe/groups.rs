//! Security groups and their rules, one source each.

use aws_network::{Rule, SecurityGroup, Source};
use aws_sdk_ec2::types::{self, Filter, IpPermission};

use super::answers::{Flaws, ec2_pages, tags_of_ec2};
use super::{Describe, PAGE, parsed, required};
use crate::call::AwsError;

impl Describe<'_> {
    pub(super) async fn security_groups(
        self,
        filter: Filter,
    ) -> Result<Vec<SecurityGroup>, AwsError> {
        let request = self.region.ec2().describe_security_groups().filters(filter);
        let request = request.max_results(PAGE);
        let found = ec2_pages!(self, "DescribeSecurityGroups", request, security_groups)?;
        self.admit(found.into_iter().map(security_group))
    }
}

fn security_group(group: types::SecurityGroup) -> (SecurityGroup, Flaws) {
    let mut flaws = Flaws::default();
    let account = group.owner_id.unwrap_or_default();
    let permissions = group.ip_permissions.unwrap_or_default().into_iter();
    let rules = permissions.flat_map(|permission| rules_of(permission, &account, &mut flaws));
    let rules = rules.collect();
    let group = SecurityGroup {
        id: flaws.id(group.group_id, "id of a security group"),
        vpc: group.vpc_id.unwrap_or_default(),
        name: group.group_name.unwrap_or_default(),
        rules,
        tags: tags_of_ec2(group.tags),
    };
    (group, flaws)
}

/// The rules of a permission, as far as they can be read. A group of another account than
/// `account` is named with its own: `123456789012/sg-1`.
fn rules_of(permission: IpPermission, account: &str, flaws: &mut Flaws) -> Vec<Rule> {
    let protocol = flaws.part(required(permission.ip_protocol, "protocol of a rule"));
    let Some(protocol) = protocol else { return Vec::new() };
    let ports = (permission.from_port.unwrap_or(-1), permission.to_port.unwrap_or(-1));
    let rule = |source, description: Option<String>| {
        Rule::new(&protocol, ports, source, description.as_deref().unwrap_or_default())
    };
    let mut rules = Vec::new();
    let ipv4 = permission.ip_ranges.unwrap_or_default().into_iter();
    let ipv4 = ipv4.map(|range| (range.cidr_ip, range.description));
    let ipv6 = permission.ipv6_ranges.unwrap_or_default().into_iter();
    for (cidr, description) in ipv4.chain(ipv6.map(|range| (range.cidr_ipv6, range.description))) {
        let cidr = flaws.part(parsed(cidr.as_deref(), "addresses of a rule"));
        rules.extend(cidr.map(|cidr| rule(Source::Cidr(cidr), description)));
    }
    for pair in permission.user_id_group_pairs.unwrap_or_default() {
        let group = flaws.part(required(pair.group_id, "group of a rule"));
        let peer = pair.user_id.filter(|owner| !account.is_empty() && owner != account);
        let group = group.map(|id| match peer {
            Some(peer) => format!("{peer}/{id}"),
            None => id,
        });
        rules.extend(group.map(|group| rule(Source::Group(group), pair.description)));
    }
    for list in permission.prefix_list_ids.unwrap_or_default() {
        let id = flaws.part(required(list.prefix_list_id, "prefix list of a rule"));
        rules.extend(id.map(|id| rule(Source::PrefixList(id), list.description)));
    }
    rules
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::{IpRange, UserIdGroupPair};

    use super::*;

    /// cluster-api-provider-aws#5023
    #[test]
    fn a_permission_of_many_sources_is_as_many_rules() {
        let permission = IpPermission::builder()
            .ip_protocol("6")
            .from_port(22)
            .to_port(22)
            .ip_ranges(IpRange::builder().cidr_ip("10.0.0.0/8").description("a").build())
            .ip_ranges(IpRange::builder().cidr_ip("0.0.0.0/0").build())
            .user_id_group_pairs(UserIdGroupPair::builder().group_id("sg-1").build())
            .build();
        let cidr = |text: &str| Source::Cidr(text.parse().unwrap());
        assert_eq!(
            rules_of(permission, "", &mut Flaws::default()),
            [
                Rule::new("tcp", (22, 22), cidr("10.0.0.0/8"), "a"),
                Rule::new("tcp", (22, 22), cidr("0.0.0.0/0"), ""),
                Rule::new("tcp", (22, 22), Source::Group("sg-1".to_owned()), ""),
            ]
        );
    }

    #[test]
    fn a_source_that_cannot_be_read_spoils_the_answer_in_a_group_of_ours_only() {
        let permission = IpPermission::builder()
            .ip_protocol("-1")
            .ip_ranges(IpRange::builder().cidr_ip("everybody").build())
            .user_id_group_pairs(UserIdGroupPair::builder().group_name("of a peer").build())
            .ip_ranges(IpRange::builder().cidr_ip("10.0.0.0/8").build());
        let read =
            types::SecurityGroup::builder().group_id("sg-1").ip_permissions(permission.build());
        let (found, flaws) = security_group(read.clone().build());
        assert_eq!(found.rules.len(), 1, "{:?}", found.rules);
        assert!(flaws.admits(false).unwrap());
        let (_, flaws) = security_group(read.build());
        assert!(flaws.admits(true).is_err(), "a rule that is overlooked is never revoked");
    }

    #[test]
    fn a_group_of_a_peer_account_is_read_with_its_account() {
        let pair = |owner: &str| UserIdGroupPair::builder().user_id(owner).group_id("sg-1").build();
        let permission = IpPermission::builder()
            .ip_protocol("-1")
            .user_id_group_pairs(pair("111111111111"))
            .user_id_group_pairs(pair("222222222222"))
            .build();
        let rules = rules_of(permission, "111111111111", &mut Flaws::default());
        let sources: Vec<_> = rules.into_iter().map(|rule| rule.key.source).collect();
        let group = |id: &str| Source::Group(id.to_owned());
        assert_eq!(sources, [group("sg-1"), group("222222222222/sg-1")]);
    }
}
