use std::time::Duration;

use health::Thresholds;
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::tke::summary::{NodeList, list_of};
use crate::tke::testing::options;

/// Three failures in a row, two successes in a row, and so long between failures that count.
fn policy_with(spacing: Duration) -> Policy {
    let mut policy = policy(&options(&[]));
    policy.thresholds = Thresholds { failure: 3, success: 2 };
    policy.cadence.confirm = 2 * spacing;
    policy
}

/// The policy of lists that come once a second.
const SPACING: Duration = Duration::from_secs(1);

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

struct Life {
    state: MachineState,
    policy: Policy,
    begin: Instant,
    now: i64,
}

impl Life {
    fn new(published: Option<PublishedMachine>) -> Self {
        let begin = Instant::now();
        let policy = policy_with(SPACING);
        let state = MachineState::new("u", "10.0.0.1", published, 1, &policy, begin);
        Self { state, policy, begin, now: 0 }
    }

    fn moment(&mut self) -> Moment {
        self.now += 1;
        let ahead = Duration::from_secs(self.now.unsigned_abs());
        Moment { monotonic: self.begin + ahead, wall: second(self.now) }
    }

    /// `k`: well, `n`: not ready, `m`: missing, `c`: the cluster is not healthy, `l`: no list. What
    /// is published after each: `T`, `F`, `U`, or `-` for nothing.
    fn go(&mut self, steps: &str) -> String {
        steps.chars().map(|step| self.step(step)).collect()
    }

    fn step(&mut self, step: char) -> char {
        let now = self.moment();
        let (state, policy, path) = (&mut self.state, &self.policy, ProbePath::default());
        let found = |finding| Observation { finding, message: String::new(), info: None };
        let failed = |code| found(Finding::failed(code, path));
        match step {
            'k' => state.observe(found(Finding::ok(path)), policy, now),
            'n' => state.observe(failed(Code::NodeNotReady), policy, now),
            'm' => state.observe(failed(Code::NodeMissing), policy, now),
            'c' => state.unknown(UnknownReason::ClusterUnhealthy, "", now),
            _ => state.not_listed("why", policy, now),
        };
        match self.state.published().map(|published| published.status()) {
            None => '-',
            Some(Status::True) => 'T',
            Some(Status::False) => 'F',
            Some(Status::Unknown) => 'U',
        }
    }
}

#[test]
fn lists_count_as_probes_do() {
    // (what the lists say, what is published)
    let rows = [
        ("k", "T"),
        ("n", "F"),
        ("m", "F"),
        ("knnk", "TTTT"),
        ("kmnm", "TTTF"),
        ("knnkkn", "TTTTTT"),
        ("nknkk", "FFFFT"),
        // Another reason takes no threshold.
        ("nm", "FF"),
    ];
    for (steps, published) in rows {
        assert_eq!(Life::new(None).go(steps), published, "{steps}");
    }
}

/// rule:machines-of-an-unhealthy-cluster-are-unknown
#[test]
fn a_cluster_that_is_not_healthy_makes_its_machines_unknown_and_the_first_list_after_that_counts() {
    for (steps, published) in
        [("kc", "TU"), ("ck", "UT"), ("cn", "UF"), ("knncn", "TTTUF"), ("knnckn", "TTTUTT")]
    {
        assert_eq!(Life::new(None).go(steps), published, "{steps}");
    }
}

#[test]
fn lists_that_cannot_be_had_make_a_machine_unknown_at_the_threshold() {
    for (steps, published) in
        [("klll", "TTTU"), ("kllkll", "TTTTTT"), ("lll", "--U"), ("nllln", "FFFUF")]
    {
        assert_eq!(Life::new(None).go(steps), published, "{steps}");
    }
}

#[test]
fn a_restart_goes_on_from_what_the_object_says() {
    let seeded = |health| {
        let health = Published::seed(health, second(-500), second(-500), None);
        PublishedMachine { health, unknown: None, info: None }
    };
    let mut life = Life::new(Some(seeded(Health::Ready)));
    assert_eq!(life.go("nnk"), "TTT");
    assert_eq!(life.state.published().unwrap().health.ready.since, second(-500));
    let mut life = Life::new(Some(seeded(Health::NotReady)));
    assert_eq!(life.go("kk"), "FT");
    assert_eq!(life.state.published().unwrap().health.ready.since, second(2));
}

#[test]
fn a_transition_time_moves_with_the_status_and_the_probe_time_with_each_list() {
    let mut life = Life::new(None);
    life.go("knn");
    let published = life.state.published().unwrap();
    assert_eq!(
        (published.health.ready.since, published.health.probed),
        (second(1), Some(second(3)))
    );
    life.go("nm");
    let published = life.state.published().unwrap();
    assert_eq!(
        (published.health.ready.since, published.health.probed),
        (second(4), Some(second(5)))
    );
    assert_eq!(published.reason(), "HealthCheckFail");
    life.go("c");
    let published = life.state.published().unwrap();
    assert_eq!(
        (published.health.ready.since, published.health.probed),
        (second(6), Some(second(5)))
    );
}

