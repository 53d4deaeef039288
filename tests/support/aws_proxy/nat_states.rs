//! States of NAT gateways, which take minutes at AWS and may be a failure. moto's are available at
//! once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::call::Call;

const ID: &str = "<natGatewayId>";
const AVAILABLE: &str = "<state>available</state>";
const PENDING: &str = "<state>pending</state>";
const FAILED: &str = "<state>failed</state><failureCode>Gateway.NotAttached</failureCode>\
                      <failureMessage>The proxy says so</failureMessage>";

/// States that are shown instead of `available`.
#[derive(Default)]
pub(super) struct NatStates {
    /// Number of answers in which each gateway is pending at first.
    polls: u32,
    /// Time for which each gateway is pending at first.
    time: Duration,
    /// How often each gateway was shown, and since when.
    shown: BTreeMap<String, (u32, Instant)>,
    /// Number of NAT gateways that will still fail.
    to_fail: u32,
    failed: BTreeSet<String>,
}

impl NatStates {
    pub(super) fn pending_for(&mut self, polls: u32) {
        self.polls = polls;
    }

    pub(super) fn pending_until(&mut self, time: Duration) {
        self.time = time;
    }

    pub(super) fn fail(&mut self, number: u32) {
        self.to_fail = number;
    }

    /// The answer of a call as AWS might have given it.
    pub(super) fn shown_as(&mut self, call: &Call, text: String) -> String {
        if call.action != "DescribeNatGateways" {
            return text;
        }
        let mut parts = text.split(ID);
        let mut shown = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            shown.push_str(ID);
            match part.split_once('<').and_then(|(id, _)| self.instead_of_available(id)) {
                Some(state) => shown.push_str(&part.replacen(AVAILABLE, state, 1)),
                None => shown.push_str(part),
            }
        }
        shown
    }

    fn instead_of_available(&mut self, id: &str) -> Option<&'static str> {
        let (shown, since) = self.shown.entry(id.to_owned()).or_insert((0, Instant::now()));
        *shown += 1;
        if *shown <= self.polls || since.elapsed() < self.time {
            return Some(PENDING);
        }
        if *shown == self.polls + 1 && self.to_fail > 0 {
            self.to_fail -= 1;
            self.failed.insert(id.to_owned());
        }
        self.failed.contains(id).then_some(FAILED)
    }
}
