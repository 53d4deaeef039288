use super::*;
use crate::flags::FLAGS;

fn verdict(line: &str) -> Result<(Options, Vec<String>), Vec<Problem>> {
    let given = line
        .split_whitespace()
        .map(|arg| arg.trim_start_matches("--").split_once('=').expect("every flag has a value"));
    judge(&Values::from_given(FLAGS, given).expect("the syntax is right"))
}

#[test]
fn the_defaults_are_those_of_kubefed() {
    let (options, warnings) = verdict("").expect("the defaults are right");
    let kubefed = options.kubefed.expect("auto takes in kubefed");
    assert_eq!(kubefed.namespace.as_deref(), Some("kube-federation-system"));
    assert_eq!(kubefed.config.as_deref(), Some("kubefed"));
    let Cadence { period, timeout, confirm, .. } = kubefed.policy.cadence;
    assert_eq!([period, timeout, confirm].map(|span| span.as_secs()), [10, 3, 10]);
    assert_eq!(kubefed.policy.thresholds, Thresholds { failure: 3, success: 1 });
    assert!(warnings.is_empty());
}

#[test]
fn every_value_that_cannot_be_is_refused_with_its_flag() {
    let rows = [
        "--cluster-health-period=999ms",
        "--cluster-health-timeout=99ms",
        "--cluster-health-failure-threshold=0",
        "--cluster-health-success-threshold=-3",
        "--cluster-health-confirm-interval=1ms",
        "--cluster-health-jitter=0.6",
        "--cluster-health-max-concurrent-probes=-1",
        "--cluster-health-connection-max-age=-1s",
        "--cluster-health-idle-timeout=0s",
        "--cluster-health-heartbeat-interval=-1s",
        "--cluster-health-stale-after=-1s",
        "--cluster-health-write-qps=0",
        "--cluster-health-write-burst=0",
        "--cluster-health-flap-transitions=101",
        "--cluster-health-flap-window=0s",
        "--cluster-health-flap-min-success=0",
        "--cluster-health-objective=89.9",
        "--cluster-health-guard-ratio=0.05",
        "--cluster-health-guard-min=1",
        "--cluster-health-guard-endpoints=http://10.0.0.1:80",
        "--cluster-health-guard-timeout=6s",
        "--cluster-health-guard-hold=0s",
        "--cluster-health-flavours=karmada",
        "--cluster-health-profile-namespaces=a/b",
        "--cluster-health-profile-secret-namespaces=..",
        "--cluster-health-profile-selector=a=b=c",
        "--cluster-health-capi-namespaces=a,b/c",
        "--cluster-health-shards-namespace=",
        "--cluster-health-beats-namespace=a/b",
        "--cluster-health-checks-config=a",
        "--healthcheck-period=0s",
        "--cluster-health-tke-timeout=0s",
        "--cluster-health-tke-failure-threshold=0",
        "--cluster-health-tke-success-threshold=0",
        "--cluster-health-summary-interval=-1s",
        "--cluster-health-summary-concurrency=0",
        "--cluster-health-summary-page-size=5001",
        "--cluster-health-nodes-ready-min-ratio=1.1",
        "--cluster-health-machine-period=999ms",
    ];
    for line in rows {
        let problems = verdict(line).expect_err(line);
        assert_eq!(problems.len(), 1, "{line}: {problems:?}");
        assert!(line.starts_with(&format!("--{}=", problems[0].flag)), "{line}: {problems:?}");
    }
    assert_eq!(verdict(&rows.join(" ")).expect_err("all are wrong").len(), rows.len());
}

#[test]
fn zeros_with_a_meaning_and_empty_names_are_taken() {
    let line = "--cluster-health-heartbeat-interval=0s --cluster-health-connection-max-age=0s \
                --cluster-health-flap-transitions=0 --cluster-health-kubefed-namespace= \
                --cluster-health-kubefed-config= --cluster-health-jitter=0 \
                --cluster-health-machine-period=0s";
    let (options, _) = verdict(line).expect("all are right");
    assert!(options.tke.as_ref().is_some_and(|tke| tke.machine_period.is_zero()));
    let kubefed = options.kubefed.expect("auto takes in kubefed");
    assert_eq!((kubefed.namespace, kubefed.config), (None, None));
    assert!(kubefed.policy.heartbeat.is_zero() && options.members.connection_max_age.is_zero());
}

#[test]
fn the_api_server_limits_the_writes_unless_a_flag_does() {
    let rate = |line| verdict(line).expect("it is right").0.limits.write_rate;
    assert_eq!(rate(""), None);
    assert_eq!(rate("--cluster-health-write-qps=-1"), None);
    let limited = rate("--cluster-health-write-qps=20 --cluster-health-write-burst=5");
    assert_eq!(limited, Some(Rate { per_second: 20.0, burst: 5 }));
}

#[test]
fn a_timeout_longer_than_the_period_is_warned_about() {
    for flag in ["--cluster-health-timeout=15s", "--cluster-health-tke-timeout=10m"] {
        let (_, warnings) = verdict(flag).expect("it is allowed");
        assert_eq!(warnings.len(), 1, "{flag}: {warnings:?}");
    }
}

