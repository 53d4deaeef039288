//! Regional NAT gateways, which moto does not have: a private NAT gateway of moto stands for each, and answers show
//! it as AWS does. AWS makes a route table for each, which goes with it.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use roxmltree::{Document, Node};

use super::call::Call;
use super::elements::Element;
use super::upstream::Upstream;

/// The page that decides.
const PAGE: &str = "Amazon VPC user guide, Regional NAT gateways; EC2 API, CreateNatGateway";

/// A refusal: the code and the page.
type Refused = (&'static str, &'static str);

/// The regional NAT gateways.
pub(super) struct Regional {
    /// The route table that AWS has made for each, by its id.
    tables: BTreeMap<String, String>,
    /// The tags of the last one, which AWS may give its addresses, too.
    tags: String,
    /// The number of addresses that each has, one for each zone that it serves.
    addresses: usize,
}

impl Default for Regional {
    fn default() -> Self {
        Self { tables: BTreeMap::new(), tags: String::new(), addresses: 1 }
    }
}

impl Regional {
    pub(super) fn grow_to(&mut self, addresses: usize) {
        self.addresses = addresses;
    }

    /// Whether a call changes a table that AWS has made. No page names the code.
    pub(super) fn refuses(&self, call: &Call) -> Option<Refused> {
        let table = call.parameter("RouteTableId");
        let is_of_aws = self.tables.values().any(|it| it == table);
        (is_of_aws && call.is_write()).then_some(("OperationNotPermitted", PAGE))
    }

    /// An address that AWS manages.
    fn address(&self) -> String {
        format!(
            "<item><allocationId>eipalloc-aws01</allocationId><publicIp>203.0.113.1</publicIp>\
             <domain>vpc</domain><serviceManaged>rnat</serviceManaged>{}</item>",
            self.tags
        )
    }

    /// An answer with regional NAT gateways and their addresses as AWS shows them.
    pub(super) fn shown_in(&self, call: &Call, text: String) -> String {
        if self.tables.is_empty() {
            return text;
        }
        if call.action == "DescribeAddresses" {
            let end = "</addressesSet>";
            let text = text.replacen("<addressesSet/>", &format!("<addressesSet>{end}"), 1);
            return text.replacen(end, &format!("{}{end}", self.address()), 1);
        }
        if !["CreateNatGateway", "DescribeNatGateways"].contains(&call.action.as_str()) {
            return text;
        }
        let document = Document::parse(&text).expect("moto answers XML");
        let mut edits = Vec::new();
        for nat in document.descendants() {
            let child = |name: &str| nat.children().find(|it| it.tag_name().name() == name);
            let Some(id) = child("natGatewayId") else { continue };
            let known = self.tables.keys().position(|known| Some(known.as_str()) == id.text());
            let Some(place) = known else { continue };
            let table = self.tables.values().nth(place).expect("it has a table");
            let end = id.range().end;
            let more = "<availabilityMode>regional</availabilityMode>";
            edits.push((end..end, format!("{more}<routeTableId>{table}</routeTableId>")));
            let has_none = child("state").and_then(|it| it.text()) == Some("pending");
            let addresses = if has_none { 0 } else { self.addresses };
            let mut replace = |node: Option<Node<'_, '_>>, new: String| {
                edits.extend(node.map(|node| (node.range(), new)));
            };
            replace(child("subnetId"), String::new());
            replace(
                child("connectivityType"),
                "<connectivityType>public</connectivityType>".into(),
            );
            replace(child("natGatewayAddressSet"), address_set(place, addresses));
        }
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        let mut shown = text.clone();
        for (range, new) in edits {
            shown.replace_range(range, &new);
        }
        shown
    }
}

/// The tags of a create, as answers show them.
fn tag_set(call: &Call) -> String {
    let keys = call.parameters.iter().filter_map(|(name, key)| {
        let start = name.strip_suffix(".Key").filter(|it| it.starts_with("TagSpecification."))?;
        let value = call.parameter(&format!("{start}.Value"));
        Some(format!("<item><key>{key}</key><value>{value}</value></item>"))
    });
    format!("<tagSet>{}</tagSet>", keys.collect::<String>())
}

/// Addresses of AWS, which has allocated them itself.
fn address_set(place: usize, number: usize) -> String {
    let one = |zone: usize| {
        format!(
            "<item><allocationId>eipalloc-aws{place}{zone}</allocationId>\
             <publicIp>203.0.113.{}</publicIp></item>",
            place * 10 + zone
        )
    };
    let all: String = (1..=number).map(one).collect();
    format!("<natGatewayAddressSet>{all}</natGatewayAddressSet>")
}

