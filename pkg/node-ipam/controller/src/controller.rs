//! Registers node-ipam with the manager, and runs the allocator that the flags name.

#[cfg(test)]
mod predecessor_tests;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cidr::Pool;
use client::{Answer, CallError};
use flags::{Problem, Spec, Values};
use futures::future::BoxFuture;
use http::{Request, StatusCode};
use kube::client::Body;
use kube_api::{CloudNode, LabelledNode, Node, Status};
use manager::{Configured, Context, Controller, Failure, Informers, Permission, Runner, Stopped};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tracing::info;

use super::allocator::Allocator;
use super::flags::FLAGS;
use super::metrics::{IpamMetrics, PoolsOf};
use super::options::Mode;
use super::options::{CloudOptions, ClusterCidrOptions, Judged, Options, judge};
use super::pool_record::POOL_RECORD;
use super::standby::{Prepared, Standby, WarmNodes};
use super::{LOGGER, cloud, cluster_cidr, node_work};

/// Stock's own account; its ClusterRole, which lets it read and write Nodes, exists in every
/// cluster.
const ACCOUNT: &str = "node-controller";

/// The rights of all allocators.
static NODES: [Permission; 2] = [GET_NODES, PATCH_NODES];
const GET_NODES: Permission = Permission::new("get", "", "nodes");
const PATCH_NODES: Permission = Permission::new("patch", "", "nodes");

/// The rights of the allocators that ask a cloud.
static NODES_AND_THEIR_STATUS: [Permission; 3] =
    [GET_NODES, PATCH_NODES, PATCH_NODES.subresource("status")];

/// The rights of the MultiCIDRRangeAllocator.
static NODES_AND_CLUSTER_CIDRS: [Permission; 6] = [
    GET_NODES,
    PATCH_NODES,
    Permission::new("get", CLUSTER_CIDR_GROUP, "clustercidrs"),
    Permission::new("create", CLUSTER_CIDR_GROUP, "clustercidrs"),
    Permission::new("patch", CLUSTER_CIDR_GROUP, "clustercidrs"),
    Permission::new("patch", CLUSTER_CIDR_GROUP, "clustercidrs").subresource("status"),
];
const CLUSTER_CIDR_GROUP: &str = "networking.x-k8s.io";

/// The rights to the record of the pools.
static RECORD: [Permission; 3] = [
    Permission::new("create", "", "configmaps"),
    Permission::new("get", "", "configmaps").named(POOL_RECORD),
    Permission::new("patch", "", "configmaps").named(POOL_RECORD),
];

/// The controller as the manager sees it.
pub struct NodeIpam;

impl Controller for NodeIpam {
    fn name(&self) -> &'static str {
        LOGGER
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["nodeipam"]
    }

    fn flags(&self) -> &'static [Spec] {
        FLAGS
    }

    fn crds(&self) -> &'static [&'static str] {
        CRDS
    }

    fn configure(&self, values: &Values) -> Result<Configured, Vec<Problem>> {
        Ok(match judge(values)? {
            Judged::Off => Configured::idle("--allocate-node-cidrs is false"),
            Judged::On { options, cluster_cidrs, cloud, warnings } => {
                let (options, standby) = (*options, Prepared::default());
                Configured::run(NodeIpamRun { options, cluster_cidrs, cloud, standby })
                    .with_warnings(warnings)
            }
        })
    }
}

/// The allocator that the flags select: the RangeAllocator, or the MultiCIDRRangeAllocator when they speak of
/// ClusterCIDRs, or one of those that ask a cloud.
struct NodeIpamRun {
    options: Options,
    cluster_cidrs: Option<ClusterCidrOptions>,
    cloud: Option<Box<CloudOptions>>,
    /// For the first run.
    standby: Prepared,
}

impl NodeIpamRun {
    async fn allocate(&self, context: &Context, options: &Options) -> Result<Stopped, Failure> {
        match (&self.cluster_cidrs, self.cloud.as_deref()) {
            (Some(of), _) => Box::pin(cluster_cidr::run(context, options, of)).await,
            (None, Some(CloudOptions { google, mode })) => {
                cloud::run(context, google, mode, options).await
            }
            (None, None) => allocate_from_flags(context, options).await,
        }
    }
}

