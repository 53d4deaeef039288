//! Reads that do not show what was just made, and writes that do not know it yet: AWS is eventually consistent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use roxmltree::{Document, Node};

use super::call::Call;
use super::strict::Api;

/// A kind of resource: what makes it, what shows it, the element that names it in both, and the code of a call that
/// names one that AWS does not know. ELB: `DescribeLoadBalancers` refuses names that it does not know.
struct Kind(Api, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const KINDS: &[Kind] = &[
    Kind(Api::Ec2, "CreateVpc", "DescribeVpcs", "vpcId", "InvalidVpcID.NotFound"),
    Kind(Api::Ec2, "CreateSubnet", "DescribeSubnets", "subnetId", "InvalidSubnetID.NotFound"),
    Kind(Api::Ec2, "CreateInternetGateway", "DescribeInternetGateways", "internetGatewayId",
        "InvalidInternetGatewayID.NotFound"),
    Kind(Api::Ec2, "CreateEgressOnlyInternetGateway", "DescribeEgressOnlyInternetGateways",
        "egressOnlyInternetGatewayId", "InvalidGatewayID.NotFound"),
    Kind(Api::Ec2, "CreateCarrierGateway", "DescribeCarrierGateways", "carrierGatewayId",
        "InvalidCarrierGatewayID.NotFound"),
    Kind(Api::Ec2, "AllocateAddress", "DescribeAddresses", "allocationId",
        "InvalidAllocationID.NotFound"),
    Kind(Api::Ec2, "CreateNatGateway", "DescribeNatGateways", "natGatewayId",
        "InvalidNatGatewayID.NotFound"),
    Kind(Api::Ec2, "CreateRouteTable", "DescribeRouteTables", "routeTableId",
        "InvalidRouteTableID.NotFound"),
    Kind(Api::Ec2, "CreateSecurityGroup", "DescribeSecurityGroups", "groupId",
        "InvalidGroup.NotFound"),
    Kind(Api::Ec2, "RunInstances", "DescribeInstances", "instanceId", "InvalidInstanceID.NotFound"),
    Kind(Api::Classic, "CreateLoadBalancer", "DescribeLoadBalancers", "LoadBalancerName",
        "LoadBalancerNotFound"),
    Kind(Api::ElbV2, "CreateLoadBalancer", "DescribeLoadBalancers", "LoadBalancerArn",
        "LoadBalancerNotFound"),
    Kind(Api::ElbV2, "CreateTargetGroup", "DescribeTargetGroups", "TargetGroupArn",
        "TargetGroupNotFound"),
    Kind(Api::ElbV2, "CreateListener", "DescribeListeners", "ListenerArn", "ListenerNotFound"),
];

/// Verbs of calls that end something, which are carried out at once.
const REMOVES: [&str; 6] = ["Delete", "Detach", "Release", "Revoke", "Disassociate", "Terminate"];

/// What was made, and when.
pub(super) struct Late {
    lag: Duration,
    clock: Box<dyn Fn() -> Duration + Send>,
    born: BTreeMap<String, Duration>,
    /// What a write has already been refused for.
    refused: BTreeSet<String>,
}

impl Late {
    pub(super) fn never() -> Self {
        Self::by(Duration::ZERO, Box::new(|| Duration::ZERO))
    }

    pub(super) fn by(lag: Duration, clock: Box<dyn Fn() -> Duration + Send>) -> Self {
        Self { lag, clock, born: BTreeMap::new(), refused: BTreeSet::new() }
    }

    pub(super) fn forget(&mut self) {
        self.born.clear();
        self.refused.clear();
    }

    fn is_young(&self, id: &str) -> bool {
        self.born.get(id).is_some_and(|born| (self.clock)() < *born + self.lag)
    }

    /// Notes what a call has made.
    pub(super) fn note(&mut self, call: &Call, answer: &str) {
        let kind = KINDS.iter().find(|kind| kind.0 == Api::of(call) && kind.1 == call.action);
        let Some(Kind(_, _, _, element, _)) = kind.filter(|_| !self.lag.is_zero()) else { return };
        let document = Document::parse(answer).expect("moto answers XML");
        let made = document.descendants().find(|it| it.tag_name().name() == *element);
        let id = made.and_then(|it| it.text()).unwrap_or_else(|| call.parameter(element));
        self.born.entry(id.to_owned()).or_insert_with(|| (self.clock)());
    }

    /// The code of a write that names what is not known everywhere: the first one for each resource.
    pub(super) fn refuses(&mut self, call: &Call) -> Option<&'static str> {
        if !call.is_write() || REMOVES.iter().any(|verb| call.action.starts_with(verb)) {
            return None;
        }
        let is_named = |(name, _): &(&String, &String)| {
            !name.ends_with(".Value")
                && (call.action != "CreateLoadBalancer" || *name != "LoadBalancerName")
        };
        let mut named = call.parameters.iter().filter(is_named).map(|(_, id)| id);
        let young = named.find(|id| !self.refused.contains(*id) && self.is_young(id))?;
        let code = code_of(Api::of(call), young)?;
        self.refused.insert(young.clone());
        Some(code)
    }

    /// An answer without what is too young; the code of a call that asks for it by name.
    pub(super) fn shown_as(&self, call: &Call, answer: String) -> Result<String, &'static str> {
        let kind = KINDS.iter().find(|kind| kind.0 == Api::of(call) && kind.2 == call.action);
        let Some(Kind(_, _, _, element, code)) = kind.filter(|_| !self.born.is_empty()) else {
            return Ok(answer);
        };
        let document = Document::parse(&answer).expect("moto answers XML");
        let is_young = |item: &Node<'_, '_>| {
            let mut ids = item.children().filter(|child| child.tag_name().name() == *element);
            ids.any(|id| id.text().is_some_and(|id| self.is_young(id)))
        };
        let is_item = |it: &Node<'_, '_>| ["item", "member"].contains(&it.tag_name().name());
        let is_outer = |it: &Node<'_, '_>| {
            let within = it.ancestors().skip(1).filter(is_item).filter_map(|it| it.parent());
            within.into_iter().all(|set| set.tag_name().name() == "reservationSet")
        };
        let items = document.descendants().filter(is_item).filter(is_outer);
        let hidden: Vec<_> = items.filter(is_young).map(|item| item.range()).collect();
        if hidden.is_empty() {
            return Ok(answer);
        }
        let asks_by_name = ["Names.", "LoadBalancerNames.", "TargetGroupArns."];
        if call.parameters.keys().any(|name| asks_by_name.iter().any(|it| name.starts_with(it))) {
            return Err(code);
        }
        let mut shown = answer.clone();
        for range in hidden.into_iter().rev() {
            shown.replace_range(range, "");
        }
        Ok(shown)
    }
}

