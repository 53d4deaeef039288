//! Two replicas; the leader is killed in the middle of its work.

use tests::PATIENCE;

use crate::aws_stage::{NAME, Stage, is_ready, sample};
use crate::scene::AWS_CLUSTERS;

const SHORT_LEASE: &str = "--leader-elect-lease-duration=6s --leader-elect-renew-deadline=5s \
                           --leader-elect-retry-period=500ms";

#[tokio::test(flavor = "multi_thread")]
async fn another_program_finishes_what_a_leader_was_making_when_it_was_killed() {
    let Some(stage) = Stage::set().await else { return };
    stage.run("apply -f config/rbac/role.yaml");
    stage.run("apply -f config/rbac/role-binding.yaml");
    let before = stage.totals().await;
    stage.die_after("CreateNatGateway", 1);
    stage.run("apply -f config/samples/cluster-api.yaml");
    let first = stage.launch(SHORT_LEASE).start();
    first.line("Controller starting...").await;
    let second = stage.launch(SHORT_LEASE).start();
    stage.died().await;
    assert!(!second.has_said("Controller starting..."), "it stands by");
    first.kill();
    first.exit(PATIENCE).await;
    stage.proxy.revive().await;
    stage.proxy.forget();
    stage.until(AWS_CLUSTERS, NAME, "is ready", is_ready).await;
    assert_eq!(stage.added(&before).await, sample(3));
    assert!(
        stage.writes().iter().all(|action| action != "CreateVpc"),
        "the second replica continues the work"
    );
    stage.end(second).await;
}
