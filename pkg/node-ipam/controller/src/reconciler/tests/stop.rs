//! Effects of a stop on a PATCH that waits for its turn or is on its way.

use api_server_double::Loopback;
use client::{ClientOptions, Clients, Profile, RequestMetrics, Throttle, ThrottleMetrics};
use futures::FutureExt as _;
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;

/// More than any machine needs.
const AMPLE: Duration = Duration::from_secs(60);

/// An API server on a loopback port that answers PATCHes when it is told to.
struct Server {
    api: ApiServer,
    _loopback: Loopback,
    clients: Clients,
    metrics: ThrottleMetrics,
    answers: watch::Sender<bool>,
}

impl Server {
    async fn start(answers: bool) -> Self {
        let (answers, gate) = watch::channel(answers);
        let server = ApiServer::new(move |asked| {
            assert_eq!(asked.method(), Method::PATCH);
            let mut gate = gate.clone();
            let name = asked.path().rsplit('/').next().unwrap_or_default().to_owned();
            let answer = async move {
                let _open = gate.wait_for(|open| *open).await.is_ok();
                Reply::Json(200, node(&name, &[]))
            };
            Reply::Later(answer.boxed())
        });
        let loopback = server.listen().await;
        let registry = Registry::new();
        let options = ClientOptions {
            kubeconfig: None,
            master: Some(loopback.url.clone()),
            product: "test".into(),
            version: "v0".into(),
            commit: "0".into(),
        };
        let clients =
            Clients::load(&options, &RequestMetrics::new(&registry).unwrap()).await.unwrap();
        let metrics = ThrottleMetrics::new(&registry).unwrap();
        Self { api: server, _loopback: loopback, clients, metrics, answers }
    }

    /// Calls at most this often, after a first one at once.
    fn node_api(&self, qps: f64, patch_timeout: Duration) -> NodeApi {
        let throttle = Throttle::new("test", qps, 1, &self.metrics).unwrap();
        let client = self.clients.build(Profile { throttle, ..Profile::root("test") });
        NodeApi::new(client.unwrap(), patch_timeout)
    }

    /// The paths of the PATCHes so far.
    fn patched(&self) -> Vec<String> {
        self.api.asked().iter().map(|asked| asked.path().to_owned()).collect()
    }

    fn answer(&self) {
        self.answers.send_replace(true);
    }
}

#[tokio::test]
async fn a_patch_that_waits_for_the_throttle_when_the_stop_comes_is_never_sent() {
    let server = Server::start(true).await;
    // The next token comes after an hour.
    let api = server.node_api(1.0 / 3_600.0, AMPLE);
    let bench = Bench::new(api, no_server(), 26, two_nodes()).await;
    assert_eq!(bench.start_reconciling("a").await.unwrap().unwrap(), Next::Done);
    let mut waiting = bench.start_reconciling("b");
    assert!(timeout(ms(100), &mut waiting).await.is_err(), "there was no token to wait for");
    bench.reconciler.stop.cancel();
    assert_eq!(waiting.await.unwrap().unwrap(), Next::Done, "the wait ends with the stop");
    assert_eq!(server.patched(), ["/api/v1/nodes/a"]);
    assert_eq!(bench.unresolved(), 0, "what was not sent needs no looking after");
}

#[tokio::test]
async fn a_patch_that_gets_its_token_in_the_moment_of_the_stop_is_withdrawn() {
    let server = Server::start(true).await;
    let bench = Bench::new(server.node_api(-1.0, AMPLE), no_server(), 26, two_nodes()).await;
    let node = bench.reconciler.nodes.get("a").unwrap();
    let (assignment, _) = bench.reconciler.allocator.lock().assign(&node.uid);
    let Assignment::Send { cidrs, .. } = assignment else { panic!("{assignment:?}") };
    bench.reconciler.stop.cancel();
    let work = Work { node: &node, cidrs: &cidrs, since: Instant::now() };
    // Whether the stop or the token is seen first is left to chance.
    for _ in 0..20 {
        assert_eq!(bench.reconciler.write(&work).await.unwrap_err().unwrap(), Next::Done);
    }
    assert!(server.patched().is_empty());
    assert_eq!(bench.unresolved(), 0);
}

#[tokio::test]
async fn a_patch_that_is_on_its_way_when_the_stop_comes_is_awaited() {
    let server = Server::start(false).await;
    let bench = Bench::new(server.node_api(-1.0, AMPLE), no_server(), 26, two_nodes()).await;
    let mut under_way = bench.start_reconciling("a");
    server.api.until_asked(1).await;
    bench.reconciler.stop.cancel();
    assert!(timeout(ms(300), &mut under_way).await.is_err(), "its outcome is not known yet");
    assert_eq!(bench.unresolved(), 1);
    server.answer();
    assert_eq!(under_way.await.unwrap().unwrap(), Next::Done);
    assert_eq!(bench.unresolved(), 0);
    assert!((bench.patched("done") - 1.0).abs() < 0.1);
}

#[tokio::test]
async fn a_patch_that_is_never_answered_ends_after_its_time_and_stays_unresolved() {
    let server = Server::start(false).await;
    // Long enough for a busy machine to send it.
    let bench = Bench::new(server.node_api(-1.0, ms(5_000)), no_server(), 26, two_nodes()).await;
    let under_way = bench.start_reconciling("a");
    server.api.until_asked(1).await;
    bench.reconciler.stop.cancel();
    let ended = timeout(AMPLE, under_way).await.expect("the PATCH has a time limit");
    assert_eq!(ended.unwrap().unwrap_err().pause(), Duration::ZERO);
    assert_eq!(bench.unresolved(), 1, "the lease must not be given back");
    assert!((bench.patched("ambiguous") - 1.0).abs() < 0.1);
}
