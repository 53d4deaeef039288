//! An API server of the kinds that this crate reads, and the means of a run on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_server_double::{ApiServer, Asked, Reply, Store};
use client::{ClientOptions, Clients, RequestMetrics, ThrottleMetrics};
use events::{EventMetrics, ObjectRef};
use futures::future::BoxFuture;
use http::Request;
use http_body_util::BodyExt as _;
use informer::Format;
use kube::client::Body;
use kube_api::Resource;
use manager::{Context, Failure, Host, HostOptions, Hosted, Permission, Runner, Stopped};
use parking_lot::Mutex;
use prometheus::Registry;
use resilience::Fence;
use serde_json::{Value, json};
use serving::{Health, Pages, ServingMetrics};
use tokio::sync::oneshot;
use transport::{AnswerBody, Wire, WireError};

use crate::api::aws_identity::IdentityKind;
use crate::api::{AWS_CLUSTERS, CLUSTERS, GROUP, INFRASTRUCTURE_GROUP};

/// Makes infrastructure in another group than AWSClusters.
pub(crate) const OTHERS: Resource =
    Resource::namespaced("others.example.org", "v1", "AWSCluster", "awsclusters");

/// The custom kinds that are served.
fn kinds() -> Vec<Resource> {
    let machines = Resource::namespaced(GROUP, "v1beta2", "Machine", "machines");
    let other =
        Resource::namespaced(INFRASTRUCTURE_GROUP, "v1beta2", "OtherCluster", "otherclusters");
    let identities = IdentityKind::ALL.map(IdentityKind::resource);
    [CLUSTERS, machines, AWS_CLUSTERS, other, OTHERS].into_iter().chain(identities).collect()
}

/// A server that keeps objects here. The CRDs of all kinds are ours and keep a contract of Cluster API.
pub(crate) fn server(store: &Arc<Store>) -> ApiServer {
    server_but_for(store, |_| None)
}

/// A [`server`] whose answers to some requests are given here.
pub(crate) fn server_but_for(
    store: &Arc<Store>,
    given: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static,
) -> ApiServer {
    for kind in kinds() {
        let name = format!("{}.{}", kind.plural, kind.group);
        let labels =
            json!({"app.kubernetes.io/managed-by": "test", "cluster.x-k8s.io/v1beta2": "v1beta2"});
        let crd = json!({"metadata": {"name": name, "labels": labels}});
        store.put(&Resource::CRDS.object_path(&name), crd);
    }
    let store = Arc::clone(store);
    ApiServer::new(move |asked| match (given(asked), discovered(asked.path())) {
        (Some(reply), _) => reply,
        (None, Some(document)) => Reply::Json(200, document),
        (None, None) => store.answer(asked),
    })
}

/// The discovery document of a group, or of a version of it.
fn discovered(path: &str) -> Option<Value> {
    let steps: Vec<_> = path.strip_prefix("/apis/")?.split('/').collect();
    let served: Vec<_> = kinds().into_iter().filter(|kind| kind.group == steps[0]).collect();
    let version = json!({"version": served.first()?.version});
    match steps[1..] {
        [] => Some(json!({"preferredVersion": version, "versions": [version]})),
        [version] => {
            let of_version = served.iter().filter(|kind| kind.version == version);
            let resources = of_version.map(|kind| {
                json!({"name": kind.plural, "kind": kind.kind, "namespaced": kind.namespaced})
            });
            Some(json!({"resources": resources.collect::<Vec<_>>()}))
        }
        _ => None,
    }
}

/// The context of a run on this server, and the host that it comes from.
pub(crate) async fn context(server: &ApiServer) -> (Context, Host) {
    let registry = Registry::new();
    let address = ClientOptions {
        kubeconfig: None,
        master: Some("http://api".into()),
        product: "test".into(),
        version: "v0".into(),
        commit: "0".into(),
    };
    let requests = RequestMetrics::new(&registry).unwrap();
    let options = HostOptions {
        clients: Clients::over(wire(server), &address, &requests).unwrap(),
        event_client: server.client(),
        event_metrics: EventMetrics::new(&registry).unwrap(),
        health: Health::new(),
        pages: Pages::new(),
        listeners: ServingMetrics::new(&registry).unwrap(),
        fence: Fence::always_open(),
        product: "test",
        identity: "test".to_owned(),
        format: Format::Json,
        min_resync: Duration::ZERO,
        service_accounts: false,
        work_rate: (1000.0, 1000),
        own_rates: BTreeMap::new(),
        dry_run: false,
        lease: ObjectRef::lease("kube-system", "test", ""),
        throttle_metrics: ThrottleMetrics::new(&registry).unwrap(),
        start_interval: Duration::ZERO,
        shutdown_timeout: Duration::from_secs(10),
        write_timeout: Duration::from_secs(10),
        registry,
    };
    let (context, given) = oneshot::channel();
    let runner = Arc::new(Given(Mutex::new(Some(context))));
    let hosted = Hosted { name: "test", alias: "test", by_name: true, runner };
    let host = Host::start(&options, vec![hosted]).unwrap();
    (given.await.unwrap(), host)
}

/// A controller that gives its context away.
struct Given(Mutex<Option<oneshot::Sender<Context>>>);

impl Runner for Given {
    fn service_account(&self) -> &'static str {
        "test"
    }

    fn permissions(&self) -> &'static [Permission] {
        &[]
    }

    fn event_component(&self) -> &'static str {
        "test"
    }

    fn run(self: Arc<Self>, context: Context) -> BoxFuture<'static, Result<Stopped, Failure>> {
        Box::pin(async move {
            let stop = context.stop.clone();
            drop(self.0.lock().take().unwrap().send(context));
            stop.cancelled().await;
            Ok(Stopped::default())
        })
    }
}

/// The way to a server in memory.
fn wire(server: &ApiServer) -> Wire {
    let client = server.client();
    Wire::of(move |request| {
        let client = client.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(WireError::broken)?.to_bytes();
            let request = Request::from_parts(head, Body::from(body.to_vec()));
            let answer = client.send(request).await.map_err(WireError::broken)?;
            Ok(answer.map(|body| AnswerBody::made(body.map_err(Into::into).boxed_unsync())))
        })
    })
}
