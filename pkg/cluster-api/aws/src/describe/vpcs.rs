//! VPCs, their attributes, subnets, and the zones of the region.

use std::net::{IpAddr, Ipv6Addr};

use aws_network::{FoundZone, Ipv6Range, Reply, SecondaryCidr, Subnet, Vpc, Zone, ZoneType};
use aws_sdk_ec2::types::{
    self, AvailabilityZoneOptInStatus, AvailabilityZoneState, Filter, SubnetCidrBlockStateCode,
    SubnetState, VpcAttributeName, VpcCidrBlockAssociation, VpcCidrBlockStateCode,
    VpcIpv6CidrBlockAssociation,
};
use cidr::IpNet;

use super::answers::{Flaws, ec2_pages, one, tags_of_ec2};
use super::{Describe, PAGE, parsed, required};
use crate::call::{AwsError, Call};

impl Describe<'_> {
    pub(super) async fn vpcs_where(self, filter: Filter) -> Result<Vec<Vpc>, AwsError> {
        let request = self.region.ec2().describe_vpcs().filters(filter).max_results(PAGE);
        let found = ec2_pages!(self, "DescribeVpcs", request, vpcs)?;
        found.into_iter().map(vpc).collect()
    }

    pub(super) async fn vpc_attributes(self, id: &str) -> Result<Reply, AwsError> {
        Ok(Reply::VpcAttributes {
            vpc: id.to_owned(),
            dns_support: self.vpc_attribute(id, VpcAttributeName::EnableDnsSupport).await?,
            dns_hostnames: self.vpc_attribute(id, VpcAttributeName::EnableDnsHostnames).await?,
        })
    }

    async fn vpc_attribute(self, id: &str, name: VpcAttributeName) -> Result<bool, AwsError> {
        let request = self.region.ec2().describe_vpc_attribute().vpc_id(id).attribute(name.clone());
        let call = Call::ec2_read("DescribeVpcAttribute");
        let answer = one(self.region, call, || request.clone().send()).await?;
        let value = match name {
            VpcAttributeName::EnableDnsSupport => answer.enable_dns_support,
            _ => answer.enable_dns_hostnames,
        };
        required(value.and_then(|value| value.value), "value of the attribute")
    }

    pub(super) async fn subnets(self, filter: Filter) -> Result<Vec<Subnet>, AwsError> {
        let request = self.region.ec2().describe_subnets().filters(filter).max_results(PAGE);
        let found = ec2_pages!(self, "DescribeSubnets", request, subnets)?;
        self.admit(found.into_iter().map(subnet))
    }

    /// All zones of the region in the order of their names, those without opt-in included.
    pub(crate) async fn zones(self) -> Result<Vec<FoundZone>, AwsError> {
        let request = self.region.ec2().describe_availability_zones().all_availability_zones(true);
        let call = Call::ec2_read("DescribeAvailabilityZones");
        let answer = one(self.region, call, || request.clone().send()).await?;
        let zones = answer.availability_zones.unwrap_or_default().into_iter();
        let mut zones: Vec<_> = zones.filter_map(zone).collect();
        zones.sort_by(|one, other| one.zone.name.cmp(&other.zone.name));
        Ok(zones)
    }
}

/// None for a zone of a type that is not known.
fn zone(zone: types::AvailabilityZone) -> Option<FoundZone> {
    let zone_type = ZoneType::from_word(zone.zone_type.as_deref()?)?;
    Some(FoundZone {
        zone: Zone { name: zone.zone_name?, zone_type, parent: zone.parent_zone_name },
        group: zone.group_name.unwrap_or_default(),
        is_opted_in: zone.opt_in_status != Some(AvailabilityZoneOptInStatus::NotOptedIn),
        is_available: zone.state == Some(AvailabilityZoneState::Available),
    })
}

