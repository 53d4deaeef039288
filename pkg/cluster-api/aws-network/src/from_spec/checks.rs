//! The CIDRs and tags of a spec: what AWS takes, and what is wrong with the others.

use cidr::IpNet;

use crate::spec::{EdgeZones, Spec, SpecError, SubnetSpec, Zone, ZoneType};

/// Errors of a spec: those that leave it without a meaning, and [`crate::Desired::contradictions`].
pub(super) type Errors<'a> = (&'a mut Vec<SpecError>, &'a mut Vec<SpecError>);

/// The masks that AWS takes, of VPCs and subnets alike.
const MASKS: std::ops::RangeInclusive<u8> = 16..=28;

/// A CIDR of the spec; what is wrong with it is noted.
pub(super) fn read_cidr(path: &str, text: &str, errors: &mut Vec<SpecError>) -> Option<IpNet> {
    match cidr::parse(text) {
        Ok(cidr) => Some(cidr),
        Err(error) => {
            errors.push(SpecError::new(path, error.to_string()));
            None
        }
    }
}

/// Reads the CIDR of a VPC or a subnet, which AWS wants to be IPv4 and neither too large nor too
/// small.
pub(super) fn read_network(path: &str, text: &str, errors: &mut Vec<SpecError>) -> Option<IpNet> {
    let cidr = read_cidr(path, text, errors)?;
    if matches!(cidr, IpNet::V4(_)) && MASKS.contains(&cidr.prefix_len()) {
        return Some(cidr);
    }
    let (least, most) = (MASKS.start(), MASKS.end());
    errors.push(SpecError::new(path, format!("{cidr} is not an IPv4 CIDR of /{least} to /{most}")));
    None
}

/// Reads the IPv6 CIDR of a subnet.
pub(super) fn read_ipv6(path: &str, text: &str, errors: &mut Vec<SpecError>) -> Option<IpNet> {
    let cidr = read_cidr(path, text, errors)?;
    if matches!(cidr, IpNet::V6(_)) && cidr.prefix_len() == 64 {
        return Some(cidr);
    }
    errors.push(SpecError::new(path, format!("{cidr} is not an IPv6 CIDR of /64")));
    None
}

/// Reads the edge zone of a subnet; none where it is in an availability zone. What the spec says of a zone
/// has to be what AWS says.
pub(super) fn read_edge(
    path: &str,
    edges: &EdgeZones,
    zone: &str,
    subnet: &SubnetSpec,
    errors: &mut Vec<SpecError>,
) -> Option<Zone> {
    let mut edge = edges.find(zone);
    let right = edge.as_ref().map_or(ZoneType::AvailabilityZone, |edge| edge.zone_type);
    if let Some(said) = subnet.zone_type.filter(|said| *said != right) {
        let problem = format!("{zone} is of the type {}, not {}", right.word(), said.word());
        errors.push(SpecError::new(format!("{path}.zoneType"), problem));
    }
    let Some(said) = &subnet.parent_zone else { return edge };
    let parent = edge.as_ref().and_then(|edge| edge.parent.as_ref());
    let is_asked = edges.known(zone).is_some() || edge.is_none();
    if is_asked && parent != Some(said) {
        let right = parent.map_or("no parent zone", String::as_str);
        let problem = format!("{zone} has {right}, not {said}");
        errors.push(SpecError::new(format!("{path}.parentZoneName"), problem));
    }
    if let Some(edge) = &mut edge {
        edge.parent.get_or_insert_with(|| said.clone());
    }
    edge
}

/// AWS allows 50 tags on a resource; no resource carries more than ten of ours.
const MOST: usize = 40;

pub(super) fn check_tags(spec: &Spec, errors: &mut Vec<SpecError>) {
    check_tag_list("spec.additionalTags", &spec.additional_tags, errors);
    for (index, subnet) in spec.subnets.iter().enumerate() {
        check_tag_list(&format!("spec.network.subnets[{index}].tags"), &subnet.tags, errors);
    }
}

fn check_tag_list(path: &str, tags: &crate::identity::Tags, errors: &mut Vec<SpecError>) {
    if tags.len() > MOST {
        errors.push(SpecError::new(path, format!("it has {} tags, more than {MOST}", tags.len())));
    }
    for (key, value) in tags {
        if let Some(problem) = tag_problem(key, value) {
            errors.push(SpecError::new(format!("{path}[{key:?}]"), problem));
        }
    }
}

fn tag_problem(key: &str, value: &str) -> Option<&'static str> {
    let allowed = |text: &str| {
        text.chars().all(|letter| letter.is_alphanumeric() || " _.:/=+-@".contains(letter))
    };
    if key.is_empty() || key.chars().count() > 128 {
        Some("a key has 1 to 128 characters")
    } else if value.chars().count() > 256 {
        Some("a value has at most 256 characters")
    } else if !allowed(key) || !allowed(value) {
        Some("only letters, digits, spaces and _.:/=+-@ are allowed")
    } else if key.to_ascii_lowercase().starts_with("aws:") {
        Some("keys that begin with \"aws:\" are reserved by AWS")
    } else {
        None
    }
}
