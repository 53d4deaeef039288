use proptest::prelude::*;

use super::*;
use crate::{Verdict, classify};

const SETUP: Setup = Setup {
    budget: Duration::from_secs(3),
    endpoints: 1,
    first_endpoint: 0,
    connected: false,
    path: ProbePath::Readyz,
    authenticated_read: false,
};
const MS: fn(u64) -> Duration = Duration::from_millis;

/// The reaction of a member to each attempt, in order: (outcome, how long it takes).
enum Does {
    Answer(u16),
    NewCredential,
    Fail(Code),
    /// Nothing until the attempt is given up.
    Hang,
}
use Does::{Answer, Fail, Hang, NewCredential};

/// Carries the plan out and returns the attempts, and how the probe ended and when.
fn carry_out(setup: Setup, script: &[Does]) -> (Vec<Attempt>, Conclusion, Duration) {
    let start = Instant::now();
    let mut plan = Attempts::begin(setup, start);
    let (mut attempts, mut attempt, mut script) = (Vec::new(), plan.first(), script.iter());
    loop {
        attempts.push(attempt);
        let began = attempt.not_before;
        let answer = |status| AttemptOutcome::Answered {
            finding: classify(attempt.path, status, b"ok"),
            newer_credential: false,
        };
        let (outcome, now) = match script.next().expect("the script covers every attempt") {
            Answer(status) => (answer(*status), began + MS(10)),
            NewCredential => {
                let finding = classify(attempt.path, 401, b"");
                (AttemptOutcome::Answered { finding, newer_credential: true }, began + MS(10))
            }
            Fail(code) => (AttemptOutcome::Failed(*code), began + MS(10)),
            Hang => (AttemptOutcome::Failed(Code::Timeout), attempt.deadline),
        };
        match plan.next(outcome, now, 0.5) {
            Step::Try(next) => attempt = next,
            Step::Done(conclusion) => {
                assert!(script.next().is_none(), "the probe ended before its script");
                return (attempts, conclusion, now - start);
            }
        }
    }
}

fn finding(setup: Setup, script: &[Does]) -> String {
    carry_out(setup, script).1.finding.to_string()
}

#[test]
fn a_probe_ends_with_the_first_answer_that_is_final() {
    let rows: [(&[Does], &str); 8] = [
        (&[Answer(200)], "/readyz responded with ok"),
        (&[Answer(401)], "/readyz responded without ok: unauthorized"),
        (&[Answer(429)], "/readyz responded without ok: http-429"),
        (&[Answer(302)], "/readyz responded without ok: http-302"),
        (&[Answer(404), Answer(200)], "/healthz responded with ok"),
        (&[Answer(404), Answer(404)], "/healthz responded without ok: http-404"),
        (&[Fail(Code::TlsVerify)], "cluster is not reachable: tls-verify"),
        (&[Hang], "cluster is not reachable: timeout"),
    ];
    for (script, told) in rows {
        assert_eq!(finding(SETUP, script), told);
    }
}

#[test]
fn a_server_that_forbids_readyz_is_asked_for_healthz() {
    assert_eq!(finding(SETUP, &[Answer(403), Answer(200)]), "/healthz responded with ok");
    let both = "/healthz responded without ok: forbidden";
    assert_eq!(finding(SETUP, &[Answer(403), Answer(403)]), both);
    let remembered = Setup { path: ProbePath::Healthz, ..SETUP };
    assert_eq!(finding(remembered, &[Answer(403), Answer(200)]), "/readyz responded with ok");
}

#[test]
fn where_both_health_paths_are_closed_and_one_is_forbidden_the_authenticated_read_decides() {
    let setup = Setup { authenticated_read: true, ..SETUP };
    for closed in [[403, 403], [403, 404], [404, 403]] {
        let [first, second] = closed.map(Answer);
        let (attempts, conclusion, _) = carry_out(setup, &[first, second, Answer(200)]);
        assert_eq!(attempts[2].path, ProbePath::Namespaces);
        assert!(conclusion.finding.is_ok(), "{closed:?}: {}", conclusion.finding);
    }
    let refused = carry_out(setup, &[Answer(403), Answer(403), Answer(403)]).1.finding;
    assert_eq!(refused.code(), Some(Code::Forbidden));
    let unknown = carry_out(setup, &[Answer(404), Answer(404)]).1.finding;
    assert_eq!(unknown.code(), Some(Code::Http(404)), "nothing was forbidden");
}

