//! The dashboard of Cluster API on a real Prometheus: the sample is made on AWS, which refuses a call and loses a
//! route, and a resource without an owner is left.

use tests::aws_proxy::Fate;
use tests::prometheus_server::{PrometheusServer, check_metrics};

use crate::aws_leaks::leak;
use crate::aws_life::is_mended;
use crate::aws_stage::{NAME, REGION, Stage, is_ready};
use crate::scene::AWS_CLUSTERS;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus: scripts/check-deploy"]
async fn every_panel_of_the_dashboard_has_data_on_a_real_prometheus() {
    let Some(stage) = Stage::set().await else { return };
    leak(&stage, "AllocateAddress", "elastic-ip").await;
    let mut is_first = true;
    stage.proxy.decide(move |_, call| {
        let is_hit = call.action == "CreateVpc" && std::mem::take(&mut is_first);
        if is_hit { Fate::RefuseWith(503, "RequestLimitExceeded") } else { Fate::Pass }
    });
    let args = format!("--sync-period=10s --leak-scan-period=10s --leak-scan-regions={REGION}");
    let manager = stage.start_with_aws(&args);
    let prometheus = PrometheusServer::start(&[&manager], "").await;
    stage.run("apply -f config/samples/cluster-api.yaml");
    stage.until(AWS_CLUSTERS, NAME, "is ready", is_ready).await;
    is_mended(&stage).await;
    prometheus.shows("cluster-api").await;
    check_metrics(&manager.get("/metrics").await.unwrap().1);
    stage.end(manager).await;
}
