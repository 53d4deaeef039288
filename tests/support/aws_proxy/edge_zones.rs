//! A local zone and a wavelength zone of each region, which moto does not have: subnets in them are in an
//! availability zone of moto, and answers show them where AWS has them.

use std::collections::BTreeMap;

use http::StatusCode;
use parking_lot::Mutex;
use roxmltree::Document;

use super::call::Call;
use super::elements::Element;
use super::upstream::Upstream;

/// What the name of the local zone has after that of the region.
pub(super) const LOCAL: &str = "-lcl-1a";
/// What the name of the wavelength zone has after that of the region.
pub(super) const WAVELENGTH: &str = "-wl1-cmh-wlz-1";

const OPT_IN: &str = "EC2 API, ModifyAvailabilityZoneGroup: opt in to the zone group first";
const CARRIER_IP: &str = "EC2 API, InstanceNetworkInterfaceSpecification, AssociateCarrierIpAddress: instances in \
    wavelength zones get carrier addresses, no public ones";
const CARRIER_GATEWAY: &str = "AWS Wavelength developer guide, How Wavelength works: carrier gateways are for VPCs with \
    subnets in a wavelength zone; they carry IPv4";
const NAT: &str = "AWS Wavelength developer guide, How Wavelength works; AWS Local Zones features: NAT gateways in few \
    local zones";
const BALANCER: &str = "AWS Local Zones features: no classic and network load balancers";

/// A refusal: the code and the page. The pages name no codes.
type Refused = (&'static str, &'static str);

/// The subnets in edge zones.
#[derive(Default)]
pub(super) struct Edges {
    /// Zone and VPC of each subnet, by its id.
    subnets: BTreeMap<String, (String, String)>,
    is_opted_out: bool,
}

impl Edges {
    pub(super) fn opt_in(&mut self, is_opted_in: bool) {
        self.is_opted_out = !is_opted_in;
    }

    fn is_far(&self, subnet: &str) -> bool {
        self.subnets.contains_key(subnet)
    }

    fn is_in_wavelength_zone(&self, subnet: &str) -> bool {
        self.subnets.get(subnet).is_some_and(|(zone, _)| zone.ends_with(WAVELENGTH))
    }

    /// Whether AWS has something in no edge zone, or only there.
    pub(super) fn refuses(&self, call: &Call) -> Option<Refused> {
        let subnet = call.parameter("SubnetId");
        let mut named =
            call.parameters.iter().filter(|(name, _)| name.starts_with("Subnets.member."));
        let maps = call.parameters.contains_key("MapPublicIpOnLaunch.Value");
        match call.action.as_str() {
            "ModifySubnetAttribute" if maps && self.is_in_wavelength_zone(subnet) => {
                Some(("InvalidParameterValue", CARRIER_IP))
            }
            "CreateNatGateway" if self.is_far(subnet) => Some(("InvalidParameterValue", NAT)),
            "CreateLoadBalancer" if named.any(|(_, id)| self.is_far(id)) => {
                Some(("InvalidSubnet", BALANCER))
            }
            "CreateCarrierGateway" => {
                let vpc = call.parameter("VpcId");
                let mut far = self.subnets.values().filter(|(zone, _)| zone.ends_with(WAVELENGTH));
                let has_none = far.all(|(_, of)| of != vpc);
                has_none.then_some(("InvalidParameterValue", CARRIER_GATEWAY))
            }
            "CreateSubnet" if zone_of(call).is_some() => {
                let has_ipv6 = !call.parameter("Ipv6CidrBlock").is_empty();
                let opt_in = self.is_opted_out.then_some(("OptInRequired", OPT_IN));
                opt_in.or(has_ipv6.then_some(("InvalidParameterValue", CARRIER_GATEWAY)))
            }
            _ => None,
        }
    }

    /// An answer with the edge zones, and with their subnets as AWS shows them.
    pub(super) fn shown_in(&self, call: &Call, text: String) -> String {
        let shows_all = call.parameter("AllAvailabilityZones") == "true";
        if call.action == "DescribeAvailabilityZones" && shows_all {
            let end = "</availabilityZoneInfo>";
            return text.replacen(end, &format!("{}{end}", self.zones(&call.region)), 1);
        }
        let shows_subnets = ["CreateSubnet", "DescribeSubnets"].contains(&call.action.as_str());
        if !shows_subnets || self.subnets.is_empty() {
            return text;
        }
        let document = Document::parse(&text).expect("moto answers XML");
        let mut edits = Vec::new();
        for subnet in document.descendants() {
            let child = |name: &str| subnet.children().find(|it| it.tag_name().name() == name);
            let id = child("subnetId").and_then(|it| it.text()).unwrap_or_default();
            let Some((zone, _)) = self.subnets.get(id) else { continue };
            let mut set = |name: &str, value: &str| {
                let new = format!("<{name}>{value}</{name}>");
                edits.extend(child(name).map(|it| (it.range(), new)));
            };
            set("availabilityZone", zone);
            if self.is_in_wavelength_zone(id) {
                // moto gives it to the first subnet of a zone.
                set("mapPublicIpOnLaunch", "false");
            }
        }
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        let mut shown = text.clone();
        for (range, new) in edits {
            shown.replace_range(range, &new);
        }
        shown
    }