#[test]
fn transport_errors_are_tried_twice_more_after_a_wait() {
    let refused = || Fail(Code::ConnectRefused);
    let (attempts, conclusion, _) = carry_out(SETUP, &[refused(), refused(), refused()]);
    assert_eq!(conclusion.finding.code(), Some(Code::ConnectRefused));
    assert_eq!(conclusion.attempts, 3);
    let waits = attempts.windows(2).map(|pair| pair[1].not_before - pair[0].not_before);
    assert_eq!(waits.collect::<Vec<_>>(), [MS(210); 2]);
    assert_eq!(finding(SETUP, &[refused(), Answer(200)]), "/readyz responded with ok");
}

#[test]
fn a_server_error_is_tried_once_more_on_a_new_connection() {
    let setup = Setup { connected: true, ..SETUP };
    let (attempts, conclusion, _) = carry_out(setup, &[Answer(503), Answer(200)]);
    assert_eq!(attempts[1].connection, Connection::New);
    assert!(conclusion.finding.is_ok());
    let twice = "/readyz responded without ok: http-500";
    assert_eq!(finding(SETUP, &[Answer(503), Answer(500)]), twice);
    let lost = [Answer(503), Fail(Code::TlsVerify)];
    assert_eq!(finding(SETUP, &lost), "/readyz responded without ok: http-503");
}

#[test]
fn an_unauthorized_answer_is_tried_again_only_with_another_credential() {
    let (attempts, conclusion, _) = carry_out(SETUP, &[NewCredential, Answer(200)]);
    assert_eq!((attempts.len(), attempts[1].connection), (2, Connection::New));
    assert!(conclusion.finding.is_ok());
    assert_eq!(
        finding(SETUP, &[NewCredential, NewCredential]).as_str().split(' ').next_back(),
        Some("unauthorized")
    );
}

#[test]
fn a_half_open_flow_leaves_half_the_time_for_a_new_connection() {
    let setup = Setup { connected: true, ..SETUP };
    let (attempts, conclusion, took) = carry_out(setup, &[Hang, Answer(200)]);
    assert_eq!(attempts[0].deadline - attempts[0].not_before, MS(1500));
    assert_eq!(attempts[1].connection, Connection::New);
    assert_eq!(attempts[1].deadline - attempts[0].not_before, MS(3000));
    assert!(conclusion.finding.is_ok());
    assert_eq!(took, MS(1510));
}

#[test]
fn a_stale_pooled_connection_costs_no_retry_and_no_wait() {
    let setup = Setup { connected: true, ..SETUP };
    let refused = || Fail(Code::ConnectRefused);
    let (attempts, ..) = carry_out(setup, &[Fail(Code::Reset), refused(), refused(), refused()]);
    assert_eq!(attempts[1].not_before - attempts[0].not_before, MS(10));
    assert_eq!(attempts.len(), 4);
}

#[test]
fn silent_addresses_share_the_time_and_the_last_good_one_is_asked_first() {
    let setup = Setup { endpoints: 3, first_endpoint: 1, ..SETUP };
    let (attempts, conclusion, took) = carry_out(setup, &[Hang, Hang, Answer(200)]);
    let order: Vec<_> = attempts.iter().map(|attempt| attempt.endpoint).collect();
    assert_eq!(order, [1, 0, 2]);
    assert!(conclusion.finding.is_ok());
    assert_eq!(conclusion.endpoints, Endpoints { down: 2, total: 3 });
    assert_eq!((conclusion.answered, took), (Some(2), MS(2010)));
    let (_, conclusion, took) = carry_out(setup, &[Hang, Hang, Hang]);
    assert_eq!((conclusion.answered, took), (None, MS(3000)));
    assert_eq!(conclusion.endpoints, Endpoints { down: 3, total: 3 });
}

#[test]
fn a_server_error_of_one_address_is_tried_at_another() {
    let setup = Setup { endpoints: 2, ..SETUP };
    let (attempts, conclusion, _) = carry_out(setup, &[Answer(500), Answer(200)]);
    assert_eq!(attempts[1].endpoint, 1);
    assert_eq!(conclusion.endpoints, Endpoints { down: 0, total: 2 });
}

#[test]
fn a_healthy_answer_is_confirmed_by_an_authenticated_read_where_asked_for() {
    let setup = Setup { authenticated_read: true, ..SETUP };
    let (attempts, conclusion, _) = carry_out(setup, &[Answer(200), Answer(200)]);
    assert_eq!(
        (attempts[1].path, attempts[1].connection),
        (ProbePath::Namespaces, Connection::Open)
    );
    assert_eq!(conclusion.finding, Finding::ok(ProbePath::Readyz));
    let revoked = "/api/v1/namespaces responded without ok: forbidden";
    assert_eq!(finding(setup, &[Answer(200), Answer(403)]), revoked);
    let silent = carry_out(setup, &[Answer(200), Hang, Hang]).1.finding;
    assert_eq!((silent.verdict(), silent.code()), (Verdict::Unhealthy, Some(Code::Timeout)));
}

