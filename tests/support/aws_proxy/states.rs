//! States that take their time at AWS and no time in moto: NAT gateways that are made, fail and go, associations of
//! route tables, and load balancers that are deleted and still hold their subnets.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::call::Call;

const NAT: &str = "<natGatewayId>";
const ASSOCIATION: &str = "<routeTableAssociationId>";
const ACTIVE: &str = "<state>active</state>";
const ASSOCIATED: &str = "<state>associated</state>";
const ASSOCIATING: &str = "<state>associating</state>";
const IPV6: &str = "<ipv6CidrBlock>";
const AVAILABLE: &str = "<state>available</state>";
const PENDING: &str = "<state>pending</state>";
const DELETED: &str = "<state>deleted</state>";
const FAILED: &str = "<state>failed</state><failureCode>Gateway.NotAttached</failureCode>\
                      <failureMessage>The proxy says so</failureMessage>";

/// A text of an answer, and what is shown instead.
type Instead = (&'static str, &'static str);

/// For how many answers each state lasts.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// A NAT gateway that was made is `pending`.
    pub pending: u32,
    /// A NAT gateway that is deleted is `deleting`, and holds its subnet and its addresses.
    pub deleting: u32,
    /// An association of a route table, or of an IPv6 CIDR with a VPC, is `associating`.
    pub associating: u32,
    /// A load balancer that was deleted holds its subnets and groups: so many calls are refused for each.
    pub draining: u32,
}

impl Pace {
    /// Whatever is asked for is done at once, as in moto.
    pub const PROMPT: Self = Self { pending: 0, deleting: 0, associating: 0, draining: 0 };
    /// Each state is seen once.
    pub const SLOW: Self = Self { pending: 1, deleting: 1, associating: 1, draining: 1 };
}

/// States that are shown instead of those of moto.
pub(super) struct States {
    pace: Pace,
    /// Time for which each NAT gateway is pending at first.
    time: Duration,
    /// How often each NAT gateway was shown, and since when.
    shown: BTreeMap<String, (u32, Instant)>,
    /// Number of NAT gateways that will still fail.
    to_fail: u32,
    failed: BTreeSet<String>,
    /// NAT gateways that were deleted, and for how many answers they are `deleting`.
    deleting: BTreeMap<String, u32>,
    /// How often each association was shown, by its id or its CIDR.
    associations: BTreeMap<String, u32>,
    /// What deleted load balancers hold, and how many calls will be refused for it.
    held: BTreeMap<String, u32>,
}

/// The text with the state of some of what it shows replaced. An element that begins an id begins a resource.
fn replaced(text: &str, id: &str, mut instead: impl FnMut(&str) -> Option<Instead>) -> String {
    let mut parts = text.split(id);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str(id);
        match part.split_once('<').and_then(|(id, _)| instead(id)) {
            Some((state, other)) => shown.push_str(&part.replacen(state, other, 1)),
            None => shown.push_str(part),
        }
    }
    shown
}

impl States {
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            time: Duration::ZERO,
            shown: BTreeMap::new(),
            to_fail: 0,
            failed: BTreeSet::new(),
            deleting: BTreeMap::new(),
            associations: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    pub(super) fn pace(&mut self) -> &mut Pace {
        &mut self.pace
    }

    pub(super) fn pending_until(&mut self, time: Duration) {
        self.time = time;
    }

    pub(super) fn fail(&mut self, number: u32) {
        self.to_fail = number;
    }

    /// The answer of a call as AWS might have given it.
    pub(super) fn shown_as(&mut self, call: &Call, text: String) -> String {
        match call.action.as_str() {
            "DescribeNatGateways" => replaced(&text, NAT, |id| {
                self.count(id);
                self.instead(id)
            }),
            "DescribeRouteTables" => {
                let text = replaced(&text, ASSOCIATION, |id| self.association(id));
                let is_gone = |id: &str| self.deleting.get(id) == Some(&0);
                let blackhole = (ACTIVE, "<state>blackhole</state>");
                replaced(&text, NAT, |id| is_gone(id).then_some(blackhole))
            }
            "CreateNatGateway" if self.pace.pending > 0 => text.replace(AVAILABLE, PENDING),
            "DescribeVpcs" => replaced(&text, IPV6, |block| self.association(block)),
            "AssociateRouteTable" if self.pace.associating > 0 => {
                text.replace(ASSOCIATED, ASSOCIATING)
            }
            "CreateVpc" if self.pace.associating > 0 => {
                replaced(&text, IPV6, |_| Some((ASSOCIATED, ASSOCIATING)))
            }
            _ => text,
        }
    }

    /// An answer with NAT gateways as they were shown last: a look of the proxy itself.
    pub(super) fn nats_as_shown(&self, text: &str) -> String {
        replaced(text, NAT, |id| self.instead(id))
    }

