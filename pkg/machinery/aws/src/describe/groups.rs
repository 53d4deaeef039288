//! Security groups and their rules, one source each.

use aws_network::{Rule, Scope, SecurityGroup, Source};
use aws_sdk_ec2::types::{self, Filter, IpPermission};

use crate::call::Call;
use crate::call_error::CallError;

use super::pages::pages;
use super::{Describe, PAGE, parsed, required, tags};

impl Describe<'_> {
    pub(super) async fn security_groups(
        self,
        scope: &Scope,
    ) -> Result<Vec<SecurityGroup>, CallError> {
        let mut found = self.security_groups_where(self.filter(scope)).await?;
        found.retain(|group| self.is_in(scope, &group.vpc, &group.tags));
        Ok(found)
    }

    pub(super) async fn security_groups_where(
        self,
        filter: Filter,
    ) -> Result<Vec<SecurityGroup>, CallError> {
        let request =
            self.region.ec2().describe_security_groups().filters(filter).max_results(PAGE);
        let found = pages(
            self.region,
            Call::ec2_read("DescribeSecurityGroups"),
            |token| request.clone().set_next_token(token).send(),
            |page| (page.security_groups, page.next_token),
        );
        found.await?.into_iter().map(security_group).collect()
    }
}

fn security_group(group: types::SecurityGroup) -> Result<SecurityGroup, CallError> {
    let mut rules = Vec::new();
    for permission in group.ip_permissions.unwrap_or_default() {
        rules.extend(rules_of(permission)?);
    }
    Ok(SecurityGroup {
        id: required(group.group_id, "id of a security group")?,
        vpc: group.vpc_id.unwrap_or_default(),
        name: group.group_name.unwrap_or_default(),
        rules,
        tags: tags::of_ec2(group.tags),
    })
}

fn rules_of(permission: IpPermission) -> Result<Vec<Rule>, CallError> {
    let protocol = required(permission.ip_protocol, "protocol of a rule")?;
    let ports = (permission.from_port.unwrap_or(-1), permission.to_port.unwrap_or(-1));
    let rule = |source, description: Option<String>| {
        Rule::new(&protocol, ports, source, description.as_deref().unwrap_or_default())
    };
    let mut rules = Vec::new();
    for range in permission.ip_ranges.unwrap_or_default() {
        let cidr = parsed(range.cidr_ip.as_deref(), "addresses of a rule")?;
        rules.push(rule(Source::Cidr(cidr), range.description));
    }
    for range in permission.ipv6_ranges.unwrap_or_default() {
        let cidr = parsed(range.cidr_ipv6.as_deref(), "addresses of a rule")?;
        rules.push(rule(Source::Cidr(cidr), range.description));
    }
    for pair in permission.user_id_group_pairs.unwrap_or_default() {
        let group = required(pair.group_id, "group of a rule")?;
        rules.push(rule(Source::Group(group), pair.description));
    }
    for list in permission.prefix_list_ids.unwrap_or_default() {
        let id = required(list.prefix_list_id, "prefix list of a rule")?;
        rules.push(rule(Source::PrefixList(id), list.description));
    }
    Ok(rules)
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
            rules_of(permission).unwrap(),
            [
                Rule::new("tcp", (22, 22), cidr("10.0.0.0/8"), "a"),
                Rule::new("tcp", (22, 22), cidr("0.0.0.0/0"), ""),
                Rule::new("tcp", (22, 22), Source::Group("sg-1".to_owned()), ""),
            ]
        );
    }

    #[test]
    fn a_source_that_cannot_be_read_spoils_the_answer() {
        let permission = IpPermission::builder()
            .ip_protocol("-1")
            .ip_ranges(IpRange::builder().cidr_ip("everybody").build())
            .build();
        assert!(rules_of(permission).is_err(), "a rule that is overlooked is never revoked");
    }
}
