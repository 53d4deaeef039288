//! What pages and metrics read of a [`Member`], and [`explain`], the message of its condition.

use std::time::Instant;

use jiff::Timestamp;

use super::{Last, Member};
use crate::availability::Ratios;
use crate::availability::record::{Record, Sums};
use crate::finding::{MESSAGE_MAX, one_line, short_line};
use crate::{Beat, Endpoints, Health, Moment, Published};

impl Member {
    /// The published state.
    pub fn published(&self) -> Option<&Published> {
        self.published.as_ref()
    }

    /// When its next probe starts; `None` while one is under way.
    pub fn due(&self) -> Option<Instant> {
        self.schedule.due()
    }

    /// Whether a run of results contradicts what is published without being long enough to change
    /// it.
    pub fn is_confirming(&self) -> bool {
        let is_partition = self.health() == Some(Health::HubPartition);
        self.tally.contradicts(self.ready()) || is_partition && self.failures() > 0
    }

    /// Failures in a row that counted.
    pub fn failures(&self) -> u32 {
        self.tally.failures()
    }

    /// Successes in a row.
    pub fn successes(&self) -> u32 {
        self.tally.successes()
    }

    /// The last probe of this process.
    pub fn last(&self) -> Option<Last> {
        self.last
    }

    /// Whether it flaps.
    pub fn is_damped(&self) -> bool {
        self.flaps.is_damped()
    }

    /// Whether a probe is under way.
    pub fn is_probing(&self) -> bool {
        self.schedule.is_probing()
    }

    /// The share of the time in which it was well.
    pub fn availability(&self, now: Moment) -> Ratios {
        self.availability.ratios(now)
    }

    /// The record to keep in the object; `None` before a result has held for some time.
    pub fn record(&self) -> Option<&Record> {
        self.availability.to_keep()
    }

    /// How long it was observed, and bad, in the last 28 days.
    pub fn sums(&self, now: Timestamp) -> Sums {
        self.availability.sums(now)
    }

    /// How long it was observed, and bad, since it came to this process.
    pub fn totals(&self) -> Sums {
        self.availability.totals()
    }

    /// Since when the hour and the day have been counted: since the cluster came to this process.
    pub fn observed_since(&self) -> Instant {
        self.availability.since()
    }
}

/// The message of the condition about readiness: what was found, how many addresses are down, how
/// long the run of failures is and when the next probe comes. When that is too long for a message
/// the detail of what was found is cut. It stands in objects until the next heartbeat, so it tells
/// the wait before the next probe and not its time, which would soon be past.
pub fn explain(member: &Member, now: Instant) -> String {
    let Some(published) = member.published() else { return String::new() };
    let mut rest = endpoints_down(published.endpoints);
    if !member.by_lease && (published.health != Health::Ready || member.is_path_down()) {
        rest += &run_of_failures(member, now);
    }
    let mut text = sentence(member, published);
    if let Some(detail) = &published.detail {
        let taken = text.chars().count() + ": ".len() + rest.chars().count();
        let detail = short_line(detail, MESSAGE_MAX.saturating_sub(taken));
        if !detail.is_empty() {
            text = text + ": " + &detail;
        }
    }
    one_line(&(text + &rest))
}

fn endpoints_down(endpoints: Endpoints) -> String {
    if endpoints.down > 0 && endpoints.total > 1 {
        return format!("; {} of {} API endpoints down", endpoints.down, endpoints.total);
    }
    String::new()
}

fn sentence(member: &Member, published: &Published) -> String {
    match (published.finding, published.health) {
        _ if member.is_path_down() => {
            "probes do not reach the cluster, but it still renews its Lease".to_owned()
        }
        (_, Health::Ready) if member.by_lease && member.beat == Beat::Well => "the cluster renews its Lease; it is not probed".to_owned(),
        (_, Health::NotReady) if member.by_lease && member.beat == Beat::Unwell => {
            "the cluster renews its Lease, which reports that its /readyz fails: beat".to_owned()
        }
        (_, Health::HeartbeatStopped) => {
            "the cluster is not probed and does not renew its Lease".to_owned()
        }
        (_, Health::Unknown) if member.by_lease => {
            "the cluster is not probed, and for too long no renewal of its Lease could be seen".to_owned()
        }
        (Some(finding), _) => finding.to_string(),
        (None, Health::HubPartition) => {
            "this replica is cut off from its clusters, and cannot tell whether this cluster answers"
                .to_owned()
        }
        (None, Health::Unknown) => "no probe was completed for too long".to_owned(),
        (None, _) => "published before this process started to probe the cluster".to_owned(),
    }
}

fn run_of_failures(member: &Member, now: Instant) -> String {
    let times = match member.failures() {
        0 => return String::new(),
        1 => "once".to_owned(),
        failures => format!("{failures} times in a row"),
    };
    let Some(due) = member.due() else { return format!("; failed {times}") };
    let seconds = due.saturating_duration_since(now).as_secs_f64().ceil();
    format!("; failed {times}, next probe after {seconds}s")
}
