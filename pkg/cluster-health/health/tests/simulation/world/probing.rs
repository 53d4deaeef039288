//! The tasks of clusters: when they probe, and what they find.

use health::{Change, Code, Report};

use super::{Event, World};
use crate::member_cluster::probe;

impl World {
    /// The task sleeps until the next probe is due.
    pub(crate) fn wait_for_due(&mut self, replica: usize, uid: u64) {
        let (now, life) = (self.instant(), self.replicas[replica].life);
        let Some(held) = self.replicas[replica].held.get(&uid) else { return };
        if let Some(due) = held.member.due() {
            let wait = u64::try_from(due.saturating_duration_since(now).as_nanos()).unwrap();
            self.at(wait.div_ceil(1_000_000), Event::Due { replica, life, uid });
        }
    }

    pub(super) fn probe_starts(&mut self, replica: usize, uid: u64) {
        let (now, moment) = (self.instant(), self.moment());
        let may = self.replicas[replica].may_probe(uid, now);
        let Some(held) = self.replicas[replica].held.get_mut(&uid) else { return };
        if self.paused.contains(&uid)
            || !may
            || held.hangs_until > self.now
            || held.member.due().is_none_or(|due| due > now)
        {
            return;
        }
        held.member.begin(now);
        self.count += 1;
        let (number, life) = (self.count, self.replicas[replica].life);
        self.check_start(replica, uid);
        self.probes += 1;
        let timeout = self.policy(uid).cadence.timeout;
        let truth = self.truths.get_mut(&uid).expect("a held cluster is there");
        truth.last_probe = self.now;
        let (conclusion, took) = probe(truth.behaviour, timeout, now, &mut self.random);
        assert!(took <= timeout, "a probe took {took:?}");
        let attempts = conclusion.attempts;
        let report = Report::new(conclusion.finding, moment);
        let report = Report { took, attempts, new_connection: true, ..report };
        self.found.insert(number, report);
        let held = self.replicas[replica].held.get_mut(&uid).expect("it is still held");
        held.probe = Some(number);
        held.last_start = Some(self.now);
        let takes = u64::try_from(took.as_millis()).unwrap();
        self.at(takes, Event::ProbeEnds { replica, life, uid, probe: number });
    }

    pub(super) fn probe_ends(&mut self, replica: usize, uid: u64, number: u64) {
        let Some(report) = self.found.remove(&number) else { return };
        let (now, draw, policy) = (self.instant(), self.random.share(), self.policy(uid));
        let may = self.replicas[replica].may_probe(uid, now);
        let Some(held) = self.replicas[replica].held.get_mut(&uid) else { return };
        if held.probe != Some(number) || held.hangs_until > self.now {
            return;
        }
        held.probe = None;
        if !may {
            return; // it is another's by now
        }
        let is_void = report.finding.code() == Some(Code::OwnLimit);
        held.asked_at = Some(self.now);
        if !is_void {
            held.last_end = Some(self.now);
            held.results.push(report.finding);
        }
        let effect = held.member.complete(&report, &policy, now, draw);
        self.reasons += u64::from(effect.change == Change::Reason);
        if effect.change != Change::Nothing {
            held.changed_at = self.now;
        }
        if is_void {
            let rule = "rule:what-we-could-not-ask-changes-nothing";
            assert_eq!(effect.change, Change::Nothing, "{rule}: {uid}");
        } else {
            self.check_target(replica, uid, report.finding);
            self.check_effect(replica, uid, effect.change);
        }
        self.consider(replica, uid);
        self.wait_for_due(replica, uid);
    }
}
