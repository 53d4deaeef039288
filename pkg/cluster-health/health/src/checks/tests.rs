use super::*;

const S: fn(u64) -> Duration = Duration::from_secs;
const GATED: &str = "gated has no result yet";

/// The checks of one cluster.
struct Scene {
    checks: Checks,
    start: Instant,
}

fn check(name: &str, gates_ready: bool) -> Arc<Check> {
    Arc::new(Check {
        name: name.into(),
        kind: CheckKind::NodesReady { min_ratio: 0.5 },
        interval: S(60),
        timeout: S(5),
        thresholds: Thresholds { failure: 3, success: 1 },
        gates_ready,
    })
}

fn nodes(ready: usize) -> CheckEvidence {
    CheckEvidence::Nodes { ready, total: 4 }
}

fn nothing() -> CheckEvidence {
    CheckEvidence::Nothing("403".into())
}

impl Scene {
    fn of(checks: &[Arc<Check>]) -> Self {
        let mut scene = Self { checks: Checks::default(), start: Instant::now() };
        let now = scene.at(0);
        assert!(!scene.checks.follow(checks, 7, now));
        scene
    }

    fn at(&self, second: u64) -> Moment {
        let wall = Timestamp::from_second(1_790_000_000 + i64::try_from(second).unwrap()).unwrap();
        Moment { monotonic: self.start + S(second), wall }
    }

    /// A run of this check; the status that it changes to.
    fn run(
        &mut self,
        check: &Arc<Check>,
        evidence: &CheckEvidence,
        second: u64,
    ) -> Option<CheckStatus> {
        let now = self.at(second);
        self.checks.begin(&check.name, now.monotonic);
        self.checks.complete(check, evidence, now).1.and_then(|change| change.report.status)
    }

    fn status(&self) -> Option<CheckStatus> {
        self.checks.reports()[0].status
    }
}

#[test]
fn a_status_changes_after_as_many_equal_results_as_its_threshold() {
    let one = check("one", false);
    let mut scene = Scene::of(std::slice::from_ref(&one));
    let (passed, failed) = (Some(CheckStatus::Passed), Some(CheckStatus::Failed));
    // (ready Nodes, None for no answer; the status that it changes to)
    let rows = [
        (Some(2), passed),
        (Some(1), None),
        (Some(1), None),
        (Some(2), None),
        (Some(1), None),
        (None, None),
        (Some(0), None),
        (Some(0), None),
        (Some(0), failed),
        (Some(0), None),
        (Some(4), passed),
        (None, None),
        (None, None),
        (None, Some(CheckStatus::NotAsked)),
        (Some(4), passed),
    ];
    for (minute, (ready, expected)) in (1..).zip(rows) {
        let evidence = ready.map_or_else(nothing, nodes);
        assert_eq!(scene.run(&one, &evidence, 60 * minute), expected, "{minute}");
    }
    let report = &scene.checks.reports()[0];
    assert_eq!(&*report.message, "4 of 4 Nodes are ready");
    assert_eq!((report.since, report.probed), (scene.at(900).wall, Some(scene.at(900).wall)));
    assert_eq!(scene.checks.gate(true), None, "it gates nothing");
}

#[test]
fn every_kind_passes_fails_and_is_not_asked() {
    let object = |available| CheckEvidence::Object { available, about: "it is there".into() };
    let leases = |fresh: u64, total: u64| {
        let renewed = |name| if name < fresh { Timestamp::UNIX_EPOCH } else { Timestamp::MIN };
        let leases = (0..total).map(|name| SeenLease { name, renewed: Some(renewed(name)) });
        CheckEvidence::Leases { leases: leases.collect(), date: Some(Timestamp::UNIX_EPOCH) }
    };
    let ready = |ready, total| CheckEvidence::Nodes { ready, total };
    let of_leases = CheckKind::NodeLeases { min_fresh: 0.4, max_age: S(40) };
    let of_nodes = CheckKind::NodesReady { min_ratio: 0.5 };
    let of_object = CheckKind::ApiService { name: "v1.x".into() };
    let (passed, failed, not_asked) =
        (CheckStatus::Passed, CheckStatus::Failed, CheckStatus::NotAsked);
    let rows = [
        (&of_nodes, ready(2, 4), passed),
        (&of_nodes, ready(0, 0), passed),
        (&of_nodes, ready(1, 4), failed),
        (&of_leases, leases(2, 5), passed),
        (&of_leases, leases(1, 5), failed),
        (&of_leases, leases(1, 1), not_asked),
        (&of_leases, ready(4, 4), not_asked),
        (&of_object, object(true), passed),
        (&of_object, object(false), failed),
        (&of_object, nothing(), not_asked),
    ];
    for (kind, evidence, expected) in rows {
        let one = Arc::new(Check { kind: kind.clone(), ..(*check("one", false)).clone() });
        let mut scene = Scene::of(std::slice::from_ref(&one));
        let now = scene.at(60);
        assert_eq!(
            scene.checks.complete(&one, &evidence, now).0,
            expected,
            "{kind:?} {evidence:?}"
        );
    }
}

