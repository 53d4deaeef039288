//! A cluster that is not probed, and is judged by its Lease alone.

use super::*;
use crate::{Beat, Heard, explain};

impl Bench {
    /// One look at the Lease.
    fn look(&mut self, heard: Heard) -> Effect {
        let now = self.now();
        let effect = self.member.look(heard, "beats/x", &self.policy, now, 0.5);
        self.second += 10;
        effect
    }

    fn health(&self) -> Option<Health> {
        self.member.published().map(|it| it.health)
    }

    fn told(&self) -> String {
        explain(&self.member, self.now().monotonic)
    }
}

const WELL: Heard = Heard::Beat(Beat::Well);
const SILENT: Heard = Heard::Beat(Beat::Silent);

/// `rule:our-outage-is-not-theirs`
#[test]
fn the_lease_alone_decides_what_is_published() {
    let mut bench = Bench::new(policy(3, 1), None);
    assert_eq!(bench.look(Heard::Awaited).change, Change::Nothing);
    assert_eq!(bench.health(), None);
    assert_eq!(bench.look(WELL).change, Change::Ready { from: None, to: Status::True });
    assert_eq!(bench.told(), "the cluster renews its Lease; it is not probed");
    for _ in 0..2 {
        assert_eq!(bench.look(Heard::Beat(Beat::Unwell)).change, Change::Nothing);
    }
    bench.look(Heard::Beat(Beat::Unwell));
    assert_eq!(bench.health(), Some(Health::NotReady));
    assert_eq!(
        bench.told(),
        "the cluster renews its Lease, which reports that its /readyz fails: beat"
    );
    let effect = bench.look(SILENT);
    assert_eq!(effect.change, Change::Ready { from: Some(Status::False), to: Status::Unknown });
    assert!(!effect.is_ours && !effect.first_failure);
    let published = bench.member.published().unwrap();
    assert_eq!(published.offline.status, Status::Unknown);
    assert_eq!(published.health.ready_reason(), "HeartbeatStopped");
    assert_eq!(bench.told(), "the cluster is not probed and does not renew its Lease: beats/x");
    assert_eq!(bench.look(SILENT).change, Change::Nothing);
    assert_eq!(
        bench.look(WELL).change,
        Change::Ready { from: Some(Status::Unknown), to: Status::True }
    );
    bench.look(Heard::Beat(Beat::Absent));
    assert_eq!(bench.health(), Some(Health::HeartbeatStopped));
}

/// `rule:a-restart-changes-nothing`
#[test]
fn nothing_is_published_while_a_renewal_is_awaited() {
    for health in Health::ALL {
        let since = wall(0);
        let published = Published::seed(health, since, since, Some(since));
        let mut bench = Bench::new(policy(3, 1), Some(published));
        for _ in 0..100 {
            assert_eq!(bench.look(Heard::Awaited), Effect::NONE, "{health:?}");
            assert!(bench.member.sweep(&bench.policy, bench.now()).is_none(), "{health:?}");
        }
        assert_eq!(bench.health(), Some(health));
    }
}

/// `rule:unwatched-clusters-become-unknown`
#[test]
fn a_cluster_whose_lease_cannot_be_watched_becomes_unknown_with_the_cause() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.look(WELL);
    let mut swept = None;
    for _ in 0..10 {
        bench.look(Heard::Nothing);
        swept = swept.or(bench.member.sweep(&bench.policy, bench.now()));
        let stuck = bench.member.stuck_at(&bench.policy);
        assert!(stuck > bench.now().monotonic, "its task is not stuck");
    }
    assert!(matches!(swept.unwrap().change, Change::Ready { to: Status::Unknown, .. }));
    assert_eq!(bench.health(), Some(Health::Unknown));
    let told = bench.told();
    assert!(told.starts_with("the cluster is not probed, and for too long"), "{told}");
    assert!(told.ends_with(": beats/x"), "{told}");
}

#[test]
fn a_lease_is_no_evidence_for_the_guard_and_costs_no_availability() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.play("kkk");
    let observed = bench.member.totals().observed;
    for heard in [WELL, WELL, SILENT, SILENT, WELL] {
        bench.look(heard);
        assert!(bench.member.evidence().is_none() && bench.member.last().is_none());
    }
    bench.play("k");
    assert_eq!(bench.member.totals().observed, observed, "between probes nothing is observed");
}

#[test]
fn the_first_probe_after_a_lease_that_stopped_decides_at_once() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.look(SILENT);
    bench.play("x");
    assert_eq!(bench.health(), Some(Health::Unreachable));
    // And a Lease that is renewed ends an outage that probes found.
    bench.look(WELL);
    assert_eq!(bench.health(), Some(Health::Ready));
}