#[test]
fn a_machine_with_another_address_is_judged_anew() {
    let mut life = Life::new(None);
    life.go("k");
    life.state.set_address("10.0.0.1", life.begin);
    assert_eq!(life.go("n"), "T");
    life.state.set_address("10.0.0.2", life.begin);
    assert_eq!(life.go("n"), "F");
}

#[test]
fn what_is_to_be_confirmed_is_looked_at_sooner_and_what_nothing_is_known_of_at_once() {
    let mut life = Life::new(None);
    assert_eq!(life.state.next_list(), NextList::Immediate);
    for (step, next) in [
        ('k', NextList::Regular),
        ('n', NextList::Confirmation),
        ('k', NextList::Regular),
        ('l', NextList::Confirmation),
        ('c', NextList::Immediate),
        ('m', NextList::Regular),
        ('l', NextList::Confirmation),
        ('l', NextList::Confirmation),
        // A list that is refused is not read more often.
        ('l', NextList::Regular),
        ('l', NextList::Regular),
        ('k', NextList::Regular),
    ] {
        life.step(step);
        assert_eq!(life.state.next_list(), next, "{step}");
    }
}

#[test]
fn lists_that_come_together_count_as_one_failure() {
    for (steps, published) in [
        // (once a second, with three seconds between failures that count)
        ("knnnnnnn", "TTTTTTTF"),
        ("knkn", "TTTT"),
        ("klllllll", "TTTTTTTU"),
    ] {
        let mut life = Life::new(None);
        life.policy = policy_with(3 * SPACING);
        assert_eq!(life.go(steps), published, "{steps}");
    }
}

fn nodes() -> NodeList {
    let node = |name: &str, status: &str| {
        json!({
            "metadata": {"name": name},
            "status": {
                "conditions": [{"type": "Ready", "status": status, "reason": "KubeletSays"}],
                "nodeInfo": {"kubeletVersion": "v1.36.3"},
            },
        })
    };
    list_of(vec![node("10.0.0.1", "True"), node("10.0.0.2", "False")])
}

#[test]
fn each_outcome_of_a_list_has_its_status_and_reason() {
    let NodeList { roster, .. } = nodes();
    // (address, whether it has to be ready, status, reason, facts of its Node)
    let rows = [
        ("10.0.0.1", true, Status::True, "", true),
        ("10.0.0.1", false, Status::True, "", true),
        ("10.0.0.2", true, Status::False, "NodeNotReady", true),
        ("10.0.0.2", false, Status::True, "", true),
        ("10.0.0.3", true, Status::False, "HealthCheckFail", false),
        ("10.0.0.3", false, Status::False, "HealthCheckFail", false),
    ];
    for (ip, require_ready, status, reason, told) in rows {
        let mut life = Life::new(None);
        let now = life.moment();
        let observation = Observation::by(&roster, ip, require_ready);
        life.state.observe(observation, &life.policy, now);
        let published = life.state.published().unwrap();
        assert_eq!((published.status(), published.reason()), (status, reason), "{ip}");
        assert_eq!(published.info.is_some(), told, "{ip}");
    }
    let message = Observation::by(&roster, "10.0.0.2", true).message;
    assert_eq!(message, "node 10.0.0.2 is not ready: KubeletSays");
}

#[test]
fn what_a_node_says_of_itself_is_published_with_the_list_that_counts_and_kept_after_it() {
    let mut life = Life::new(None);
    let path = ProbePath::default();
    let mut observe = |finding, version: Option<&str>| {
        let info = version.map(|version| MachineInfo {
            kubelet_version: version.into(),
            ..MachineInfo::default()
        });
        let (now, policy) = (life.moment(), life.policy);
        let message = format!("{finding:?}");
        life.state.observe(Observation { finding, message, info }, &policy, now);
        let published = life.state.published().unwrap();
        (
            published.message().starts_with("Finding { verdict: Ok"),
            published.info.unwrap().kubelet_version,
        )
    };
    let missing = Finding::failed(Code::NodeNotReady, path);
    assert_eq!(observe(Finding::ok(path), Some("v1")), (true, "v1".into()));
    assert_eq!(observe(missing, Some("v2")), (true, "v1".into()), "one failure changes nothing");
    assert_eq!(observe(missing, Some("v2")), (true, "v1".into()));
    assert_eq!(observe(missing, Some("v2")), (false, "v2".into()));
    assert_eq!(observe(missing, None), (false, "v2".into()), "it is kept");
}