    /// The state of an association, which is shown once more.
    fn association(&mut self, id: &str) -> Option<Instead> {
        let shown = self.associations.entry(id.to_owned()).or_default();
        *shown += 1;
        (*shown <= self.pace.associating).then_some((ASSOCIATED, ASSOCIATING))
    }

    fn count(&mut self, id: &str) {
        let (shown, _) = self.shown.entry(id.to_owned()).or_insert((0, Instant::now()));
        *shown += 1;
        if *shown - 1 == self.pace.pending && self.to_fail > 0 {
            self.to_fail -= 1;
            self.failed.insert(id.to_owned());
        }
    }

    fn instead(&self, id: &str) -> Option<Instead> {
        if self.deleting.get(id).is_some_and(|left| *left > 0) {
            return Some((DELETED, "<state>deleting</state>"));
        }
        let is_new = self.shown.get(id).map_or(self.pace.pending > 0, |(shown, since)| {
            *shown <= self.pace.pending || since.elapsed() < self.time
        });
        if is_new {
            return Some((AVAILABLE, PENDING));
        }
        self.failed.contains(id).then_some((AVAILABLE, FAILED))
    }

    /// Notes a call that was carried out. The NAT gateways that are gone by now.
    pub(super) fn note(&mut self, call: &Call, answer: &str) -> Vec<String> {
        match call.action.as_str() {
            "DeleteNatGateway" => {
                let id = call.parameter("NatGatewayId").to_owned();
                self.deleting.entry(id.clone()).or_insert(self.pace.deleting);
                if self.pace.deleting == 0 { vec![id] } else { Vec::new() }
            }
            "DescribeNatGateways" => {
                let mut gone = Vec::new();
                for (id, left) in &mut self.deleting {
                    if *left > 0 && answer.contains(&format!("{NAT}{id}<")) {
                        *left -= 1;
                        gone.extend((*left == 0).then(|| id.clone()));
                    }
                }
                gone
            }
            _ => Vec::new(),
        }
    }

    /// Has a load balancer that is deleted hold this for a while.
    pub(super) fn hold(&mut self, ids: impl Iterator<Item = String>) {
        self.held.extend(ids.map(|id| (id, self.pace.draining)));
    }

    /// Whether something that a call removes is held.
    pub(super) fn holds(&mut self, call: &Call) -> bool {
        let removes = ["DeleteSubnet", "DeleteSecurityGroup", "DetachInternetGateway"];
        removes.contains(&call.action.as_str())
            && call.parameters.values().any(|id| match self.held.get_mut(id) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    true
                }
                _ => false,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::super::strict::Api;
    use super::super::strict::tests::call;
    use super::*;

    fn nat(state: &str) -> String {
        format!("<item>{NAT}nat-1</natGatewayId><state>{state}</state></item>")
    }

    #[test]
    fn a_nat_gateway_is_pending_for_one_answer_and_deleting_for_one() {
        let mut states = States::new(Pace::SLOW);
        let describe = call(Api::Ec2, "DescribeNatGateways", &[]);
        assert_eq!(states.nats_as_shown(&nat("available")), nat("pending"), "it was not shown");
        for state in ["pending", "available"] {
            assert_eq!(states.shown_as(&describe, nat("available")), nat(state));
            assert_eq!(states.nats_as_shown(&nat("available")), nat(state), "as it was shown");
        }
        let delete = call(Api::Ec2, "DeleteNatGateway", &[("NatGatewayId", "nat-1")]);
        assert_eq!(states.note(&delete, ""), [""; 0], "its addresses are not free");
        let shown = states.shown_as(&describe, nat("deleted"));
        assert_eq!(shown, nat("deleting"));
        assert_eq!(states.note(&describe, &shown), ["nat-1"]);
        assert_eq!(states.shown_as(&describe, nat("deleted")), nat("deleted"));

        let tables = call(Api::Ec2, "DescribeRouteTables", &[]);
        assert_eq!(states.shown_as(&tables, nat("active")), nat("blackhole"));
    }

    #[test]
    fn a_deleted_load_balancer_holds_its_subnets_for_one_call() {
        let mut states = States::new(Pace::SLOW);
        states.hold(["subnet-1".to_owned()].into_iter());
        let delete = call(Api::Ec2, "DeleteSubnet", &[("SubnetId", "subnet-1")]);
        assert_eq!([states.holds(&delete), states.holds(&delete)], [true, false]);
    }

    #[test]
    fn an_association_is_associating_at_first() {
        let mut states = States::new(Pace::SLOW);
        for (action, id) in [("DescribeRouteTables", ASSOCIATION), ("DescribeVpcs", IPV6)] {
            let shown = |state: &str| format!("{id}{action}</a><state>{state}</state>");
            let describe = call(Api::Ec2, action, &[]);
            for state in ["associating", "associated"] {
                assert_eq!(states.shown_as(&describe, shown("associated")), shown(state));
            }
        }
    }
}
