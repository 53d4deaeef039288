//! Several leases in one process, as a controller needs them that shares its work out by shards.

use std::time::Duration;

use client::Clients;
use election::{
    Election, ElectionConfig, ElectionError, ElectionMetrics, Elector, Leadership, Place, Released,
    spawn,
};
use prometheus::{Registry, TextEncoder};
use resilience::Fence;
use tests::metrics::Metrics;
use tests::{PATIENCE, cluster};
use tokio::time::timeout;

use crate::scene::clients;

const SHARDS: [&str; 2] = ["shard-0", "shard-1"];

/// A candidate, with what all of its elections share.
struct Candidate {
    identity: &'static str,
    clients: Clients,
    registry: Registry,
    metrics: ElectionMetrics,
}

impl Candidate {
    async fn new(identity: &'static str, kubeconfig: &std::path::Path) -> Self {
        let registry = Registry::new();
        let metrics = ElectionMetrics::new(&registry).unwrap();
        Self { identity, clients: clients(kubeconfig).await, registry, metrics }
    }

    fn campaign(&self, lease: &str) -> Result<(Elector, Fence), ElectionError> {
        let fence = Fence::closed();
        let elector = spawn(Election {
            config: ElectionConfig {
                namespace: "kube-system".to_owned(),
                name: lease.to_owned(),
                identity: self.identity.to_owned(),
                // Long: nothing here is to expire on a busy machine.
                lease_duration: Duration::from_secs(60),
                renew_deadline: Duration::from_secs(40),
                retry_period: Duration::from_millis(500),
            },
            clients: self.clients.clone(),
            metrics: self.metrics.clone(),
            fence: fence.clone(),
            on_event: Box::new(|_| {}),
            may_have_predecessor: Box::new(|| Box::pin(async { Ok(false) })),
            place: Place::Threads,
        })?;
        Ok((elector, fence))
    }

    /// Whether it leads under each of the shards, as its metrics say.
    fn leads(&self) -> [Option<f64>; 2] {
        let page = TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap();
        let page = Metrics::parse(&page);
        SHARDS.map(|shard| page.value("leader_election_master_status", &[("name", shard)]))
    }
}

async fn until(elector: &Elector, wanted: impl Fn(&Leadership) -> bool) -> Leadership {
    let mut leadership = elector.leadership();
    let state = timeout(PATIENCE, leadership.wait_for(|state| wanted(state))).await;
    state.expect("in time").expect("the election goes on").clone()
}

fn leads(state: &Leadership) -> bool {
    *state == Leadership::Leading
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_leads_under_several_leases_and_gives_back_one_without_the_other() {
    let cluster = cluster().await;
    let kubeconfig = cluster.manager_kubeconfig();
    let (ours, theirs) =
        (Candidate::new("ours", &kubeconfig).await, Candidate::new("theirs", &kubeconfig).await);
    let [first, second] = SHARDS.map(|shard| ours.campaign(shard).unwrap());
    until(&first.0, leads).await;
    until(&second.0, leads).await;
    assert_eq!(ours.leads(), [Some(1.0), Some(1.0)]);
    let again = ours.campaign(SHARDS[0]).err();
    assert!(matches!(again, Some(ElectionError::NameInUse(name)) if name == SHARDS[0]));

    let rival = theirs.campaign(SHARDS[0]).unwrap();
    until(&rival.0, |state| *state == Leadership::Standby { holder: Some("ours".into()) }).await;
    assert!(rival.1.remaining().is_zero());
    assert_eq!(first.0.release().await, Released::Freed);
    assert!(first.1.remaining().is_zero(), "nothing is written under a lease that was given back");
    until(&rival.0, leads).await;

    assert_eq!(theirs.leads(), [Some(1.0), None]);
    assert!(leads(&second.0.leadership().borrow()), "the other lease is not touched");
    assert!(!second.1.remaining().is_zero());
    // The name is free again in a process that has given its lease back.
    let standby = ours.campaign(SHARDS[0]).unwrap();
    until(&standby.0, |state| *state == Leadership::Standby { holder: Some("theirs".into()) })
        .await;
    assert_eq!(ours.leads(), [Some(0.0), Some(1.0)]);
    for elector in [second.0, rival.0] {
        assert_eq!(elector.release().await, Released::Freed);
    }
}
