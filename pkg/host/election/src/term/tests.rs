use std::time::Duration;

use resilience::BootInstant;

use super::*;

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

#[test]
fn a_candidate_has_no_age_and_no_limit() {
    let term = Term::new(&Fence::closed());
    assert_eq!(term.age(), None);
    assert!(!term.is_limited());
    assert!(!term.overdue(BootInstant::now().saturating_add(secs(1_000_000))));
}

#[test]
fn the_limit_counts_from_the_start_of_the_last_renewal() {
    let term = Term::new(&Fence::closed());
    let start = BootInstant::now();
    term.renew(start, secs(10));
    assert!(!term.overdue(start.saturating_add(Duration::from_millis(9_999))));
    assert!(term.overdue(start.saturating_add(secs(10))));
    term.renew(start.saturating_add(secs(2)), secs(10));
    assert!(!term.overdue(start.saturating_add(secs(10))));
    assert!(term.overdue(start.saturating_add(secs(12))));
}

#[test]
fn a_lost_term_keeps_the_earlier_of_its_limit_and_the_grace() {
    let long_ago = BootInstant::from_nanos(1);
    let term = Term::new(&Fence::closed());
    term.renew(BootInstant::now(), secs(100));
    term.lose(secs(2));
    assert_eq!(term.age(), None, "a loser is not an unhealthy leader");
    assert!(!term.overdue(BootInstant::now()));
    assert!(term.overdue(BootInstant::now().saturating_add(secs(2))));
    term.renew(long_ago, Duration::from_nanos(1));
    term.lose(secs(2));
    assert!(term.overdue(BootInstant::now()), "losing must not prolong a life");
}

#[test]
fn a_released_term_enforces_nothing() {
    let term = Term::new(&Fence::closed());
    term.renew(BootInstant::from_nanos(1), Duration::from_nanos(1));
    assert!(term.overdue(BootInstant::now()));
    term.end();
    assert!(!term.is_limited());
    assert_eq!(term.age(), None);
}

fn series(registry: &Registry, family: &str) -> Vec<String> {
    let families = registry.gather();
    let metrics = families.iter().find(|f| f.name() == family).map(|f| f.get_metric().to_vec());
    metrics.unwrap_or_default().iter().map(|m| m.get_label()[0].value().to_owned()).collect()
}

#[test]
fn every_lease_has_series_of_its_own() {
    let registry = Registry::new();
    let metrics = ElectionMetrics::new(&registry).unwrap();
    let (one, two) = (Arc::new(Term::new(&Fence::closed())), Arc::new(Term::new(&Fence::closed())));
    let first = metrics.of_lease("shard-0", &one).unwrap();
    metrics.of_lease("shard-1", &two).unwrap().master.set(1);
    assert_eq!(first.master.get(), 0);
    assert_eq!(series(&registry, "leader_election_master_status"), ["shard-0", "shard-1"]);
    assert!(series(&registry, "icm_lease_seconds_since_renew").is_empty(), "there is no leader");
    two.renew(BootInstant::now(), Duration::from_secs(10));
    assert_eq!(series(&registry, "icm_lease_seconds_since_renew"), ["shard-1"]);
}

#[test]
fn two_elections_under_one_name_are_refused_until_the_first_has_ended() {
    let metrics = ElectionMetrics::new(&Registry::new()).unwrap();
    let (one, two) = (Arc::new(Term::new(&Fence::closed())), Arc::new(Term::new(&Fence::closed())));
    assert!(metrics.of_lease("shard-0", &one).is_some());
    assert!(metrics.of_lease("shard-0", &two).is_none());
    drop(one);
    assert!(metrics.of_lease("shard-0", &two).is_some());
}