/// rule:a-restart-changes-nothing
#[test]
fn a_cluster_that_is_not_ready_waits_for_the_first_result_and_a_ready_one_for_three_failures() {
    let gated = check("gated", true);
    let mut scene = Scene::of(&[check("other", false), Arc::clone(&gated)]);
    assert_eq!(scene.checks.gate(true).as_deref(), Some(GATED));
    assert_eq!(scene.checks.gate(false), None);
    let now = scene.at(0).monotonic;
    assert_eq!(scene.checks.due(true, now), Some(Arc::clone(&gated)), "it is waited for");
    for second in [10, 20] {
        assert_eq!(scene.run(&gated, &nodes(1), second), None);
        assert_eq!(scene.checks.gate(true).as_deref(), Some(GATED));
        assert_eq!(scene.checks.gate(false), None);
    }
    scene.run(&gated, &nodes(1), 30);
    for is_unready in [true, false] {
        assert_eq!(scene.checks.gate(is_unready).as_deref(), Some("gated: 1 of 4 Nodes are ready"));
    }
    scene.run(&gated, &nodes(4), 90);
    assert_eq!(scene.checks.gate(true), None);
    for second in [150, 210, 270] {
        scene.run(&gated, &nothing(), second);
    }
    assert_eq!(
        (scene.status(), scene.checks.gate(true)),
        (None, None),
        "what is not asked gates nothing"
    );
}

#[test]
fn a_check_that_does_not_run_becomes_unknown_and_decides_nothing_until_it_has_a_result() {
    let gated = check("gated", true);
    let mut scene = Scene::of(std::slice::from_ref(&gated));
    for second in [10, 20, 30] {
        scene.run(&gated, &nodes(1), second);
    }
    let lapse = |scene: &mut Scene, second| {
        let now = scene.at(second);
        scene.checks.lapse(now)
    };
    assert!(!lapse(&mut scene, 30 + 185));
    let partition = scene.at(30 + 10).monotonic;
    scene.checks.suspend(partition);
    assert!(!lapse(&mut scene, 40 + 185));
    assert!(lapse(&mut scene, 40 + 186));
    assert!(!lapse(&mut scene, 40 + 187), "once");
    assert_eq!(scene.status(), Some(CheckStatus::NotAsked));
    assert_eq!(scene.checks.gate(true).as_deref(), Some(GATED), "the cluster did not recover");
    assert_eq!(scene.run(&gated, &nothing(), 300), None, "one read says nothing");
    assert_eq!(scene.checks.gate(true).as_deref(), Some(GATED));
    assert_eq!(scene.run(&gated, &nodes(3), 310), Some(CheckStatus::Passed));
}

#[test]
fn one_run_is_under_way_at_a_time_and_the_next_comes_an_interval_later() {
    let checks = ["a", "b", "c"].map(|name| check(name, false));
    let mut scene = Scene::of(&checks);
    let first: Vec<_> = scene.checks.states.iter().map(|it| it.due).collect();
    assert!(first.iter().all(|due| *due <= scene.start + S(60)));
    assert!(first[0] != first[1] && first[1] != first[2], "they are spread");
    let mut runs = 0;
    for second in 0..600 {
        let now = scene.at(second);
        if let Some(check) = scene.checks.due(false, now.monotonic) {
            scene.checks.begin(&check.name, now.monotonic);
            assert_eq!(scene.checks.due(false, now.monotonic + S(600)), None);
            scene.checks.complete(&check, &nodes(4), now);
            runs += 1;
        }
    }
    assert!((27..=30).contains(&runs), "{runs}");
    let now = scene.at(600);
    scene.checks.begin("a", now.monotonic);
    scene.checks.drop_run();
    assert_ne!(scene.checks.due(false, now.monotonic + S(120)), None);
}

#[test]
fn a_check_that_stays_the_same_keeps_its_state_and_another_one_under_its_name_begins_anew() {
    let one = check("one", true);
    let mut scene = Scene::of(std::slice::from_ref(&one));
    for second in [10, 20, 30] {
        scene.run(&one, &nodes(0), second);
    }
    let now = scene.at(40);
    assert!(!scene.checks.follow(&[check("new", false), Arc::clone(&one)], 7, now));
    assert!(scene.checks.gate(false).is_some());
    let stricter =
        Arc::new(Check { kind: CheckKind::NodesReady { min_ratio: 1.0 }, ..(*one).clone() });
    assert!(!scene.checks.follow(&[check("new", false), stricter], 7, now), "no name is gone");
    assert_eq!(scene.checks.gate(false), None);
    let late = scene.checks.complete(&one, &nodes(0), now);
    assert_eq!(late, (CheckStatus::NotAsked, None), "it was of the one before");
    assert!(scene.checks.follow(&[], 7, now));
    assert!(scene.checks.reports().is_empty());
}
