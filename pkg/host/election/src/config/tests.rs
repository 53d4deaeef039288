use super::*;

fn timings(lease_ms: u64, renew_ms: u64, retry_ms: u64) -> ElectionConfig {
    ElectionConfig {
        namespace: "kube-system".into(),
        name: "infra-controller-manager".into(),
        identity: "a".into(),
        lease_duration: Duration::from_millis(lease_ms),
        renew_deadline: Duration::from_millis(renew_ms),
        retry_period: Duration::from_millis(retry_ms),
    }
}

#[test]
fn timings_that_cannot_work_are_refused_naming_the_flags() {
    let rows: [(&str, ElectionConfig, &[&str]); 8] = [
        ("stock defaults", timings(15_000, 10_000, 2_000), &[]),
        ("the short lease of the tests", timings(4_000, 3_000, 500), &[]),
        (
            "lease equal to deadline",
            timings(10_000, 10_000, 2_000),
            &["--leader-elect-lease-duration: 10s is not greater than \
               --leader-elect-renew-deadline (10s)"],
        ),
        (
            "deadline exactly 1.2 retries",
            timings(15_000, 2_400, 2_000),
            &["--leader-elect-renew-deadline: 2.4s is not greater than 1.2 times \
               --leader-elect-retry-period (2s)"],
        ),
        ("deadline just above 1.2 retries", timings(15_000, 2_401, 2_000), &[]),
        (
            "lease below a second",
            timings(900, 500, 100),
            &["--leader-elect-lease-duration: 900ms is less than 1s"],
        ),
        (
            "zeros, compared with nothing",
            timings(0, 10_000, 0),
            &[
                "--leader-elect-lease-duration: must be greater than zero",
                "--leader-elect-retry-period: must be greater than zero",
            ],
        ),
        (
            "everything wrong is reported together",
            timings(900, 1_000, 1_000),
            &["900ms is less than 1s", "900ms is not greater than", "1s is not greater than 1.2"],
        ),
    ];
    for (case, config, wanted) in rows {
        let got: Vec<_> = config.validate().iter().map(ToString::to_string).collect();
        assert_eq!(got.len(), wanted.len(), "{case}: {got:?}");
        for (got, wanted) in got.iter().zip(wanted) {
            assert!(got.contains(wanted), "{case}: {got:?} lacks {wanted:?}");
        }
    }
}

#[test]
fn an_unnamed_lease_is_refused() {
    let config = ElectionConfig { name: String::new(), ..timings(15_000, 10_000, 2_000) };
    let problem = ConfigProblem::new(NAME, "must not be empty");
    assert_eq!(config.validate(), [problem]);
}

#[test]
fn the_terms_keep_their_order_for_every_valid_timing() {
    let mut seen = 0;
    for lease in (1_000..20_000).step_by(250) {
        for renew in (250..20_000).step_by(250) {
            let config = timings(lease, renew, 200);
            if !config.validate().is_empty() {
                continue;
            }
            seen += 1;
            let (fence, dog) = (config.fence_term(), config.watchdog_term());
            let travel = TRAVEL.min(config.lease_duration / 4);
            assert!(!fence.is_zero() && fence + travel <= config.lease_duration);
            assert!(dog > config.renew_deadline && dog < config.lease_duration);
            assert!(dog + WATCHDOG_POLL <= config.lease_duration);
            assert!(
                Duration::from_secs(config.lease_seconds().unsigned_abs().into())
                    >= config.lease_duration
            );
        }
    }
    assert!(seen > 1_000, "the sweep tested {seen} timings only");
}

#[test]
fn default_and_short_timings_give_these_terms() {
    let stock = timings(15_000, 10_000, 2_000);
    assert_eq!(stock.fence_term(), Duration::from_secs(13));
    assert_eq!(stock.watchdog_term(), Duration::from_millis(11_500));
    assert_eq!(stock.request_timeout(), Duration::from_secs(5));
    assert_eq!(stock.lease_seconds(), 15);
    assert_eq!(stock.health_limit(), Duration::from_secs(35));
    let short = timings(4_000, 3_000, 500);
    assert_eq!(short.fence_term(), Duration::from_secs(3));
    // The last write has its travel, however late the leader gives up.
    assert_eq!(timings(15_000, 14_900, 2_000).fence_term(), Duration::from_secs(14));
    assert_eq!(short.watchdog_term(), Duration::from_millis(3_800));
    assert_eq!(short.request_timeout(), Duration::from_millis(1_500));
    assert_eq!(timings(1_200, 1_000, 100).request_timeout(), Duration::from_secs(1));
    assert_eq!(timings(1_200, 1_000, 100).lease_seconds(), 2);
}

#[test]
fn a_standby_looks_twice_in_a_retry_period_with_a_little_jitter() {
    let config = timings(15_000, 10_000, 2_000);
    assert_eq!(config.jittered_pause(0.0), Duration::from_secs(1));
    assert!(config.jittered_pause(0.999_999) < Duration::from_millis(1_100));
    assert!(config.jittered_pause(0.999_999) > Duration::from_millis(1_099));
}
