//! [`places`]: where the VPC and the subnets of a cluster have come to lie, with the ids that upstream
//! writes into a spec.

use cidr::IpNet;

use crate::desired::{Desired, DesiredSubnet};
use crate::observed::Observed;
use crate::resources::{InternetGateway, Subnet};
use crate::subnets::{is_meant, is_public};
use crate::tags::NAME_TAG;

/// The VPC of a cluster, and its subnets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The id of the VPC.
    pub vpc: String,
    /// Its CIDR.
    pub cidr: IpNet,
    /// The internet gateway that is attached to it, if that is ours.
    pub internet_gateway: Option<String>,
    /// One for each subnet of the spec, or of those that were chosen, in their order.
    pub subnets: Vec<SubnetPlace>,
}

/// A subnet of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubnetPlace {
    /// Its id.
    pub id: String,
    /// Its name, as its tag says it; empty where it has none.
    pub name: String,
    /// Its CIDR.
    pub cidr: IpNet,
    /// Its zone.
    pub zone: String,
    /// Whether it has a route to an internet gateway.
    pub public: bool,
    /// The route table that it uses.
    pub route_table: Option<String>,
    /// The NAT gateway in it, if that is ours.
    pub nat_gateway: Option<String>,
}

/// Where all of it lies; none while a part of that is not known.
pub fn places(desired: &Desired, observed: &Observed) -> Option<Places> {
    let vpcs = observed.vpcs.all();
    let vpc = match &desired.vpc_id {
        Some(id) => vpcs.iter().find(|vpc| vpc.id == *id)?,
        None => {
            let mut ours = vpcs.iter().filter(|vpc| desired.identity.owns(&vpc.tags));
            // Of several it is not known here which one counts.
            ours.next().filter(|_| ours.next().is_none())?
        }
    };
    let is_managed = desired.identity.owns(&vpc.tags);
    let here: Vec<_> =
        observed.subnets.all().iter().filter(|subnet| subnet.vpc == vpc.id).collect();
    let place = |wanted: &DesiredSubnet| {
        let found = *here.iter().find(|found| is_meant(wanted, found))?;
        let public = if is_managed { wanted.public } else { is_public(observed, &vpc.id, found) };
        Some(subnet_place(desired, observed, found, public))
    };
    let mut gateways =
        observed.attached_gateways.all().iter().chain(observed.internet_gateways.all());
    let is_here = |gateway: &&InternetGateway| {
        gateway.attached_to.as_ref() == Some(&vpc.id) && desired.identity.owns(&gateway.tags)
    };
    Some(Places {
        vpc: vpc.id.clone(),
        cidr: vpc.cidr,
        internet_gateway: gateways.find(is_here).map(|gateway| gateway.id.clone()),
        subnets: desired.subnets.iter().map(place).collect::<Option<_>>()?,
    })
}

fn subnet_place(
    desired: &Desired,
    observed: &Observed,
    found: &Subnet,
    public: bool,
) -> SubnetPlace {
    let tables = observed.route_tables.all().iter();
    let mut tables = tables.filter(|table| table.association_of(&found.id).is_some());
    let mut nats =
        observed.nat_gateways.all().iter().filter(|nat| {
            nat.is_live() && nat.subnet == found.id && desired.identity.owns(&nat.tags)
        });
    SubnetPlace {
        id: found.id.clone(),
        name: found.tags.get(NAME_TAG).cloned().unwrap_or_default(),
        cidr: found.cidr,
        zone: found.zone.clone(),
        public,
        route_table: tables.next().map(|table| table.id.clone()),
        nat_gateway: nats.next().map(|nat| nat.id.clone()),
    }
}
