use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn counts(total: i64, ready: i64) -> NodeCounts {
    NodeCounts { total, ready, schedulable: ready }
}

fn told(facts: &Facts, kind: &str) -> (String, String, String) {
    let condition = facts.condition(kind, None).unwrap();
    (condition.status.to_string(), condition.reason, condition.message)
}

#[test]
fn a_version_that_cannot_be_read_keeps_the_old_one() {
    let mut facts = Facts::default();
    assert_eq!(facts.condition(SYNC_VERSION, None), None);
    facts.versioned(Some("1.36.3".into()), at(1));
    facts.versioned(None, at(2));
    assert_eq!(facts.version.as_deref(), Some("1.36.3"));
    let (status, reason, _) = told(&facts, SYNC_VERSION);
    assert_eq!((&*status, &*reason), ("False", "VersionParseFail"));
    facts.versioned(Some("1.36.4".into()), at(3));
    facts.version_refused(StatusCode::FORBIDDEN, at(4));
    assert_eq!(facts.version.as_deref(), Some("1.36.4"));
    let (status, reason, message) = told(&facts, SYNC_VERSION);
    assert_eq!((&*status, &*reason), ("False", "VersionRefused"));
    assert_eq!(message, "the API server answered 403 to /version");
}

#[test]
fn a_summary_that_cannot_be_had_keeps_the_old_one_and_says_why() {
    let mut facts = Facts::default();
    facts.gathered(Ok(&Gathered::default()), at(1));
    for (abort, reason) in [
        (Abort::Stalled, "PagingStalled"),
        (Abort::Expired, "ListExpired"),
        (Abort::Limit, "PagingLimit"),
        (Abort::TooLarge("it"), "ListTooLarge"),
        (Abort::Failed("the API server answered 403".into()), "ListFailed"),
    ] {
        facts.gathered(Err(&abort), at(2));
        assert_eq!(told(&facts, RESOURCE_SYNCED).1, reason);
        assert_eq!(facts.summary.as_ref().unwrap().observed_time, Some(at(1)));
    }
}

#[test]
fn a_transition_time_moves_with_the_status_only() {
    let mut facts = Facts::default();
    facts.counted(counts(2, 2), 0.0, at(10));
    let first = facts.condition(NODES_READY, None).unwrap();
    assert_eq!((first.last_transition_time, first.last_probe_time), (Some(at(10)), Some(at(10))));
    facts.counted(counts(2, 1), 0.0, at(20));
    let same = facts.condition(NODES_READY, Some(&first)).unwrap();
    assert_eq!((same.last_transition_time, same.last_probe_time), (Some(at(10)), Some(at(20))));
    facts.counted(counts(2, 0), 0.0, at(30));
    let other = facts.condition(NODES_READY, Some(&same)).unwrap();
    assert_eq!((other.status, other.last_transition_time), (ConditionStatus::False, Some(at(30))));
}

#[test]
fn the_reason_tells_whether_all_nodes_are_ready_or_some_or_too_few() {
    let mut facts = Facts::default();
    for (ready, reason) in [(2, "NodesReady"), (1, "SomeNodesReady"), (0, "NodesNotReady")] {
        facts.counted(counts(2, ready), 0.0, at(1));
        assert_eq!(told(&facts, NODES_READY).1, reason);
    }
}

#[test]
fn nodes_are_enough_by_ratio_and_never_when_none_is_ready() {
    // (total, ready, least ratio, enough)
    let rows = [
        (0, 0, 0.0, true),
        (0, 0, 1.0, true),
        (3, 0, 0.0, false),
        (3, 1, 0.0, true),
        (3, 1, 0.5, false),
        (4, 2, 0.5, true),
        (4, 3, 1.0, false),
        (4, 4, 1.0, true),
    ];
    for (total, ready, ratio, expected) in rows {
        assert_eq!(enough(counts(total, ready), ratio), expected, "{ready} of {total}, {ratio}");
    }
}

#[test]
fn a_sum_that_changed_by_a_hundredth_at_most_is_not_worth_a_write() {
    let summary = |cpu: &str, pods: i64, total: i64| ResourceSummary {
        capacity: [("cpu", cpu.parse().unwrap())].into_iter().collect(),
        pods: Some(pods),
        nodes: Some(counts(total, total)),
        ..ResourceSummary::default()
    };
    let before = summary("100", 1000, 3);
    for (after, much) in [
        (summary("101", 1000, 3), false),
        (summary("99", 1010, 3), false),
        (summary("101001m", 1000, 3), true),
        (summary("98999m", 1000, 3), true),
        (summary("100", 1011, 3), true),
        (summary("100", 1000, 2), true),
    ] {
        assert_eq!(differs_much(&before, &after), much, "{after:?}");
    }
    assert!(differs_much(&ResourceSummary::default(), &summary("1n", 0, 0)));
}

#[test]
fn a_refused_credential_is_told_until_it_is_taken_again() {
    let mut facts = Facts::default();
    facts.authorized(Some("Unauthorized"), "status 401".into(), at(1));
    assert_eq!(told(&facts, CREDENTIAL_VALID).0, "False");
    facts.authorized(None, String::new(), at(2));
    assert_eq!(told(&facts, CREDENTIAL_VALID).0, "True");
}
