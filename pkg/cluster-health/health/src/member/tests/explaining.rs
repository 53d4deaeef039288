//! The words about a cluster.

use super::*;
use crate::explain;

#[test]
fn a_message_tells_code_run_and_the_wait_before_the_next_probe() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.play("k");
    assert_eq!(explain(&bench.member, bench.now().monotonic), "/readyz responded with ok");
    bench.play("xxx");
    bench.second = 31;
    let told = "cluster is not reachable: timeout; failed 3 times in a row, next probe after 9s";
    assert_eq!(explain(&bench.member, bench.now().monotonic), told);
}

#[test]
fn a_long_detail_cuts_off_neither_the_run_nor_the_next_probe() {
    let mut bench = Bench::new(policy(3, 1), None);
    let detail = Some("why ".repeat(400).into());
    let report = Report { endpoints: Endpoints { down: 2, total: 3 }, detail, ..bench.report('x') };
    bench.member.begin(bench.start);
    bench.member.complete(&report, &bench.policy, bench.start, 0.5);
    let told = explain(&bench.member, bench.now().monotonic);
    assert!(told.starts_with("cluster is not reachable: timeout: why why"), "{told}");
    let run = "; 2 of 3 API endpoints down; failed once, next probe after 10s";
    assert!(told.ends_with(&format!("…{run}")), "{told}");
    assert_eq!(told.chars().count(), crate::finding::MESSAGE_MAX);
}

#[test]
fn a_ready_cluster_tells_which_of_its_addresses_are_down() {
    let mut bench = Bench::new(policy(3, 1), None);
    let report = Report { endpoints: Endpoints { down: 1, total: 3 }, ..bench.report('k') };
    bench.member.begin(bench.start);
    bench.member.complete(&report, &bench.policy, bench.start, 0.5);
    let told = "/readyz responded with ok; 1 of 3 API endpoints down";
    assert_eq!(explain(&bench.member, bench.now().monotonic), told);
}

/// rule:unwatched-clusters-become-unknown
#[test]
fn a_cluster_that_nobody_asks_tells_of_no_addresses() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.play("k");
    bench.member.published.as_mut().unwrap().endpoints = Endpoints { down: 1, total: 3 };
    bench.play("s");
    assert_eq!(
        explain(&bench.member, bench.now().monotonic),
        "no probe was completed for too long"
    );
}

/// rule:unwatched-clusters-become-unknown
#[test]
fn a_cluster_that_we_could_not_ask_tells_why_once_it_is_unknown_and_not_longer() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.play("k");
    let detail = Some("the right to get secrets is missing".into());
    let report = Report { detail, ..Report::new(finding('v'), bench.now()) };
    bench.member.begin(bench.now().monotonic);
    bench.member.complete(&report, &bench.policy, bench.now().monotonic, 0.5);
    bench.play("s");
    let told = explain(&bench.member, bench.now().monotonic);
    let why = "no probe was completed for too long: the right to get secrets is missing";
    assert!(told.starts_with(why), "{told}");
    bench.play("k");
    assert_eq!(explain(&bench.member, bench.now().monotonic), "/readyz responded with ok");
}
