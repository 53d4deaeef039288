//! Members and their Secrets, through the pipeline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_server_double::{ApiServer, Loopback, Reply};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::stream::{self, StreamExt as _};
use health::{Code, Status};
use kube_api::Metadata;
use parking_lot::Mutex;
use prometheus::Registry as MetricRegistry;
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::sleep;
use workqueue::{Backoff, Jitter, Next, QueueMetrics, Reconcile as _, Retry, WorkQueue};

use crate::api::kubefed::KUBEFED_CLUSTERS;
use crate::engine::connections::SecretCache;
use crate::engine::pipeline::{FirstList, Pipeline};
use crate::engine::probes::{Rereads, client_prober};
use crate::engine::tests::scene::Scene;
use crate::engine::{ClusterProber, FlavourRegistry, MemberId, Work};
use crate::kubefed::KubeFed;
use crate::kubefed::testing::{flavour, policy, sent};
use crate::secret_data::SECRETS;
use crate::testing::informer;

const S: fn(u64) -> Duration = Duration::from_secs;

/// The member `fed/one` and its Secret, with an API server that is scripted.
struct Bench {
    engine: Scene,
    pipeline: Pipeline<KubeFed>,
    id: MemberId,
}

impl Bench {
    async fn start(flavour: KubeFed, object: Value, server: &ApiServer) -> Self {
        let (engine, flavour) = (Scene::new(0), Arc::new(flavour));
        let secret = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"namespace": "fed", "name": "one-secret", "uid": "s", "resourceVersion": "5"},
        });
        let ((_, told), (_, of_secrets)) = (unbounded_channel(), unbounded_channel());
        let objects = informer(&KUBEFED_CLUSTERS, vec![object], told).await;
        let secrets = informer::<Metadata>(&SECRETS, vec![secret], of_secrets).await;
        flavour.objects.set(&objects, Arc::new(|| true));
        let registry =
            FlavourRegistry::new(Arc::clone(&flavour) as Arc<_>, Arc::clone(&engine.clusters));
        let backoff = Backoff::doubling(S(1), S(30), Jitter::Above(0.5));
        let metrics = QueueMetrics::new(&MetricRegistry::new()).unwrap();
        let pipeline = Pipeline {
            flavour,
            registry,
            objects,
            queue: WorkQueue::new("members", backoff, &metrics),
            secrets: SecretCache::new(move || secrets.clone(), |_| {}),
            credentials: None,
            client: server.client(),
            recorder: engine.clusters.recorder.clone(),
            probers: client_prober,
            of_first_list: FirstList::default(),
            rereads: Rereads::default(),
        };
        Self { engine, pipeline, id: MemberId { uid: "u1".into(), key: "fed/one".into() } }
    }

    async fn look(&self) -> Result<Next, Retry> {
        self.pipeline.reconcile(&Work::Cluster("fed/one".into())).await
    }

    fn client(&self) -> Option<Arc<probe::Client>> {
        self.pipeline.flavour.client(&self.id)
    }

    /// The prober of the member as it was resolved last.
    fn prober(&self) -> Arc<dyn ClusterProber> {
        let member = self.engine.clusters.find(&*self.pipeline.flavour, "fed/one").unwrap();
        member.prober().unwrap()
    }
}

/// rule:unwatched-clusters-become-unknown
#[tokio::test(start_paused = true)]
async fn a_member_whose_secret_cannot_be_read_after_a_restart_becomes_unknown() {
    let object = sent(|it| {
        it["status"]["conditions"] =
            json!([{"type": "Ready", "status": "True", "reason": "ClusterReady"}]);
    });
    let refused = Arc::new(AtomicBool::new(true));
    let refuses = Arc::clone(&refused);
    let server = ApiServer::new(move |_| {
        if refuses.load(Ordering::Relaxed) {
            return Reply::failure(500, "InternalError");
        }
        Reply::Json(200, json!({"data": {"token": "aHVudGVyMg=="}}))
    });
    let bench = Bench::start(flavour(false), object, &server).await;
    let readiness = || bench.pipeline.registry.readiness(&bench.id);
    assert!(bench.look().await.is_err(), "it is retried");
    assert_eq!(readiness(), Some(Status::True), "as it was published");
    sleep(policy().stale_after() + S(5)).await;
    assert!(bench.look().await.is_err(), "it is retried");
    assert_eq!(readiness(), Some(Status::Unknown));
    refused.store(false, Ordering::Relaxed);
    assert!(bench.look().await.is_ok());
    assert!(bench.client().is_some());
}

/// A member that answers 200 to this token alone.
async fn member(token: &'static str) -> Loopback {
    let server = ApiServer::new(move |asked| match asked.header("authorization") {
        header if header.contains(token) => {
            Reply::Body("text/plain", stream::iter([Ok("ok".into())]).boxed())
        }
        _ => Reply::failure(401, "Unauthorized"),
    });
    server.listen().await
}

#[tokio::test]
async fn a_token_that_was_rotated_before_the_watch_told_of_it_is_read_and_tried_at_once() {
    let endpoint = member("the-new-token").await;
    let object = sent(|it| it["spec"]["apiEndpoint"] = endpoint.url.as_str().into());
    let stored = Arc::new(Mutex::new("the-old-token"));
    let read = Arc::clone(&stored);
    let server = ApiServer::new(move |_| {
        Reply::Json(200, json!({"data": {"token": STANDARD.encode(*read.lock())}}))
    });
    let bench = Bench::start(flavour(true), object, &server).await;
    bench.engine.clusters.stop.cancel();
    bench.look().await.unwrap();
    let prober = bench.prober();
    *stored.lock() = "the-new-token";
    let asked = server.asked().len();
    let probe = async || prober.probe(S(60)).await.finding.code();
    assert_eq!(probe().await, None, "the new token is tried in the same probe");
    assert_eq!(probe().await, None, "it is remembered");
    assert_eq!(server.asked().len(), asked + 1);

    *stored.lock() = "a-token-that-is-refused";
    let bench = Bench::start(
        flavour(true),
        sent(|it| it["spec"]["apiEndpoint"] = endpoint.url.as_str().into()),
        &server,
    )
    .await;
    bench.engine.clusters.stop.cancel();
    *stored.lock() = "the-old-token";
    bench.look().await.unwrap();
    let prober = bench.prober();
    *stored.lock() = "a-token-that-is-refused";
    let asked = server.asked().len();
    for _ in 0..3 {
        assert_eq!(prober.probe(S(60)).await.finding.code(), Some(Code::Unauthorized));
    }
    assert_eq!(server.asked().len(), asked + 1, "it is read once while it is refused");
}

#[tokio::test(start_paused = true)]
async fn a_member_whose_secret_is_gone_keeps_no_client() {
    let is_there = Arc::new(AtomicBool::new(true));
    let there = Arc::clone(&is_there);
    let server = ApiServer::new(move |_| {
        if there.load(Ordering::Relaxed) {
            return Reply::Json(200, json!({"data": {"token": "aHVudGVyMg=="}}));
        }
        Reply::failure(404, "NotFound")
    });
    let bench = Bench::start(flavour(false), sent(|_| {}), &server).await;
    bench.look().await.unwrap();
    assert!(bench.client().is_some());
    is_there.store(false, Ordering::Relaxed);
    bench.pipeline.flavour.connections.invalidate("fed/one");
    bench.look().await.unwrap();
    assert!(bench.client().is_none());
}