impl Runner for NodeIpamRun {
    fn service_account(&self) -> &'static str {
        ACCOUNT
    }

    fn permissions(&self) -> &'static [Permission] {
        match (&self.cluster_cidrs, &self.cloud) {
            (Some(_), _) => &NODES_AND_CLUSTER_CIDRS,
            (None, Some(_)) => &NODES_AND_THEIR_STATUS,
            (None, None) => &NODES,
        }
    }

    fn manifest(&self) -> Option<&'static str> {
        self.cluster_cidrs.as_ref().map(|_| "config/rbac/cluster-cidrs.yaml")
    }

    fn optional_permissions(&self) -> Option<(&'static [Permission], &'static str)> {
        let has_pools = self.cluster_cidrs.is_some() || !self.options.pools.is_empty();
        let is_needed = self.options.publish_pools && has_pools;
        is_needed.then_some((&RECORD, "config/rbac/node-ipam-records.yaml"))
    }

    /// A ClusterCIDR gets a finalizer before it is used, and what is written to a cloud cannot be
    /// tried: the RangeAllocator alone decides without seeing what it wrote.
    fn can_run_dry(&self) -> bool {
        self.cluster_cidrs.is_none() && self.cloud.is_none()
    }

    fn event_component(&self) -> &'static str {
        match (&self.cluster_cidrs, self.cloud.as_deref()) {
            (Some(_), _) => "multiCIDRRangeAllocator",
            // Upstream's CloudAllocator has the name of the RangeAllocator.
            (None, Some(CloudOptions { mode: Mode::Sync { .. }, .. })) => "cloudCIDRAllocator",
            (None, _) => "cidrAllocator",
        }
    }

    fn may_have_predecessor(
        &self,
        client: kube::Client,
    ) -> BoxFuture<'static, Result<bool, Failure>> {
        Box::pin(has_nodes(client))
    }

    fn stand_by(&self, informers: &Informers) {
        let Some(proof) = self.options.warm_proof else { return };
        let options = &self.options;
        let prepared: Box<dyn Standby> = match (&self.cluster_cidrs, &self.cloud) {
            (Some(_), _) => Box::new(WarmNodes::<LabelledNode>::start(informers, options, proof)),
            (None, Some(_)) => Box::new(WarmNodes::<CloudNode>::start(informers, options, proof)),
            (None, None) => Box::new(WarmNodes::<Node>::start(informers, options, proof)),
        };
        *self.standby.lock() = Some(prepared);
    }

    fn run(self: Arc<Self>, mut context: Context) -> BoxFuture<'static, Result<Stopped, Failure>> {
        Box::pin(async move {
            let standby = self.standby.lock().take();
            // A warm cache ends with the run.
            let _cache = match standby {
                Some(standby) => standby.end(&mut context).await?,
                None => None,
            };
            self.allocate(&context, &self.options).await
        })
    }
}

/// One run of the RangeAllocator.
async fn allocate_from_flags(context: &Context, options: &Options) -> Result<Stopped, Failure> {
    let Options { pools, drained, service_ranges, excluded, reuse_delay, .. } = options;
    let metrics = context.metrics(|registry| IpamMetrics::new(registry, PoolsOf::Flags))?;
    let allocator = Allocator::new(pools.clone(), service_ranges).without(excluded);
    let allocator =
        allocator.draining(drained).resting_for(*reuse_delay).holding_by(options.hold.clone());
    let allocator = Arc::new(Mutex::new(allocator));
    let nodes = node_work::nodes_of::<Node>(&context.informers, options);
    let queue = ("cidrallocator_node", node_work::BACKOFF);
    let reconciler = node_work::reconciler(context, queue, &nodes, &allocator, metrics, None);
    let _watching = node_work::watch(&nodes, &reconciler);
    info!(pools = pools_in_words(pools), "Assigning pod CIDRs from these pools");
    if service_ranges.is_empty() {
        info!("No --service-cluster-ip-range is given: no Service IPs are excluded from the pools");
    }
    let pass = (Arc::clone(&reconciler), node_work::item_limit(context, options));
    node_work::work(context, &reconciler, pass, options, std::future::ready(())).await
}

/// For the log: what the flags came to.
fn pools_in_words(pools: &[Pool]) -> String {
    let words = pools
        .iter()
        .map(|pool| format!("{} in {} blocks of /{}", pool.cidr(), pool.blocks(), pool.mask()));
    words.collect::<Vec<_>>().join(", ")
}

/// What `config/crd` holds of them.
pub(crate) const CRDS: &[&str] =
    &[include_str!("../../../../config/crd/networking.x-k8s.io_clustercidrs.yaml")];

/// For the answer, to its last byte.
const LIMIT: Duration = Duration::from_secs(30);

/// A consistent list of one Node.
const ONE_NODE: &str = "/api/v1/nodes?limit=1";

#[derive(Deserialize)]
struct Page {
    items: Vec<IgnoredAny>,
}

/// Whether the cluster has a Node, by a consistent list.
pub(crate) async fn has_nodes(client: kube::Client) -> Result<bool, Failure> {
    let has_nodes = list(&client).await.map(|page| !page.items.is_empty());
    has_nodes
        .map_err(|error| Failure::new(format!("cannot list the Nodes of the cluster: {error}")))
}

async fn list(client: &kube::Client) -> Result<Page, Box<dyn Error + Send + Sync>> {
    let request = Request::get(ONE_NODE).extension("list").body(Body::empty());
    let request = request.map_err(|error| CallError::NotSent(Box::new(error)))?;
    let Answer { status, body, .. } = client::answer(client, request, LIMIT).await?;
    if status != StatusCode::OK {
        let message = Status::read(&body).unwrap_or_default().message;
        return Err(format!("the server answered {status}: {message}").into());
    }
    serde_json::from_slice(&body).map_err(|error| format!("cannot decode the list: {error}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_what_the_flags_came_to() {
        let pools = [("10.244.0.0/16", 24), ("fd00::/56", 64)]
            .map(|(cidr, mask)| Pool::new(cidr.parse().unwrap(), mask, 16).unwrap());
        assert_eq!(
            pools_in_words(&pools),
            "10.244.0.0/16 in 256 blocks of /24, fd00::/56 in 256 blocks of /64"
        );
    }
}