/// rule:an-answer-proves-reachability
#[test]
fn a_retry_at_another_address_that_is_down_leaves_the_answer_where_it_came_from() {
    let setup = Setup { endpoints: 2, ..SETUP };
    let (attempts, conclusion, _) = carry_out(setup, &[Answer(503), Fail(Code::TlsVerify)]);
    assert_eq!(attempts[1].endpoint, 1);
    assert_eq!(conclusion.answered, Some(0), "only address 0 answered");
    assert_eq!(conclusion.endpoints, Endpoints { down: 1, total: 2 });
    assert_eq!(conclusion.finding.code(), Some(Code::Http(503)));
}

#[test]
fn a_server_error_is_not_tried_again_at_an_address_that_is_known_to_be_down() {
    let setup = Setup { endpoints: 3, ..SETUP };
    let script = [Fail(Code::TlsVerify), Fail(Code::TlsVerify), Answer(503), Answer(200)];
    let (attempts, conclusion, _) = carry_out(setup, &script);
    let order: Vec<_> = attempts.iter().map(|attempt| attempt.endpoint).collect();
    assert_eq!(order, [0, 1, 2, 2]);
    assert_eq!(conclusion.endpoints, Endpoints { down: 2, total: 3 });
}

#[test]
fn a_retry_asks_for_the_path_that_the_server_turned_out_to_know() {
    let setup = Setup { endpoints: 2, ..SETUP };
    let (attempts, conclusion, _) = carry_out(setup, &[Answer(404), Answer(503), Answer(200)]);
    let paths: Vec<_> = attempts.iter().map(|attempt| attempt.path).collect();
    assert_eq!(paths, [ProbePath::Readyz, ProbePath::Healthz, ProbePath::Healthz]);
    assert!(conclusion.finding.is_ok());
}

proptest! {
    #[test]
    fn whatever_a_member_does_a_probe_ends_in_time_after_few_attempts(
        (endpoints, connected, authenticated_read) in (0..=8_u8, any::<bool>(), any::<bool>()),
        does in prop::collection::vec((0..9_u8, 0..2_000_u64), 64),
        draw in 0.0..1.0_f64,
    ) {
        let setup = Setup { endpoints, first_endpoint: 5, connected, authenticated_read, ..SETUP };
        let start = Instant::now();
        let mut plan = Attempts::begin(setup, start);
        let (mut attempt, mut made) = (plan.first(), 0);
        for (what, took) in does {
            made += 1;
            prop_assert!(attempt.not_before < attempt.deadline);
            prop_assert!(attempt.deadline <= start + SETUP.budget);
            prop_assert!(attempt.endpoint < endpoints.max(1));
            let now = (attempt.not_before + MS(took)).min(attempt.deadline);
            let answer = |status| AttemptOutcome::Answered {
                finding: classify(attempt.path, status, b"ok"),
                newer_credential: true,
            };
            let outcome = match what {
                0 => answer(200),
                1 => answer(401),
                2 => answer(404),
                3 => answer(503),
                4 => AttemptOutcome::Failed(Code::Dns),
                5 => AttemptOutcome::Failed(Code::Reset),
                _ => AttemptOutcome::Failed(Code::Timeout),
            };
            match plan.next(outcome, now, draw) {
                Step::Try(next) => {
                    prop_assert!(next.not_before >= now);
                    attempt = next;
                }
                Step::Done(conclusion) => {
                    prop_assert_eq!(conclusion.attempts, made);
                    prop_assert!(conclusion.endpoints.down <= conclusion.endpoints.total);
                    return Ok(());
                }
            }
        }
        prop_assert!(false, "the probe goes on after {made} attempts");
    }
}

/// rule:what-we-could-not-ask-changes-nothing
#[test]
fn an_address_that_could_not_be_asked_leaves_the_probe_without_a_conclusion_unless_one_answers() {
    let two = Setup { endpoints: 2, ..SETUP };
    let own = || Fail(Code::OwnLimit);
    let refused = || Fail(Code::ConnectRefused);
    // (what happens, whether nothing is learnt, addresses that are down)
    let rows: [(Vec<Does>, bool, u8); 3] = [
        (vec![own(), refused(), own(), own()], true, 1),
        (vec![refused(), own(), own(), own()], true, 1),
        (vec![own(), Answer(200)], false, 0),
    ];
    for (script, void, down) in rows {
        let (_, conclusion, _) = carry_out(two, &script);
        assert_eq!(conclusion.finding.is_void(), void, "{conclusion:?}");
        assert_eq!(conclusion.endpoints.down, down, "{conclusion:?}");
    }
}
