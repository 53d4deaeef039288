//! [`Rule`]: one ingress permission with one source, the form in which rules are compared.

use std::collections::BTreeMap;

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

/// What makes a rule the same rule to AWS: not its description, and not the permission it was
/// written in (`rule:a-rule-is-protocol-ports-and-one-source`).
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

/// An ingress rule of a security group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// What makes it this rule.
    pub key: RuleKey,
    /// For people.
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

/// What has to change for `present` to become `wanted`.
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

#[cfg(test)]
mod tests;
