//! Kinds that come and go, against a server that answers by hand.

use std::collections::VecDeque;

use kube_api::Resource;
use prometheus::Registry;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::request::Format;
use crate::testing::{Call, Server, Wire, node};
use crate::{Delta, InformerMetrics};

const WIDGETS: &str = "/apis/example.io/v1/widgets";
const OURS: &str = "infra-controller-manager";

/// The informer of a custom kind, the CRDs of its server, and what its handler was told.
struct Fixture {
    server: Server,
    /// Requests that came while others were waited for.
    early: VecDeque<Call>,
    /// The watch of the CRDs, once they are listed.
    crds: Option<Wire>,
    widgets: Informer<Metadata>,
    told: mpsc::UnboundedReceiver<String>,
    _subscription: Subscription<Metadata>,
}

impl Fixture {
    async fn start(kind: Kind, managed_by: Option<&str>) -> Self {
        let mut this = Self::begin(kind, managed_by);
        let crds = this.call(&server_path("customresourcedefinitions")).await.stream();
        crds.end_of_list(1);
        this.crds = Some(crds);
        this
    }

    /// A source whose server refuses to list the CRDs, once.
    async fn refused_crds(kind: Kind, managed_by: Option<&str>) -> Self {
        let mut this = Self::begin(kind, managed_by);
        this.call(&server_path("customresourcedefinitions")).await.refuse(403, "Forbidden");
        this
    }

    fn begin(kind: Kind, managed_by: Option<&str>) -> Self {
        let (client, server) = Server::new();
        let metrics = InformerMetrics::new(&Registry::new(), OURS).unwrap();
        let source = Source::crds(crate::Server::own(client.clone()));
        let crds = Informer::<Metadata>::new(source, &metrics, Format::Protobuf);
        let mut source = Source::new(crate::Server::own(client), kind);
        source.managed_by = managed_by.map(Arc::from);
        let widgets = Informer::<Metadata>::new(source, &metrics, Format::Protobuf);
        let (sender, told) = mpsc::unbounded_channel();
        let subscription = widgets.subscribe(move |delta| match delta {
            Delta::Added(object) => drop(sender.send(format!("added {}", object.key))),
            Delta::Deleted(object) => drop(sender.send(format!("deleted {}", object.key))),
            _ => {}
        });
        let (running, watched) = (crds.clone(), crds);
        tokio::spawn(async move { running.run(CancellationToken::new()).await });
        let running = widgets.clone();
        tokio::spawn(async move {
            running.run_while_served(watched, CancellationToken::new()).await;
        });
        Self {
            server,
            early: VecDeque::new(),
            crds: None,
            widgets,
            told,
            _subscription: subscription,
        }
    }

    fn crds(&self) -> &Wire {
        self.crds.as_ref().expect("the CRDs are listed")
    }

    /// The next request of that path.
    async fn call(&mut self, path: &str) -> Call {
        if let Some(at) = self.early.iter().position(|call| call.path() == path) {
            return self.early.remove(at).unwrap();
        }
        loop {
            let call = self.server.call().await;
            if call.path() == path {
                return call;
            }
            self.early.push_back(call);
        }
    }

    /// Answers the discovery of `example.io/v1`.
    async fn discover(&mut self, resources: Value) {
        let body = json!({"kind": "APIResourceList", "resources": resources});
        self.call("/apis/example.io/v1").await.json(200, &body);
    }

    async fn serve_widgets(&mut self, version: u64, names: &[&str]) -> Wire {
        let wire = self.call(WIDGETS).await.stream();
        for name in names {
            wire.event("ADDED", &node(name, version));
        }
        wire.end_of_list(version);
        wire
    }

