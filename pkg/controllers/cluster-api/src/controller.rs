//! [`ClusterApi`]: the controllers of this group as the manager sees them.

use std::sync::Arc;

use futures::future::BoxFuture;
use manager::{Configured, Context, Controller, Failure, Permission, Runner, Stopped};
use pflag::{Problem, Spec, Values};
use tokio_util::sync::CancellationToken;

use crate::api::{GROUP, INFRASTRUCTURE_GROUP};
#[cfg(feature = "aws")]
use crate::aws_cluster;
use crate::cluster;
use crate::flags::FLAGS;
use crate::name::NAME;
use crate::options::{Mode, Options, judge};

/// Keeps Clusters of Cluster API and AWSClusters.
#[derive(Debug)]
pub struct ClusterApi;

impl Controller for ClusterApi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["capi-infrastructure", "cluster-api"]
    }

    fn flags(&self) -> &'static [Spec] {
        FLAGS
    }

    fn configure(&self, values: &Values) -> Result<Configured, Vec<Problem>> {
        let options = judge(values)?;
        if options.mode == Mode::Provider && !cfg!(feature = "aws") {
            let reason = "--capi-mode=provider leaves Clusters to Cluster API's own core, and this program was built without AWS";
            return Ok(Configured::idle(reason));
        }
        let permissions = permissions(&options).leak();
        Ok(Configured::run(Group { options, permissions }))
    }
}

struct Group {
    options: Options,
    permissions: &'static [Permission],
}

impl Runner for Group {
    fn service_account(&self) -> &'static str {
        NAME
    }

    fn permissions(&self) -> &'static [Permission] {
        self.permissions
    }

    fn manifest(&self) -> Option<&'static str> {
        Some("config/rbac/cluster-api.yaml")
    }

    fn event_component(&self) -> &'static str {
        NAME
    }

    fn run(self: Arc<Self>, context: Context) -> BoxFuture<'static, Result<Stopped, Failure>> {
        Box::pin(async move {
            // One that fails has the others end in order before the group is run anew.
            let mut context = context;
            let stop = context.stop.child_token();
            context.stop = stop.clone();
            let (context, options) = (&context, &self.options);
            let clusters = async {
                if options.mode == Mode::Provider {
                    return Ok(());
                }
                ending(cluster::run(context, options).await, &stop)
            };
            let infrastructure = async {
                #[cfg(feature = "aws")]
                ending(aws_cluster::run(context, options).await, &stop)?;
                Ok::<(), Failure>(())
            };
            let (clusters, infrastructure) = futures::join!(clusters, infrastructure);
            clusters.and(infrastructure)?;
            Ok(Stopped::default())
        })
    }
}

/// Asks the others to stop when one has failed.
fn ending(ended: Result<(), Failure>, stop: &CancellationToken) -> Result<(), Failure> {
    ended.inspect_err(|_| stop.cancel())
}

/// What the controller does in its own name. Kinds that Clusters refer to are not known yet; of
/// those of infrastructure the one of this program stands for all.
fn permissions(options: &Options) -> Vec<Permission> {
    // As long as the flags, which are judged once.
    let namespace: &'static str = options.namespace.clone().unwrap_or_default().leak();
    let of_infrastructure = [
        Permission::new("get", INFRASTRUCTURE_GROUP, "awsclusters"),
        Permission::new("patch", INFRASTRUCTURE_GROUP, "awsclusters"),
    ];
    let of_aws =
        [Permission::new("patch", INFRASTRUCTURE_GROUP, "awsclusters").subresource("status")];
    let of_clusters = [
        Permission::new("patch", GROUP, "clusters"),
        Permission::new("patch", GROUP, "clusters").subresource("status"),
        Permission::new("delete", GROUP, "machines"),
        Permission::new("delete", INFRASTRUCTURE_GROUP, "awsclusters"),
        Permission::new("get", "", "secrets"),
        Permission::new("create", "", "secrets"),
        Permission::new("patch", "", "secrets"),
    ];
    let mut needed = of_infrastructure.to_vec();
    if cfg!(feature = "aws") {
        needed.extend(of_aws);
    }
    if options.mode != Mode::Provider {
        needed.extend(of_clusters);
    }
    needed.into_iter().map(|right| right.in_namespace(namespace)).collect()
}
