//! Security groups.

use aws_network::{Action, Rule, RuleKey, SecurityGroup, Source};

use super::ec2::{DONE, made};
use super::{Called, Cloud};

impl Cloud {
    pub(super) fn call_groups(&mut self, action: Action) -> Called {
        match action {
            Action::CreateSecurityGroup { vpc, name, tags, .. } => {
                self.vpcs.get(&vpc).ok_or("InvalidVpcID.NotFound")?;
                if self.groups.all().iter().any(|found| found.vpc == vpc && found.name == name) {
                    return Err("InvalidGroup.Duplicate");
                }
                let id = self.id("sg");
                let group = SecurityGroup { id: id.clone(), vpc, name, rules: Vec::new(), tags };
                self.groups.put(&id, self.now, group);
                made(&id)
            }
            Action::AuthorizeIngress { group, rules } => self.authorize(&group, rules),
            Action::RevokeIngress { group, rules } => self.revoke(&group, &rules),
            Action::DescribeIngress { group, rules } => {
                self.revoke(&group, &rules)?;
                self.authorize(&group, rules)
            }
            Action::DeleteSecurityGroup { group } => self.delete_group(&group),
            other => panic!("{other:?} is no call of EC2 that is known here"),
        }
    }

    fn keys(&self, group: &str) -> Result<Vec<RuleKey>, &'static str> {
        let group = self.groups.get(group).ok_or("InvalidGroup.NotFound")?;
        Ok(group.rules.iter().map(|rule| rule.key.clone()).collect())
    }

    fn authorize(&mut self, group: &str, rules: Vec<Rule>) -> Called {
        let keys = self.keys(group)?;
        for rule in &rules {
            if keys.contains(&rule.key) {
                return Err("InvalidPermission.Duplicate");
            }
            if let Source::Group(id) = &rule.key.source {
                self.groups.get(id).ok_or("InvalidGroup.NotFound")?;
            }
        }
        self.groups.edit(group, self.now, |found| found.rules.extend(rules));
        DONE
    }

    fn revoke(&mut self, group: &str, rules: &[Rule]) -> Called {
        let keys = self.keys(group)?;
        if rules.iter().any(|rule| !keys.contains(&rule.key)) {
            return Err("InvalidPermission.NotFound");
        }
        self.groups.edit(group, self.now, |found| {
            found.rules.retain(|old| rules.iter().all(|rule| rule.key != old.key));
        });
        DONE
    }

    fn delete_group(&mut self, group: &str) -> Called {
        self.groups.get(group).ok_or("InvalidGroup.NotFound")?;
        let named = Source::Group(group.to_owned());
        let has = |ids: &[String]| ids.iter().any(|id| id == group);
        let is_used = self.groups.all().iter().any(|other| {
            other.id != group && other.rules.iter().any(|rule| rule.key.source == named)
        }) || self.classic.all().iter().any(|found| has(&found.groups))
            || self.network.all().iter().any(|found| has(&found.groups))
            || self.has_instance(group)
            || self.is_draining(group);
        if is_used {
            return Err("DependencyViolation");
        }
        self.groups.remove(group, self.now);
        DONE
    }
}