fn vpc(vpc: types::Vpc) -> Result<Vpc, AwsError> {
    let associations = vpc.ipv6_cidr_block_association_set.unwrap_or_default();
    let (ipv6, more_ipv6) = ipv6_of(&associations);
    let cidr = parsed(vpc.cidr_block.as_deref(), "CIDR of a VPC")?;
    let mut secondary: Vec<_> =
        vpc.cidr_block_association_set.iter().flatten().filter_map(secondary_cidr).collect();
    secondary.retain(|more| more.cidr != cidr);
    // A later try may have succeeded.
    secondary.sort_by_key(|more| (more.cidr, more.failed));
    secondary.dedup_by_key(|more| more.cidr);
    Ok(Vpc {
        id: required(vpc.vpc_id, "id of a VPC")?,
        cidr,
        secondary,
        ipv6,
        more_ipv6,
        dns_support: None,
        dns_hostnames: None,
        tags: tags_of_ec2(vpc.tags),
    })
}

/// None for what has ended. What has failed is shown, so that it is not asked for again and again.
fn secondary_cidr(one: &VpcCidrBlockAssociation) -> Option<SecondaryCidr> {
    let cidr = one.cidr_block.as_deref()?.parse().ok()?;
    let (associated, failed) = match one.cidr_block_state.as_ref()?.state.as_ref()? {
        VpcCidrBlockStateCode::Associating => (false, false),
        VpcCidrBlockStateCode::Associated => (true, false),
        VpcCidrBlockStateCode::Failing | VpcCidrBlockStateCode::Failed => (false, true),
        _ => return None,
    };
    Some(SecondaryCidr { cidr, associated, failed })
}

/// The CIDRs that can be used, in order, since AWS shows them in any; or else one that cannot be used yet.
fn ipv6_of(associations: &[VpcIpv6CidrBlockAssociation]) -> (Option<Ipv6Range>, Vec<IpNet>) {
    let ranges = || associations.iter().filter_map(ipv6_range);
    let usable = ranges().filter_map(|range| match range {
        Ipv6Range::Associated(cidr) => Some(cidr),
        Ipv6Range::Associating => None,
    });
    let mut usable: Vec<_> = usable.collect();
    usable.sort();
    if usable.is_empty() {
        return (ranges().next(), usable);
    }
    let first = usable.remove(0);
    (Some(Ipv6Range::Associated(first)), usable)
}

/// None for what has ended, or has failed. What is not understood cannot be used yet.
fn ipv6_range(one: &VpcIpv6CidrBlockAssociation) -> Option<Ipv6Range> {
    match one.ipv6_cidr_block_state.as_ref()?.state.as_ref()? {
        VpcCidrBlockStateCode::Associated => {
            let range = one.ipv6_cidr_block.as_deref().and_then(|text| text.parse().ok());
            Some(range.map_or(Ipv6Range::Associating, Ipv6Range::Associated))
        }
        VpcCidrBlockStateCode::Disassociated
        | VpcCidrBlockStateCode::Disassociating
        | VpcCidrBlockStateCode::Failed
        | VpcCidrBlockStateCode::Failing => None,
        _ => Some(Ipv6Range::Associating),
    }
}