    /// EC2 API, DescribeAvailabilityZones: AllAvailabilityZones includes zones without opt-in.
    fn zones(&self, region: &str) -> String {
        let status = if self.is_opted_out { "not-opted-in" } else { "opted-in" };
        let zone = |place: &str, group: &str, zone_type: &str, parent: &str, status: &str| {
            format!(
                "<item><zoneName>{region}{place}</zoneName><zoneState>available</zoneState>\
                 <regionName>{region}</regionName><groupName>{region}{group}</groupName>\
                 <zoneType>{zone_type}</zoneType><parentZoneName>{region}{parent}</parentZoneName>\
                 <optInStatus>{status}</optInStatus></item>"
            )
        };
        [
            zone(LOCAL, "-lcl-1", "local-zone", "b", status),
            zone(WAVELENGTH, "-wl1", "wavelength-zone", "c", status),
            zone("-far-1a", "-far-1", "local-zone", "a", "not-opted-in"),
        ]
        .concat()
    }
}

/// The edge zone in which a subnet shall be.
fn zone_of(call: &Call) -> Option<&str> {
    let zone = call.parameter("AvailabilityZone");
    [LOCAL, WAVELENGTH].iter().any(|it| zone.ends_with(it)).then_some(zone)
}

/// Carries out the creation of a subnet in an edge zone. None for another call.
pub(super) async fn create(
    upstream: &Upstream,
    edges: &Mutex<Edges>,
    call: &Call,
) -> Option<(StatusCode, String)> {
    let zone = zone_of(call).filter(|_| call.action == "CreateSubnet")?;
    let near = format!("{}a", call.region);
    let changed = ["Action", "AvailabilityZone", "Version"];
    let own = call.parameters.iter().filter(|(name, _)| !changed.contains(&name.as_str()));
    let mut make = vec![("Action", "CreateSubnet"), ("AvailabilityZone", &*near)];
    make.extend(own.map(|(name, value)| (&**name, &**value)));
    let upstream = upstream.with_key(&call.key);
    let answer = upstream.try_ask("ec2", "2016-11-15", &call.region, &make).await;
    if let Some(id) = Element::of(&answer.1).texts("subnetId").next() {
        let place = (zone.to_owned(), call.parameter("VpcId").to_owned());
        edges.lock().subnets.insert(id.to_owned(), place);
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::super::strict::Api;
    use super::super::strict::tests::call;
    use super::*;

    #[test]
    fn zones_are_shown_where_all_are_asked_for_and_refuse_what_aws_has_not_there() {
        let mut edges = Edges::default();
        let place = |zone: &str| (format!("us-east-2{zone}"), "vpc-1".to_owned());
        edges.subnets.insert("subnet-1".to_owned(), place(LOCAL));
        let describe = |all: &str| {
            let call =
                call(Api::Ec2, "DescribeAvailabilityZones", &[("AllAvailabilityZones", all)]);
            let text = "<R><availabilityZoneInfo></availabilityZoneInfo></R>".to_owned();
            Element::of(&edges.shown_in(&call, text)).with("zoneName").count()
        };
        assert_eq!([describe("true"), describe("false")], [3, 0]);
        let code = |edges: &Edges, action: &str, parameters: &[(&str, &str)]| {
            let api = if action == "CreateLoadBalancer" { Api::ElbV2 } else { Api::Ec2 };
            edges.refuses(&call(api, action, parameters)).map(|it| it.0)
        };
        let of = |id| [("SubnetId", id), ("MapPublicIpOnLaunch.Value", "true")];
        let vpc = [("VpcId", "vpc-1")];
        assert_eq!(code(&edges, "CreateCarrierGateway", &vpc), Some("InvalidParameterValue"));
        edges.subnets.insert("subnet-2".to_owned(), place(WAVELENGTH));
        assert_eq!(code(&edges, "CreateCarrierGateway", &vpc), None);
        for (id, maps, nat, balancer) in [
            ("subnet-1", None, Some("InvalidParameterValue"), Some("InvalidSubnet")),
            (
                "subnet-2",
                Some("InvalidParameterValue"),
                Some("InvalidParameterValue"),
                Some("InvalidSubnet"),
            ),
            ("subnet-3", None, None, None),
        ] {
            assert_eq!(code(&edges, "ModifySubnetAttribute", &of(id)), maps, "{id}");
            assert_eq!(code(&edges, "CreateNatGateway", &of(id)), nat, "{id}");
            let subnets = [("Subnets.member.1", "subnet-9"), ("Subnets.member.2", id)];
            assert_eq!(code(&edges, "CreateLoadBalancer", &subnets), balancer, "{id}");
        }
        let zone = format!("us-east-2{LOCAL}");
        let create = [("AvailabilityZone", &*zone)];
        assert_eq!(code(&edges, "CreateSubnet", &create), None);
        edges.opt_in(false);
        assert_eq!(code(&edges, "CreateSubnet", &create), Some("OptInRequired"));

        let subnet = "<R><subnetSet><item><subnetId>subnet-2</subnetId>\
            <availabilityZone>us-east-2a</availabilityZone>\
            <mapPublicIpOnLaunch>true</mapPublicIpOnLaunch></item></subnetSet></R>";
        let shown = edges.shown_in(&call(Api::Ec2, "DescribeSubnets", &[]), subnet.to_owned());
        let shown = Element::of(&shown);
        let words = ["availabilityZone", "mapPublicIpOnLaunch"];
        let found = shown.whose("subnetId", "subnet-2").unwrap();
        assert_eq!(
            words.map(|it| found.text_of(it)),
            [&*format!("us-east-2{WAVELENGTH}"), "false"]
        );
    }
}
