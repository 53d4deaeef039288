//! Promises of the registry to code that adds checks.

use super::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use log_capture::Capture;

fn verbose(health: &Health, endpoint: Endpoint) -> String {
    health.report(endpoint, BTreeSet::new()).body(true)
}

#[test]
fn each_endpoint_runs_its_own_set_and_ping_is_in_all() {
    let health = Health::new();
    health.add("shutdown", Endpoints::READY, || Ok(()));
    health.add("leaderElection", Endpoints::ALL, || Ok(()));
    let beating = Endpoints { livez: true, readyz: false, healthz: true };
    health.add("heartbeat", beating, || Ok(()));
    let names = |endpoint| {
        let body = verbose(&health, endpoint);
        let lines = body.lines().filter_map(|line| line.strip_prefix("[+]"));
        lines.map(|line| line.trim_end_matches(" ok").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(Endpoint::Livez), ["ping", "leaderElection", "heartbeat"]);
    assert_eq!(names(Endpoint::Readyz), ["ping", "shutdown", "leaderElection"]);
    assert_eq!(names(Endpoint::Healthz), ["ping", "leaderElection", "heartbeat"]);
}

#[test]
fn checks_come_and_are_replaced_while_the_server_runs() {
    let health = Health::new();
    let seen_by_the_server = health.clone();
    health.add("node-ipam", Endpoints::ALL, || Err("stuck".to_owned()));
    assert!(seen_by_the_server.report(Endpoint::Livez, BTreeSet::new()).failed());
    health.add("node-ipam", Endpoints::ALL, || Ok(()));
    assert_eq!(
        verbose(&seen_by_the_server, Endpoint::Livez),
        "[+]ping ok\n[+]node-ipam ok\nlivez check passed\n"
    );
}

#[test]
fn a_check_that_panics_has_failed() {
    let health = Health::new();
    health.add("broken", Endpoints::ALL, || panic!("poisoned"));
    assert_eq!(
        verbose(&health, Endpoint::Readyz),
        "[+]ping ok\n[-]broken failed: reason withheld\nreadyz check failed\n"
    );
}

#[test]
fn a_check_may_change_the_registry_it_is_part_of() {
    let health = Health::new();
    let registry = health.clone();
    health.add("starter", Endpoints::ALL, move || {
        registry.add("started", Endpoints::ALL, || Ok(()));
        Ok(())
    });
    verbose(&health, Endpoint::Livez);
    assert!(verbose(&health, Endpoint::Livez).contains("[+]started ok\n"));
}

#[test]
fn an_excluded_check_is_not_run() {
    let health = Health::new();
    let runs = Arc::new(AtomicU32::new(0));
    let counter = runs.clone();
    health.add("slow", Endpoints::ALL, move || {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    health.report(Endpoint::Livez, BTreeSet::from(["slow".to_owned()]));
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    health.report(Endpoint::Livez, BTreeSet::new());
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn the_reason_is_logged_once_in_ten_seconds_and_the_recovery_once() {
    let captured = Capture::begin();
    let lines = || captured.take();

    let health = Health::new();
    let healthy = Arc::new(AtomicBool::new(false));
    let state = healthy.clone();
    let age = AtomicU32::new(0);
    health.add("informer-sync", Endpoints::ALL, move || {
        let age = age.fetch_add(1, Ordering::Relaxed);
        if state.load(Ordering::Relaxed) { Ok(()) } else { Err(format!("silent for {age} s")) }
    });
    for _ in 0..5 {
        verbose(&health, Endpoint::Readyz);
        verbose(&health, Endpoint::Livez);
    }
    let logged = lines();
    assert_eq!(logged.len(), 1, "a reason that counts up is no new reason: {logged:?}");
    assert!(logged[0].contains("informer-sync") && logged[0].contains("silent for 0 s"));

    tokio::time::advance(std::time::Duration::from_secs(10)).await;
    verbose(&health, Endpoint::Readyz);
    assert!(lines()[0].contains("silent for 10 s"));

    healthy.store(true, Ordering::Relaxed);
    verbose(&health, Endpoint::Readyz);
    verbose(&health, Endpoint::Readyz);
    assert_eq!(lines().len(), 1);
}
