use std::time::Duration;

use resilience::BootInstant;

use super::*;

fn series(registry: &Registry, family: &str) -> Vec<String> {
    let families = registry.gather();
    let metrics = families.iter().find(|f| f.name() == family).map(|f| f.get_metric().to_vec());
    metrics.unwrap_or_default().iter().map(|m| m.get_label()[0].value().to_owned()).collect()
}

#[test]
fn every_lease_has_series_of_its_own() {
    let registry = Registry::new();
    let metrics = ElectionMetrics::new(&registry).unwrap();
    let (one, two) = (Arc::new(Term::new()), Arc::new(Term::new()));
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
    let (one, two) = (Arc::new(Term::new()), Arc::new(Term::new()));
    assert!(metrics.of_lease("shard-0", &one).is_some());
    assert!(metrics.of_lease("shard-0", &two).is_none());
    drop(one);
    assert!(metrics.of_lease("shard-0", &two).is_some());
}