fn subnet(subnet: types::Subnet) -> (Subnet, Flaws) {
    let mut flaws = Flaws::default();
    let cidrs = subnet.ipv6_cidr_block_association_set.unwrap_or_default();
    let ipv6: Option<IpNet> = cidrs.iter().find_map(|one| {
        let state = one.ipv6_cidr_block_state.as_ref().and_then(|state| state.state.as_ref());
        let has_ended = matches!(
            state,
            Some(
                SubnetCidrBlockStateCode::Disassociated
                    | SubnetCidrBlockStateCode::Disassociating
                    | SubnetCidrBlockStateCode::Failed
                    | SubnetCidrBlockStateCode::Failing
            )
        );
        one.ipv6_cidr_block.as_deref().filter(|_| !has_ended)?.parse().ok()
    });
    // No subnet of a spec has the unspecified address.
    let otherwise = ipv6.unwrap_or_else(|| IpNet::from(IpAddr::from(Ipv6Addr::UNSPECIFIED)));
    let subnet = Subnet {
        id: flaws.id(subnet.subnet_id, "id of a subnet"),
        vpc: flaws.needed(subnet.vpc_id, "VPC of a subnet", String::new()),
        cidr: flaws.parsed(subnet.cidr_block.as_deref(), "CIDR of a subnet", otherwise),
        ipv6,
        zone: flaws.needed(subnet.availability_zone, "zone of a subnet", String::new()),
        map_public_ip: subnet.map_public_ip_on_launch.unwrap_or_default(),
        assigns_ipv6: subnet.assign_ipv6_address_on_creation.unwrap_or_default(),
        available: subnet.state == Some(SubnetState::Available),
        tags: tags_of_ec2(subnet.tags),
    };
    (subnet, flaws)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ipv6_cidr_of_a_vpc_counts_from_its_association_to_its_end() {
        let of = |all: &[(&str, &str)]| {
            let association = |(state, cidr): &(&str, &str)| {
                let state = types::VpcCidrBlockState::builder().state((*state).into()).build();
                let one = VpcIpv6CidrBlockAssociation::builder().ipv6_cidr_block(*cidr);
                one.set_ipv6_cidr_block_state(Some(state)).build()
            };
            let read = types::Vpc::builder().vpc_id("vpc-1").cidr_block("10.0.0.0/16");
            let all = all.iter().map(association).collect();
            vpc(read.set_ipv6_cidr_block_association_set(Some(all)).build()).unwrap().ipv6
        };
        let range = "2600:db8::/56";
        let usable = Some(Ipv6Range::Associated(range.parse().unwrap()));
        assert_eq!(of(&[("associated", range)]), usable);
        assert_eq!(of(&[("associating", ""), ("associated", range)]), usable);
        for unusable in [("associating", ""), ("associated", "odd"), ("some-new-word", range)] {
            assert_eq!(of(&[unusable]), Some(Ipv6Range::Associating), "{unusable:?}");
        }
        for state in ["disassociating", "disassociated", "failing", "failed"] {
            assert_eq!(of(&[(state, range)]), None, "{state}");
        }
    }

    #[test]
    fn several_ipv6_cidrs_of_a_vpc_are_shown_in_order() {
        let cidrs = ["2600:db8:2::/56", "2600:db8:10::/56", "2600:db8:1::/56"];
        let association = |cidr: &str| {
            let state = types::VpcCidrBlockState::builder().state("associated".into()).build();
            let one = VpcIpv6CidrBlockAssociation::builder().ipv6_cidr_block(cidr);
            one.set_ipv6_cidr_block_state(Some(state)).build()
        };
        let (first, more) = ipv6_of(&cidrs.map(association));
        let [two, ten, one] = cidrs.map(|cidr| cidr.parse().unwrap());
        assert_eq!((first, more), (Some(Ipv6Range::Associated(one)), vec![two, ten]));
    }

    #[test]
    fn an_ipv6_cidr_that_was_taken_from_a_subnet_does_not_count() {
        let of = |state: &str| {
            let state = types::SubnetCidrBlockState::builder().state(state.into()).build();
            let one = types::SubnetIpv6CidrBlockAssociation::builder();
            let one =
                one.ipv6_cidr_block("2600:db8::/64").set_ipv6_cidr_block_state(Some(state)).build();
            let read = types::Subnet::builder().ipv6_cidr_block_association_set(one);
            subnet(read.build()).0.ipv6.is_some()
        };
        assert!(of("associated") && of("associating") && !of("disassociated") && !of("failed"));
    }

    #[test]
    fn a_subnet_without_ipv4_has_the_cidr_of_ipv6() {
        let association = types::SubnetIpv6CidrBlockAssociation::builder();
        let read = types::Subnet::builder()
            .subnet_id("subnet-1")
            .vpc_id("vpc-1")
            .availability_zone("us-east-2a")
            .ipv6_cidr_block_association_set(association.ipv6_cidr_block("2600:db8::/64").build());
        let (found, flaws) = subnet(read.build());
        assert_eq!((&*found.id, found.cidr.to_string()), ("subnet-1", "2600:db8::/64".to_owned()));
        assert!(flaws.admits(false).unwrap());
        let (_, flaws) = subnet(types::Subnet::builder().subnet_id("subnet-1").build());
        assert!(flaws.admits(true).is_err(), "one of ours has an IPv4 CIDR");
        let (_, flaws) = subnet(types::Subnet::builder().build());
        assert!(!flaws.admits(false).unwrap(), "nothing can be said about it");
    }
}