/// Carries out the creation of a regional NAT gateway. None for another call.
pub(super) async fn create(
    upstream: &Upstream,
    regional: &Mutex<Regional>,
    call: &Call,
) -> Option<Result<String, Refused>> {
    let is_regional = call.parameter("AvailabilityMode") == "regional";
    if call.action != "CreateNatGateway" || !is_regional {
        return None;
    }
    let vpc = call.parameter("VpcId");
    if vpc.is_empty() {
        return Some(Err(("MissingParameter", PAGE)));
    }
    if ["SubnetId", "AllocationId"].iter().any(|name| !call.parameter(name).is_empty()) {
        return Some(Err(("InvalidParameterCombination", PAGE)));
    }
    let upstream = upstream.with_key(&call.key);
    let ec2 = async |parameters: &[(&str, &str)]| upstream.ec2(&call.region, parameters).await;
    let id_of =
        |answer: &str, name: &str| Element::of(answer).texts(name).next().map(str::to_owned);
    let of_vpc =
        |action, filter| [("Action", action), ("Filter.1.Name", filter), ("Filter.1.Value.1", vpc)];
    let gateways = ec2(&of_vpc("DescribeInternetGateways", "attachment.vpc-id")).await;
    let Some(gateway) = id_of(&gateways, "internetGatewayId") else {
        return Some(Err(("Gateway.NotAttached", PAGE)));
    };
    let subnets = ec2(&of_vpc("DescribeSubnets", "vpc-id")).await;
    let subnet = id_of(&subnets, "subnetId").expect("moto needs a subnet");
    let mut make = vec![
        ("Action", "CreateNatGateway"),
        ("SubnetId", &*subnet),
        ("ConnectivityType", "private"),
    ];
    let tags = call.parameters.iter().filter(|(name, _)| name.starts_with("TagSpecification."));
    make.extend(tags.map(|(name, value)| (&**name, &**value)));
    let answer = ec2(&make).await;
    let nat = id_of(&answer, "natGatewayId").expect("moto makes it");
    let table = ec2(&[("Action", "CreateRouteTable"), ("VpcId", vpc)]).await;
    let table = id_of(&table, "routeTableId").expect("moto makes it");
    let route = [
        ("RouteTableId", &*table),
        ("DestinationCidrBlock", "0.0.0.0/0"),
        ("GatewayId", &*gateway),
    ];
    ec2(&[&[("Action", "CreateRoute")], &route[..]].concat()).await;
    let mut regional = regional.lock();
    regional.tables.insert(nat, table);
    regional.tags = tag_set(call);
    Some(Ok(answer))
}

/// Does what follows from the end of a NAT gateway: the table that AWS has made for it goes.
pub(super) async fn end(upstream: &Upstream, regional: &Mutex<Regional>, call: &Call, nat: &str) {
    let table = regional.lock().tables.get(nat).cloned();
    if let Some(table) = table {
        let delete = [("Action", "DeleteRouteTable"), ("RouteTableId", &*table)];
        upstream.with_key(&call.key).ec2(&call.region, &delete).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::strict::Api;
    use super::super::strict::tests::call;
    use super::*;

    #[test]
    fn one_is_shown_without_subnet_and_with_the_addresses_that_it_has_grown_to() {
        let mut regional = Regional::default();
        regional.tables.insert("nat-1".to_owned(), "rtb-1".to_owned());
        let item = |id: &str, state: &str| {
            format!(
                "<item><natGatewayAddressSet><item><privateIp>10.0.0.4</privateIp></item>\
                 </natGatewayAddressSet><natGatewayId>{id}</natGatewayId><state>{state}</state>\
                 <subnetId>subnet-1</subnetId><connectivityType>private</connectivityType></item>"
            )
        };
        let describe = call(Api::Ec2, "DescribeNatGateways", &[]);
        let shown = |regional: &Regional, state: &str| {
            let text = format!("<R>{}{}</R>", item("nat-1", state), item("nat-2", state));
            let shown = regional.shown_in(&describe, text);
            assert!(shown.ends_with(&format!("{}</R>", item("nat-2", state))), "{shown}");
            let shown = Element::of(&shown);
            let nat = shown.whose("natGatewayId", "nat-1").unwrap();
            let words = ["availabilityMode", "routeTableId", "connectivityType", "subnetId"];
            assert_eq!(words.map(|name| nat.text_of(name)), ["regional", "rtb-1", "public", ""]);
            nat.texts("publicIp").count()
        };
        assert_eq!([shown(&regional, "pending"), shown(&regional, "available")], [0, 1]);
        regional.grow_to(3);
        assert_eq!(shown(&regional, "available"), 3);
        let change = call(Api::Ec2, "DeleteRouteTable", &[("RouteTableId", "rtb-1")]);
        assert_eq!(regional.refuses(&change).unwrap().0, "OperationNotPermitted");
    }
}
