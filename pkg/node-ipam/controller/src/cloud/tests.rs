//! A cache, a cloud and an API server that do as they are told, on a paused clock.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use api_server_double::{ApiServer, Reply, client_of_unchanging};
use cidr::{IpNet, Pool};
use client::{CallError, SendCheck};
use events::{Broadcaster, EventMetrics};
use gce::PodRanges;
use http::Method;
use informer::{Format, Informer, InformerMetrics, Source, Subscription};
use kube_api::{CloudNode, LabelSelector, StaticKind};
use parking_lot::Mutex;
use prometheus::Registry;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use workqueue::{Next, QueueMetrics, Retry, WorkQueue};

use super::cloud_nodes::CloudNodes;
use super::copying::BACKOFF;
use super::provider::{Cloud, CloudError};
use crate::allocator::{Allocator, CloudSource};
use crate::api::NodeApi;
use crate::metrics::{IpamMetrics, PoolsOf};
use crate::node_events::NodeEvents;
use crate::node_work;
use crate::reconciler::{Backlog, CachedNode, Reconciler};
use crate::second_allocator::{Detector, Hold, OnSecondAllocator};
use crate::writer::LastAccepted;

mod answers;
mod copier;
mod second_allocator;
mod selecting;
mod syncer;

const VM: &str = "gce://p/z/a";

/// The answers of the cloud, and its requests so far.
#[derive(Default)]
struct Script {
    /// By providerID; nothing for all others.
    ranges: HashMap<String, Result<PodRanges, CloudError>>,
    /// The answers to additions in turn; then success.
    additions: VecDeque<Result<(), CloudError>>,
    added: Vec<String>,
    addition_takes: Duration,
}

#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Script>>);

impl Cloud for Scripted {
    async fn ranges(&self, provider_id: &str, _: Instant) -> Result<PodRanges, CloudError> {
        self.0.lock().ranges.get(provider_id).cloned().unwrap_or_else(|| Ok(PodRanges::default()))
    }

    async fn add_range(
        &self,
        provider_id: &str,
        range: IpNet,
        _: &PodRanges,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), CloudError> {
        if !is_wanted() {
            return Err(CloudError::Withdrawn);
        }
        let takes = {
            let mut script = self.0.lock();
            script.added.push(format!("{provider_id} {range}"));
            script.addition_takes
        };
        tokio::time::sleep(takes).await;
        let mut script = self.0.lock();
        let answer = script.additions.pop_front().unwrap_or(Ok(()));
        if answer.is_ok() {
            let vm = PodRanges { aliases: vec![range], ipv6: None };
            script.ranges.insert(provider_id.to_owned(), Ok(vm));
        }
        answer
    }
}

/// The work on Nodes from any source, without a manager, and what has to live as long.
struct World<N: CachedNode> {
    core: Arc<Reconciler<N>>,
    server: ApiServer,
    events: ApiServer,
    registry: Registry,
    _broadcaster: Broadcaster,
}

impl<N: CachedNode + StaticKind> World<N> {
    /// A cluster with these Nodes, whose API server answers PATCHes so in turn, and then by the
    /// object. Nodes with the label `none` are not selected.
    fn new(allocator: Allocator, nodes: Vec<Value>, patches: &[u16]) -> Self {
        let registry = Registry::new();
        let server_of_nodes = informer::Server::own(client_of_unchanging(nodes.clone()));
        let mut source = Source::new(server_of_nodes, N::KIND);
        source.selector = LabelSelector::parse("!none").ok();
        let metrics = InformerMetrics::new(&registry, "test").unwrap();
        let cache = Informer::new(source, &metrics, Format::default());
        let has_objects = allocator.snapshot().pools.iter().any(|pool| pool.object.is_some());
        let of = if has_objects { PoolsOf::ClusterCidrs } else { PoolsOf::Flags };
        let metrics = IpamMetrics::new(&registry, of).unwrap();
        let events = ApiServer::new(Reply::stored);
        let event_metrics = EventMetrics::new(&registry).unwrap();
        let (recorder, broadcaster) =
            events::start(events.client(), "cidrAllocator", "test", event_metrics);
        let hold = Hold::default();
        let allocator = Arc::new(Mutex::new(allocator.holding_by(hold.clone())));
        metrics.attach(&allocator);
        let server = server(nodes, patches);
        let api = NodeApi::new(server.client(), Duration::from_secs(5));
        let found = metrics.second_allocators.clone();
        let core = Arc::new(Reconciler {
            nodes: cache,
            queue: WorkQueue::new("nodes", BACKOFF, &QueueMetrics::new(&registry).unwrap()),
            backlog: Backlog::default(),
            cluster_cidrs: None,
            detector: Arc::new(Detector::new(api.clone(), recorder.clone(), found, hold)),
            api,
            events: NodeEvents::new(recorder, Arc::clone(&allocator)),
            allocator,
            metrics,
            accepted: LastAccepted::default(),
            dry_run: false,
            stop: CancellationToken::new(),
        });
        let resting = Arc::clone(&core);
        tokio::spawn(async move { node_work::end_rests(&resting).await });
        Self { core, server, events, registry, _broadcaster: broadcaster }
    }

    /// Fills the cache, which has its subscriber by now.
    async fn fill(&self) {
        let cache = self.core.nodes.clone();
        tokio::spawn(async move { cache.run(CancellationToken::new()).await });
        self.core.nodes.synced().await;
    }