#[test]
fn the_defaults_of_tke_are_upstreams_where_it_has_them() {
    let (options, _) = verdict("").unwrap();
    let tke = options.tke.expect("auto takes in tke");
    let Cadence { period, timeout, confirm, .. } = tke.policy.cadence;
    let seconds = [period, timeout, confirm, tke.summary_interval].map(|span| span.as_secs());
    assert_eq!(seconds, [300, 5, 10, 600]);
    assert_eq!(tke.policy.thresholds, Thresholds { failure: 3, success: 1 });
    assert_eq!((tke.summary_concurrency, tke.summary_page_size), (32, 500));
    assert_eq!(tke.secret_namespace.as_deref(), Some("kube-federation-system"));
    assert!(!tke.ready_requires_nodes && !tke.insecure_without_ca);
    assert!(tke.machine_period.as_secs() == 60 && tke.machine_require_node_ready);
    let (options, _) = verdict("--cluster-health-flavours=kubefed").unwrap();
    assert!(options.tke.is_none() && options.kubefed.is_some());
}

#[test]
fn a_time_to_unknown_shorter_than_a_round_is_raised_and_warned_about() {
    let (options, warnings) = verdict("--cluster-health-stale-after=5s").expect("it is allowed");
    assert!(warnings[0].contains("stale-after=5s") && warnings[0].contains("15s"), "{warnings:?}");
    assert_eq!(options.kubefed.expect("auto takes in kubefed").policy.stale_after().as_secs(), 15);
    // TKEStack's Clusters are probed every five minutes.
    let (_, warnings) = verdict("--cluster-health-stale-after=90s").expect("it is allowed");
    assert!(warnings[0].contains("--healthcheck-period=300s"), "{warnings:?}");
    let kubefed = "--cluster-health-stale-after=90s --cluster-health-flavours=kubefed";
    let (_, warnings) = verdict(kubefed).expect("it is right");
    assert!(warnings.is_empty());
}

#[test]
fn limits_of_a_random_period_are_taken_and_warned_about() {
    let names = ["lower-limit-random-healthcheck-period", "upper-limit-random-healthcheck-period"];
    let line = names.map(|name| format!("--{name}=1m")).join(" ");
    let (_, warnings) = verdict(&line).expect("they are taken");
    assert_eq!(warnings.len(), 2);
    for (name, warning) in names.iter().zip(&warnings) {
        assert!(warning.contains(name) && warning.contains("has no effect"), "{warning}");
    }
}

#[test]
fn the_help_of_a_flag_with_a_floor_names_it() {
    for (floor, names) in [
        ("1s", &["period", "confirm-interval", "machine-period"][..]),
        ("100ms", &["timeout", "tke-timeout"]),
    ] {
        for name in names {
            let flag = FLAGS.iter().find(|flag| flag.name == format!("cluster-health-{name}"));
            let help = flag.expect("there is such a flag").help;
            assert!(help.contains(&format!("at least {floor}")), "{name}: {help}");
        }
    }
}

#[test]
fn replicas_that_share_clusters_leave_time_to_inherit_and_do_not_audit() {
    let stale = |line: &[(&str, &str)]| {
        let values = Values::from_given(FLAGS, line.iter().copied()).unwrap();
        let options = judge(&values).unwrap().0;
        (options.limits.shards, options.kubefed.unwrap().policy.stale_after().as_secs())
    };
    assert_eq!(stale(&[]), (1, 40));
    assert_eq!(stale(&[("cluster-health-shards", "2")]), (2, 49));
    let audit = [("cluster-health-shards", "2"), ("cluster-health-audit", "true")];
    for refused in [&audit[..], &[("cluster-health-shards", "0")]] {
        let values = Values::from_given(FLAGS, refused.iter().copied()).unwrap();
        assert_eq!(judge(&values).unwrap_err().len(), 1, "{refused:?}");
    }
}

#[test]
fn cluster_profiles_are_watched_only_where_they_are_named() {
    let (options, _) = verdict("").expect("the defaults are right");
    assert!(options.cluster_profile.is_none() && options.kubefed.is_some());
    let line = "--cluster-health-flavours=clusterprofile --cluster-health-period=7s \
        --cluster-health-profile-namespaces=a,b --cluster-health-profile-selector=tier=web";
    let (options, _) = verdict(line).expect("it is right");
    assert!(options.kubefed.is_none() && options.tke.is_none());
    let profiles = options.cluster_profile.expect("it is named");
    assert_eq!(profiles.shared.policy.cadence.period.as_secs(), 7);
    assert_eq!(profiles.managers, ["infra-controller-manager"]);
    assert_eq!((profiles.shared.namespaces.len(), profiles.shared.watched_namespace()), (2, None));
    assert!(profiles.selector.is_some() && profiles.secret_namespaces.is_empty());
    let one = "--cluster-health-flavours=clusterprofile --cluster-health-profile-namespaces=a";
    let profiles = verdict(one).expect("it is right").0.cluster_profile.expect("it is named");
    assert_eq!(profiles.shared.watched_namespace().as_deref(), Some("a"));
}

#[test]
fn an_audit_leaves_machines_alone() {
    let period = |line: &str| {
        let (options, _) = verdict(line).expect("it is right");
        options.tke.expect("auto takes in tke").machine_period.as_secs()
    };
    assert_eq!(period(""), 60);
    assert_eq!(period("--cluster-health-audit=true"), 0);
}

#[test]
fn the_objective_is_a_percentage_and_zero_is_none() {
    for (line, objective) in [
        ("", Objective::parse("99.9")),
        ("--cluster-health-objective=99.95", Objective::parse("99.95")),
        ("--cluster-health-objective=0", Ok(None)),
    ] {
        let (options, _) = verdict(line).expect("it is right");
        let policies = [options.kubefed.map(|it| it.policy), options.tke.map(|it| it.policy)];
        let objectives = policies.map(|it| it.and_then(|it| it.objective));
        assert_eq!(objectives.map(Ok), [objective.clone(), objective], "{line}");
    }
}
