//! Ingress rules of security groups, as the spec of an AWSCluster states them; its zones that AWS is asked
//! about; which fields of upstream ask for what is not built.

use aws_network::{FoundZone, IngressRuleSpec, Role, SpecError, Zone, ZoneType};
use serde_json::Value;

use crate::api::aws_cluster::{AwsClusterSpec, IngressRule};

/// The roles that a spec may name.
pub(super) const ROLES: &str = "bastion, node, controlplane, apiserver-lb or lb";

/// Reads the rules of the field of this path.
pub(super) fn ingress_rules(
    field: &str,
    rules: &[IngressRule],
    errors: &mut Vec<SpecError>,
) -> Vec<IngressRuleSpec> {
    let read = rules.iter().enumerate().map(|(index, rule)| {
        let path = format!("{field}[{index}].sourceSecurityGroupRoles");
        IngressRuleSpec {
            description: rule.description.clone(),
            protocol: rule.protocol.clone(),
            from_port: rule.from_port,
            to_port: rule.to_port,
            cidr_blocks: [&*rule.cidr_blocks, &*rule.ipv6_cidr_blocks].concat(),
            source_group_ids: rule.source_security_group_ids.clone(),
            source_roles: roles(&path, &rule.source_security_group_roles, errors),
            from_nat_gateways: rule.nat_gateways_ips_source.unwrap_or_default(),
        }
    });
    read.collect()
}

fn roles(path: &str, names: &[String], errors: &mut Vec<SpecError>) -> Vec<Role> {
    let known = names.iter().filter_map(|name| {
        let role = role(name);
        if role.is_none() {
            errors.push(wrong_word(path, name, ROLES));
        }
        role
    });
    known.collect()
}

/// By the name that it has in specs.
pub(super) fn role(name: &str) -> Option<Role> {
    match name {
        "bastion" => Some(Role::Bastion),
        "node" => Some(Role::Node),
        "controlplane" => Some(Role::ControlPlane),
        "apiserver-lb" => Some(Role::ApiServerLb),
        "lb" => Some(Role::Lb),
        _ => None,
    }
}

/// The field has this value, and what would be right.
pub(super) fn wrong_word(path: &str, value: &str, right: &str) -> SpecError {
    SpecError::new(path, format!("{value:?} is not {right}"))
}

/// The zones of subnets that may be edge zones, with the number of the subnet. The name of an availability
/// zone is that of its region and a letter.
pub(crate) fn named_edges(spec: &AwsClusterSpec) -> impl Iterator<Item = (usize, &str)> {
    let subnets = spec.network().into_iter().flat_map(|network| &network.subnets).enumerate();
    subnets.filter_map(|(index, subnet)| {
        let said = |field: &'_ Option<String>| field.as_ref().is_some_and(|it| !it.is_empty());
        let zone = subnet.availability_zone.as_deref().filter(|zone| !zone.is_empty())?;
        let is_far = zone.strip_prefix(&*spec.region).is_some_and(|rest| rest.starts_with('-'));
        let is_usual = subnet.zone_type.as_deref() == Some(ZoneType::AvailabilityZone.word());
        let is_said = said(&subnet.parent_zone_name) || (said(&subnet.zone_type) && !is_usual);
        (is_far || is_said).then_some((index, zone))
    })
}

/// What AWS says of these zones, or why subnets cannot be there.
pub(crate) fn usable_zones(
    spec: &AwsClusterSpec,
    all: &[FoundZone],
) -> Result<Vec<Zone>, Vec<SpecError>> {
    let (mut known, mut errors) = (Vec::new(), Vec::new());
    for (index, name) in named_edges(spec) {
        let problem = match all.iter().find(|it| it.zone.name == name) {
            None => format!("AWS has no zone {name} in {}", spec.region),
            Some(found) if !found.is_opted_in => {
                format!("{name}: opt in to zone group {} first", found.group)
            }
            Some(found) => {
                known.extend(Some(found.zone.clone()).filter(|zone| !known.contains(zone)));
                continue;
            }
        };
        let path = format!("spec.network.subnets[{index}].availabilityZone");
        errors.push(SpecError::new(path, problem));
    }
    if errors.is_empty() { Ok(known) } else { Err(errors) }
}

/// Whether a field of upstream asks for something that is not built. Upstream stores its defaults in
/// the spec, and what they say is what is made here.
pub(super) fn asks_for_more(field: &str, value: &Value) -> bool {
    let is_nothing = match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Object(_) => false,
    };
    let default = match field {
        "availabilityZoneUsageLimit" => Value::from(3),
        "availabilityZoneSelection" => Value::from("Ordered"),
        "subnetSchema" => Value::from("PreferPrivate"),
        "privateDnsHostnameTypeOnLaunch" => Value::from("ip-name"),
        "targetGroupIPType" => Value::from("ipv4"),
        _ => Value::Null,
    };
    !is_nothing && *value != default
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn aws_is_asked_about_zones_that_may_be_edge_zones_and_subnets_wait_for_the_opt_in() {
        let spec = |subnets: Value| -> AwsClusterSpec {
            let spec = json!({"region": "us-east-2", "network": {"subnets": subnets}});
            serde_json::from_value(spec).unwrap()
        };
        let named = spec(json!([
            {"availabilityZone": "us-east-2a", "zoneType": "availability-zone", "parentZoneName": ""},
            {"availabilityZone": "us-east-2-lcl-1a"},
            {"availabilityZone": "us-east-2b", "zoneType": "local-zone"},
            {"availabilityZone": "us-east-2c", "parentZoneName": "us-east-2a"},
            {"id": "subnet-f0000001", "zoneType": "local-zone"},
        ]));
        let found: Vec<_> = named_edges(&named).collect();
        assert_eq!(found, [(1, "us-east-2-lcl-1a"), (2, "us-east-2b"), (3, "us-east-2c")]);
        let zone = |name: &str, zone_type, is_opted_in| FoundZone {
            zone: Zone { name: format!("us-east-2{name}"), zone_type, parent: None },
            group: format!("us-east-2{name}").trim_end_matches('a').to_owned(),
            is_opted_in,
            is_available: true,
        };
        let all = |is_opted_in| {
            let regular = ["a", "b", "c"].map(|it| zone(it, ZoneType::AvailabilityZone, true));
            let local = zone("-lcl-1a", ZoneType::LocalZone, is_opted_in);
            [&regular[..], &[local]].concat()
        };
        let known = usable_zones(&named, &all(true)).unwrap();
        let names: Vec<_> = known.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["us-east-2-lcl-1a", "us-east-2b", "us-east-2c"]);
        let refused = |spec: &AwsClusterSpec| -> Vec<_> {
            let errors = usable_zones(spec, &all(false)).unwrap_err();
            errors.iter().map(ToString::to_string).collect()
        };
        let path = "cannot use spec.network.subnets";
        assert_eq!(
            refused(&named),
            [format!(
                "{path}[1].availabilityZone: us-east-2-lcl-1a: opt in to zone group us-east-2-lcl-1 first"
            )]
        );
        assert_eq!(
            refused(&spec(json!([{"availabilityZone": "us-east-2-x-1a"}]))),
            [format!("{path}[0].availabilityZone: AWS has no zone us-east-2-x-1a in us-east-2")]
        );
        let defaults: Vec<_> = all(true).into_iter().filter(FoundZone::is_default).collect();
        assert_eq!(defaults.len(), 3, "no edge zone is chosen");
    }
}