    /// The PATCHes so far: path and body.
    fn patches(&self) -> Vec<(String, Value)> {
        let asked = self.server.asked();
        let patches = asked.iter().filter(|asked| asked.method() == Method::PATCH);
        patches.map(|asked| (asked.path().to_owned(), asked.json())).collect()
    }

    /// The methods of the requests so far.
    fn methods(&self) -> Vec<String> {
        self.server.asked().iter().map(|asked| asked.method().to_string()).collect()
    }

    /// The pod CIDRs that were sent, and how often a Node was said to be ready.
    fn written(&self) -> (Vec<String>, usize) {
        let cidrs = |(_, body): &(String, Value)| {
            body["spec"]["podCIDRs"]
                .as_array()
                .map(|all| all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","))
        };
        let patches = self.patches();
        let ready = patches.iter().filter(|(path, _)| path.ends_with("/status")).count();
        (patches.iter().filter_map(cidrs).collect(), ready)
    }

    /// Whether a metric has this value, summed over its labels.
    fn shows(&self, name: &str, value: f64) -> bool {
        let families = self.registry.gather();
        let family = families.iter().find(|family| family.name() == name);
        let metrics = family.map(prometheus::proto::MetricFamily::get_metric).unwrap_or_default();
        let values = metrics.iter().map(|it| it.get_gauge().get_value());
        (values.sum::<f64>() - value).abs() < 1e-6
    }

    /// The reasons of the events so far, in order.
    async fn told(&self) -> Vec<String> {
        // They are written by tasks of their own.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let asked = self.events.asked();
        asked.iter().filter_map(|it| it.json()["reason"].as_str().map(str::to_owned)).collect()
    }
}

/// The Nodes of a run with their world and their cloud.
struct Bench {
    all: Arc<CloudNodes<Scripted>>,
    cloud: Scripted,
    world: World<CloudNode>,
    _watching: Subscription<CloudNode>,
}

impl Deref for Bench {
    type Target = World<CloudNode>;

    fn deref(&self) -> &Self::Target {
        &self.world
    }
}

impl Bench {
    /// A world whose pool, if it has one, is of /24 blocks.
    async fn new(
        source: CloudSource,
        pool: Option<&str>,
        nodes: Vec<Value>,
        patches: &[u16],
    ) -> Self {
        let pool = pool.map(|cidr| Pool::new(cidr.parse().unwrap(), 24, 16).unwrap());
        let world = World::new(Allocator::of_cloud(source, pool, &[]), nodes, patches);
        let cloud = Scripted::default();
        let all = CloudNodes::new(Arc::clone(&world.core), cloud.clone());
        let watching = all.watch(|_| true, |_, _| {});
        world.fill().await;
        Self { all, cloud, world, _watching: watching }
    }

    fn vm(&self, provider_id: &str, aliases: &[&str]) {
        let aliases = aliases.iter().map(|range| range.parse().unwrap()).collect();
        let vm = PodRanges { aliases, ipv6: None };
        self.cloud.0.lock().ranges.insert(provider_id.to_owned(), Ok(vm));
    }

    fn vm_fails(&self, provider_id: &str, error: CloudError) {
        self.cloud.0.lock().ranges.insert(provider_id.to_owned(), Err(error));
    }
}

fn node(name: &str, cidrs: &[&str], provider_id: &str, network: &str) -> Value {
    let metadata = json!({"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1"});
    let conditions = match network {
        "" => json!([]),
        status => json!([{"type": "NetworkUnavailable", "status": status}]),
    };
    json!({
        "metadata": metadata, "spec": {"podCIDRs": cidrs, "providerID": provider_id},
        "status": {"conditions": conditions},
    })
}

/// Stands for a 504 that comes after a second.
const LATE: u16 = 1504;
/// Stands for an answer that is lost.
const LOST: u16 = 1000;
/// Stands for a connection that is refused.
const UNSENT: u16 = 1001;
/// Stands for a 422 because the Node has pod CIDRs already.
const TAKEN: u16 = 1422;

/// Answers PATCHes with these codes in turn, and everything else by the Node.
fn server(nodes: Vec<Value>, patches: &[u16]) -> ApiServer {
    let codes = Mutex::new(patches.iter().copied().collect::<VecDeque<_>>());
    ApiServer::new(move |asked| {
        let leaves = asked.head.extensions.get().is_none_or(|SendCheck(check)| check());
        if !leaves {
            return Reply::Fails("withdrawn".into());
        }
        let name = asked.path().trim_start_matches("/api/v1/nodes/").trim_end_matches("/status");
        let node = nodes.iter().find(|node| node["metadata"]["name"] == name).unwrap();
        let code = match *asked.method() {
            Method::PATCH => codes.lock().pop_front().unwrap_or(200),
            _ => 200,
        };
        match code {
            200 => Reply::Json(200, node.clone()),
            LATE => {
                let late = tokio::time::sleep(Duration::from_secs(1));
                Reply::Later(Box::pin(async {
                    late.await;
                    Reply::failure(504, "Timeout")
                }))
            }
            LOST => Reply::Fails("cut off".into()),
            UNSENT => Reply::Fails(Box::new(CallError::NotSent("no connection".into()))),
            TAKEN => Reply::failure(422, "spec.podCIDRs: may not change podCIDR"),
            code => Reply::failure(code, "Refused"),
        }
    })
}

fn is_expected(ended: &Result<Next, Retry>) -> bool {
    ended.as_ref().is_err_and(|retry| !retry.is_throttled())
}
