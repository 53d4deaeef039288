//! [`Role`]: what a security group of the cluster is for. [`Rule`]: one ingress permission with one
//! source, the form in which rules are compared.

use std::collections::BTreeMap;
use std::fmt;

use cidr::IpNet;

/// Where traffic may come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Addresses.
    Cidr(IpNet),
    /// Members of a security group, by its id.
    Group(String),
    /// A managed prefix list, by its id. We never write one.
    PrefixList(String),
}

/// The fields by which AWS compares rules: not the description, and not the permission it was
/// written in (cluster-api-provider-aws#2794, #2795, #5023).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleKey {
    /// `tcp`, `udp`, `icmp`, `icmpv6`, `-1` for all, or the number of another protocol.
    pub protocol: String,
    /// First port; -1 where ports mean nothing.
    pub from_port: i32,
    /// Last port; -1 where ports mean nothing.
    pub to_port: i32,
    /// Where traffic may come from.
    pub source: Source,
}

impl RuleKey {
    /// Whether this allows all that a rule for other addresses allows.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let (Source::Cidr(own), Source::Cidr(others)) = (&self.source, &other.source) else {
            return false;
        };
        own.contains(others) && Self { source: self.source.clone(), ..other.clone() } == *self
    }
}

/// An ingress rule of a security group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// The fields that identify the rule.
    pub key: RuleKey,
    /// The description, for people.
    pub description: String,
}

impl Rule {
    /// A rule in its one form: protocol names instead of their numbers, no ports where they mean
    /// nothing.
    pub fn new(protocol: &str, ports: (i32, i32), source: Source, description: &str) -> Self {
        let protocol = protocol_name(protocol);
        let (from_port, to_port) = if has_ports(&protocol) { ports } else { (-1, -1) };
        Self {
            key: RuleKey { protocol, from_port, to_port, source },
            description: description.to_owned(),
        }
    }
}

fn protocol_name(protocol: &str) -> String {
    match protocol.to_ascii_lowercase().as_str() {
        "6" => "tcp".to_owned(),
        "17" => "udp".to_owned(),
        "1" => "icmp".to_owned(),
        "58" => "icmpv6".to_owned(),
        "all" => "-1".to_owned(),
        other => other.to_owned(),
    }
}

fn has_ports(protocol: &str) -> bool {
    matches!(protocol, "tcp" | "udp" | "icmp" | "icmpv6")
}

/// The changes that turn `present` into `wanted`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RuleDiff {
    pub(crate) missing: Vec<Rule>,
    pub(crate) described_otherwise: Vec<Rule>,
    pub(crate) surplus: Vec<Rule>,
}

pub(crate) fn diff(wanted: &[Rule], present: &[Rule]) -> RuleDiff {
    let by_key = |rules: &[Rule]| -> BTreeMap<RuleKey, Rule> {
        // Of two rules with one key the first gives the description, as the first Authorize would.
        rules.iter().rev().map(|rule| (rule.key.clone(), rule.clone())).collect()
    };
    let (wanted, present) = (by_key(wanted), by_key(present));
    let mut diff = RuleDiff::default();
    for (key, rule) in &wanted {
        match present.get(key) {
            None => diff.missing.push(rule.clone()),
            Some(found) if found.description != rule.description => {
                diff.described_otherwise.push(rule.clone());
            }
            Some(_) => {}
        }
    }
    diff.surplus = present
        .into_iter()
        .filter(|(key, _)| !wanted.contains_key(key))
        .map(|(_, rule)| rule)
        .collect();
    diff
}

/// The purpose of a security group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The bastion.
    Bastion,
    /// Instances of the control plane.
    ControlPlane,
    /// Worker nodes.
    Node,
    /// The load balancer of the API server.
    ApiServerLb,
    /// Left to Kubernetes' cloud provider, for its load balancers.
    Lb,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 5] =
        [Self::Bastion, Self::ControlPlane, Self::Node, Self::ApiServerLb, Self::Lb];

    /// The role as upstream spells it in names and tags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bastion => "bastion",
            Self::ControlPlane => "controlplane",
            Self::Node => "node",
            Self::ApiServerLb => "apiserver-lb",
            Self::Lb => "lb",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Source {
        Source::Cidr(cidr::parse(text).unwrap())
    }

    fn group(id: &str) -> Source {
        Source::Group(id.to_owned())
    }

    /// cluster-api-provider-aws#5023
    #[test]
    fn rules_that_aws_shows_in_another_form_are_the_same_rule() {
        for (left, right) in [
            (
                Rule::new("6", (22, 22), cidr("0.0.0.0/0"), ""),
                Rule::new("tcp", (22, 22), cidr("0.0.0.0/0"), ""),
            ),
            (
                Rule::new("4", (0, 65535), group("sg-1"), ""),
                Rule::new("4", (-1, -1), group("sg-1"), ""),
            ),
            (
                Rule::new("-1", (0, 0), group("sg-1"), ""),
                Rule::new("all", (-1, -1), group("sg-1"), ""),
            ),
            (
                Rule::new("TCP", (1, 2), cidr("10.0.0.1/8"), ""),
                Rule::new("tcp", (1, 2), cidr("10.0.0.0/8"), ""),
            ),
        ] {
            assert_eq!(left.key, right.key);
        }
    }

    #[test]
    fn only_what_differs_is_written_and_a_description_is_no_difference_of_rules() {
        let ssh = Rule::new("tcp", (22, 22), cidr("0.0.0.0/0"), "SSH");
        let api = Rule::new("tcp", (6443, 6443), group("sg-1"), "Kubernetes API");
        let api_of_another_name = Rule { description: "api".to_owned(), ..api.clone() };
        let foreign = Rule::new("udp", (53, 53), group("sg-9"), "DNS");
        assert_eq!(
            diff(&[ssh.clone(), api.clone()], &[api_of_another_name, foreign.clone()]),
            RuleDiff {
                missing: vec![ssh.clone()],
                described_otherwise: vec![api.clone()],
                surplus: vec![foreign]
            }
        );
        assert_eq!(
            diff(&[ssh.clone(), api.clone()], &[api.clone(), ssh.clone()]),
            RuleDiff::default()
        );
        assert_eq!(diff(&[api.clone(), api.clone()], &[api]), RuleDiff::default());
    }

    #[test]
    fn a_rule_covers_those_that_allow_its_ports_to_fewer_addresses() {
        let key = |port, source| Rule::new("tcp", (port, port), source, "").key;
        let all = key(6443, cidr("0.0.0.0/0"));
        assert!(all.covers(&key(6443, cidr("192.0.2.1/32"))));
        for other in
            [key(22, cidr("192.0.2.1/32")), key(6443, cidr("::/0")), key(6443, group("sg-1"))]
        {
            assert!(!all.covers(&other) && !other.covers(&all), "{other:?}");
        }
        assert!(!key(6443, cidr("192.0.2.1/32")).covers(&all));
    }
}
