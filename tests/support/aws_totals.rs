//! How many resources of each kind there are in the region, whosever they are and whatever their
//! tags.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

use crate::aws_proxy::Upstream;

/// What stands for one resource in the answer of a describe call of EC2.
const KINDS: [(&str, &str); 10] = [
    ("DescribeVpcs", "vpcSet"),
    ("DescribeSubnets", "subnetSet"),
    ("DescribeInternetGateways", "internetGatewaySet"),
    ("DescribeEgressOnlyInternetGateways", "egressOnlyInternetGatewaySet"),
    ("DescribeCarrierGateways", "carrierGatewaySet"),
    ("DescribeAddresses", "addressesSet"),
    ("DescribeNatGateways", "natGatewaySet"),
    ("DescribeRouteTables", "routeTableSet"),
    ("DescribeSecurityGroups", "securityGroupInfo"),
    ("DescribeInstances", "instancesSet"),
];

/// Words for what has ended and is still shown.
const ENDED: [&str; 2] = ["deleted", "terminated"];

/// By kind.
pub type Totals = BTreeMap<String, usize>;

/// Counts what there is.
pub async fn totals(upstream: &Upstream, region: &str) -> Totals {
    let mut totals = Totals::new();
    for (action, set) in KINDS {
        let answer = upstream.ec2(region, &[("Action", action)]).await;
        totals.insert(action.trim_start_matches("Describe").to_owned(), items(&answer, set));
    }
    let describe = [("Action", "DescribeLoadBalancers")];
    let classic = upstream.elb(region, &describe).await;
    totals.insert("ClassicLoadBalancers".to_owned(), members(&classic, "LoadBalancerDescriptions"));
    let network = upstream.elbv2(region, &describe).await;
    totals.insert("NetworkLoadBalancers".to_owned(), members(&network, "LoadBalancers"));
    let groups = upstream.elbv2(region, &[("Action", "DescribeTargetGroups")]).await;
    totals.insert("TargetGroups".to_owned(), members(&groups, "TargetGroups"));
    totals
}

/// Items of all sets of a name, but those that have ended.
fn items(answer: &str, set: &str) -> usize {
    let document = Document::parse(answer).unwrap();
    let sets = document.descendants().filter(|node| node.tag_name().name() == set);
    let items = sets.flat_map(|set| set.children().filter(Node::is_element));
    let has_ended = |item: &Node<'_, '_>| {
        let own = item
            .children()
            .filter(|child| ["state", "instanceState"].contains(&child.tag_name().name()));
        own.flat_map(|state| state.descendants())
            .any(|node| node.text().is_some_and(|text| ENDED.contains(&text)))
    };
    items.filter(|item| !has_ended(item)).count()
}

fn members(answer: &str, set: &str) -> usize {
    let document = Document::parse(answer).unwrap();
    let sets = document.descendants().filter(|node| node.tag_name().name() == set);
    sets.map(|set| set.children().filter(|node| node.tag_name().name() == "member").count()).sum()
}