/// The code of a call of this API that names something with such an id.
fn code_of(api: Api, id: &str) -> Option<&'static str> {
    let made_by = match id.split(['-', ':']).next()? {
        "subnet" if api != Api::Ec2 => return Some("SubnetNotFound"),
        "sg" if api != Api::Ec2 => return Some("InvalidSecurityGroup"),
        "vpc" if api != Api::Ec2 => return None,
        "vpc" => "CreateVpc",
        "subnet" => "CreateSubnet",
        "igw" => "CreateInternetGateway",
        "eigw" => "CreateEgressOnlyInternetGateway",
        "cagw" => "CreateCarrierGateway",
        "eipalloc" => "AllocateAddress",
        "nat" => "CreateNatGateway",
        "rtb" => "CreateRouteTable",
        "sg" => "CreateSecurityGroup",
        "i" => "RunInstances",
        _ if id.contains(":targetgroup/") => "CreateTargetGroup",
        _ if id.contains(":listener/") => "CreateListener",
        _ => "CreateLoadBalancer",
    };
    KINDS.iter().find(|kind| kind.1 == made_by).map(|kind| kind.4)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::strict::tests::call;
    use super::*;

    const SUBNETS: &str = "<subnetSet><item><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId></item>\
        <item><subnetId>subnet-2</subnetId><vpcId>vpc-1</vpcId></item></subnetSet>";
    const BALANCERS: &str = "<member><LoadBalancerArn>arn:1</LoadBalancerArn></member>";

    #[test]
    fn what_was_made_is_shown_and_known_everywhere_after_its_time() {
        let time = Arc::new(AtomicU64::new(100));
        let clock = Arc::clone(&time);
        let now = move || Duration::from_secs(clock.load(Ordering::Relaxed));
        let mut late = Late::by(Duration::from_secs(5), Box::new(now));
        late.note(
            &call(Api::Ec2, "CreateSubnet", &[]),
            "<subnet><subnetId>subnet-1</subnetId></subnet>",
        );
        late.note(&call(Api::ElbV2, "CreateLoadBalancer", &[]), BALANCERS);

        let describe = call(Api::Ec2, "DescribeSubnets", &[]);
        let shown = late.shown_as(&describe, SUBNETS.to_owned()).unwrap();
        assert!(!shown.contains("subnet-1") && shown.contains("subnet-2"), "{shown}");
        let by_name = call(Api::ElbV2, "DescribeLoadBalancers", &[("Names.member.1", "one")]);
        assert_eq!(late.shown_as(&by_name, BALANCERS.to_owned()), Err("LoadBalancerNotFound"));
        let all = call(Api::ElbV2, "DescribeLoadBalancers", &[]);
        assert_eq!(late.shown_as(&all, BALANCERS.to_owned()), Ok(String::new()));

        let write = call(Api::Ec2, "AssociateRouteTable", &[("SubnetId", "subnet-1")]);
        assert_eq!(late.refuses(&write), Some("InvalidSubnetID.NotFound"));
        assert_eq!(late.refuses(&write), None, "once");
        assert_eq!(
            late.refuses(&call(Api::Ec2, "DeleteSubnet", &[("SubnetId", "subnet-1")])),
            None
        );

        time.store(105, Ordering::Relaxed);
        assert_eq!(late.shown_as(&describe, SUBNETS.to_owned()), Ok(SUBNETS.to_owned()));
        assert_eq!(late.shown_as(&by_name, BALANCERS.to_owned()), Ok(BALANCERS.to_owned()));
    }
}