    async fn is_dormant_soon(&self) {
        while !self.widgets.is_dormant() {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

fn server_path(plural: &str) -> String {
    format!("/apis/apiextensions.k8s.io/v1/{plural}")
}

fn crd(uid: &str, version: u64, managed_by: Option<&str>) -> Value {
    let mut crd = crate::testing::node_with_uid("widgets.example.io", uid, version);
    if let Some(managed_by) = managed_by {
        crd["metadata"]["labels"] = json!({MANAGED_BY: managed_by});
    }
    crd
}

fn widgets() -> Kind {
    Kind::Custom(Resource::namespaced("example.io", "v1", "Widget", "widgets"))
}

fn served() -> Value {
    json!([
        {"name": "widgets", "kind": "Widget", "namespaced": true},
        {"name": "widgets/status", "kind": "Widget", "namespaced": true},
    ])
}

/// rule:absent-kinds-are-dormant
#[tokio::test(start_paused = true)]
async fn a_kind_is_dormant_until_its_crd_is_ours_and_served_and_again_when_it_goes() {
    let mut run = Fixture::start(widgets(), Some(OURS)).await;
    run.is_dormant_soon().await;
    // Nothing is asked of the server as long as no CRD is ours.
    run.crds().event("ADDED", &crd("one", 2, None));
    run.crds().event("MODIFIED", &crd("one", 3, Some("another-product")));
    sleep(Duration::from_secs(60)).await;
    assert!(run.widgets.is_dormant() && run.early.is_empty());

    run.crds().event("MODIFIED", &crd("one", 4, Some(OURS)));
    let appeared = Instant::now();
    run.call("/apis/example.io/v1").await.refuse(404, "NotFound");
    run.discover(served()).await;
    let wire = run.serve_widgets(10, &["a", "b"]).await;
    run.widgets.synced().await;
    assert!(appeared.elapsed() < Duration::from_secs(1), "{:?}", appeared.elapsed());
    assert!(!run.widgets.is_dormant());
    assert_eq!(run.told.recv().await.unwrap(), "added a");
    assert_eq!(run.told.recv().await.unwrap(), "added b");

    run.crds().event("DELETED", &crd("one", 11, Some(OURS)));
    run.told.recv().await.unwrap();
    assert!(run.told.recv().await.unwrap().starts_with("deleted "));
    run.is_dormant_soon().await;
    assert!(wire.is_abandoned() && run.widgets.is_empty());

    run.crds().event("ADDED", &crd("two", 12, Some(OURS)));
    run.discover(served()).await;
    let _wire = run.serve_widgets(20, &["c"]).await;
    assert_eq!(run.told.recv().await.unwrap(), "added c");
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_loses_our_label_makes_its_kind_dormant() {
    let mut run = Fixture::start(widgets(), Some(OURS)).await;
    run.crds().event("ADDED", &crd("one", 2, Some(OURS)));
    run.discover(served()).await;
    let _wire = run.serve_widgets(10, &["a"]).await;
    run.widgets.synced().await;
    let session = Session::new();
    let _user = run.widgets.in_session(session.clone()).subscribe(|delta| {
        assert!(!matches!(delta, Delta::Deleted(_)), "it is still there");
    });
    run.crds().event("MODIFIED", &crd("one", 11, None));
    run.is_dormant_soon().await;
    let cause = timeout(Duration::from_secs(60), session.ended()).await.unwrap();
    assert!(cause.contains("no longer has the label"), "{cause}");
    assert!(run.widgets.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kind_whose_crd_a_restored_etcd_does_not_have_counts_as_deleted() {
    let mut run = Fixture::start(widgets(), None).await;
    run.crds().event("ADDED", &crd("one", 50, None));
    run.discover(served()).await;
    let _wire = run.serve_widgets(60, &["a"]).await;
    assert_eq!(run.told.recv().await.unwrap(), "added a");
    run.crds().error(410, "Expired");
    for _ in 0..3 {
        run.crds = Some(run.call(&server_path("customresourcedefinitions")).await.stream());
        run.crds().end_of_list(20);
    }
    let told = timeout(Duration::from_secs(600), run.told.recv()).await;
    assert_eq!(told.expect("its objects stay").unwrap(), "deleted a");
    assert!(run.widgets.is_empty() && run.widgets.is_dormant());
}

#[tokio::test(start_paused = true)]
async fn without_the_condition_any_crd_will_do_and_its_end_is_noticed_all_the_same() {
    let mut run = Fixture::start(widgets(), None).await;
    run.discover(json!([])).await;
    run.is_dormant_soon().await;
    run.crds().event("ADDED", &crd("one", 2, None));
    run.discover(served()).await;
    let _wire = run.serve_widgets(10, &["a"]).await;
    run.widgets.synced().await;
    run.crds().event("DELETED", &crd("one", 11, None));
    run.is_dormant_soon().await;
    assert!(run.widgets.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kind_known_by_name_is_read_in_the_version_that_the_server_prefers() {
    let mut run = Fixture::start(Kind::named("example.io", "Widget"), None).await;
    run.crds().event("ADDED", &crd("one", 2, None));
    let group = json!({"kind": "APIGroup", "preferredVersion": {"version": "v1"}});
    let answer = |call: Call| call.json(200, &group);
    answer(run.call("/apis/example.io").await);
    run.discover(served()).await;
    let _wire = run.serve_widgets(10, &["a"]).await;
    run.widgets.synced().await;
    let found = Resource::namespaced("example.io", "v1", "Widget", "widgets");
    assert_eq!(run.widgets.resource(), Some(found));
}

#[tokio::test(start_paused = true)]
async fn a_collection_that_is_not_found_is_looked_for_again_and_keeps_its_objects() {
    let mut run = Fixture::start(widgets(), Some(OURS)).await;
    run.crds().event("ADDED", &crd("one", 2, Some(OURS)));
    run.discover(served()).await;
    let wire = run.serve_widgets(10, &["a"]).await;
    run.widgets.synced().await;
    wire.error(410, "Expired");
    run.call(WIDGETS).await.refuse(404, "NotFound");
    run.discover(served()).await;
    assert!(!run.widgets.is_empty(), "one server of several may not know the kind yet");
    let _wire = run.serve_widgets(12, &["a", "b"]).await;
    run.told.recv().await.unwrap();
    assert_eq!(run.told.recv().await.unwrap(), "added b");
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_is_served_at_last_is_noticed_within_a_second_however_long_that_took() {
    let mut run = Fixture::start(widgets(), Some(OURS)).await;
    run.crds().event("ADDED", &crd("one", 2, Some(OURS)));
    for _ in 0..12 {
        run.call("/apis/example.io/v1").await.refuse(404, "NotFound");
    }
    // The server tells that it has established the kind, a moment before it serves it.
    run.crds().event("MODIFIED", &crd("one", 3, Some(OURS)));
    let established = Instant::now();
    run.call("/apis/example.io/v1").await.refuse(404, "NotFound");
    run.call("/apis/example.io/v1").await.refuse(404, "NotFound");
    run.discover(served()).await;
    let _wire = run.serve_widgets(10, &["a"]).await;
    run.widgets.synced().await;
    assert!(established.elapsed() < Duration::from_secs(1), "{:?}", established.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_an_own_write_ends_while_the_kind_is_dormant() {
    let mut run = Fixture::start(widgets(), Some(OURS)).await;
    run.crds().event("ADDED", &crd("one", 2, Some(OURS)));
    run.discover(served()).await;
    let _wire = run.serve_widgets(10, &["a"]).await;
    run.widgets.synced().await;
    let informer = run.widgets.clone();
    let waiting = tokio::spawn(async move {
        informer.shows("a", &kube_api::OwnWrite::version(95)).await;
    });
    sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished(), "the kind is served, and its watch may show it");
    run.crds().event("DELETED", &crd("one", 11, Some(OURS)));
    timeout(Duration::from_secs(60), waiting).await.unwrap().unwrap();
    let late = kube_api::OwnWrite::version(96);
    timeout(Duration::from_secs(60), run.widgets.shows("a", &late)).await.unwrap();
}

/// rule:absent-kinds-are-dormant
#[tokio::test(start_paused = true)]
async fn a_kind_whose_crd_may_not_be_looked_at_is_dormant_until_it_may_unless_it_was_named() {
    for managed_by in [Some(OURS), None] {
        let mut run = Fixture::refused_crds(widgets(), managed_by).await;
        if managed_by.is_some() {
            run.is_dormant_soon().await;
            let crds = run.call(&server_path("customresourcedefinitions")).await.stream();
            crds.event("ADDED", &crd("one", 2, Some(OURS)));
            crds.end_of_list(2);
            run.crds = Some(crds);
        }
        run.discover(served()).await;
        let _wire = run.serve_widgets(10, &["a"]).await;
        let limit = Duration::from_secs(120);
        timeout(limit, run.widgets.synced()).await.expect("it is listed");
        assert!(!run.widgets.is_dormant());
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_announced_and_never_found_is_looked_for_less_and_less() {
    let mut run = Fixture::start(widgets(), Some(OURS)).await;
    run.crds().event("ADDED", &crd("one", 2, Some(OURS)));
    let begun = Instant::now();
    for _ in 0..12 {
        run.discover(served()).await;
        run.call(WIDGETS).await.refuse(404, "NotFound");
    }
    assert!(begun.elapsed() > Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_comes_back_under_another_plural_is_found() {
    let mut run = Fixture::start(Kind::named("example.io", "Widget"), None).await;
    let group = json!({"kind": "APIGroup", "preferredVersion": {"version": "v1"}});
    run.crds().event("ADDED", &crd("one", 2, None));
    run.call("/apis/example.io").await.json(200, &group);
    run.discover(served()).await;
    let _wire = run.serve_widgets(10, &["a"]).await;
    assert_eq!(run.told.recv().await.unwrap(), "added a");
    run.crds().event("DELETED", &crd("one", 11, None));
    assert_eq!(run.told.recv().await.unwrap(), "deleted a");
    run.is_dormant_soon().await;
    run.crds().event("ADDED", &crate::testing::node_with_uid("gizmos.example.io", "two", 12));
    let found = timeout(Duration::from_secs(600), run.call("/apis/example.io")).await;
    found.expect("it is looked for").json(200, &group);
    run.discover(json!([{"name": "gizmos", "kind": "Widget", "namespaced": true}])).await;
    let wire = run.call("/apis/example.io/v1/gizmos").await.stream();
    wire.event("ADDED", &node("b", 13));
    wire.end_of_list(13);
    assert_eq!(run.told.recv().await.unwrap(), "added b");
}
