//! [`ClusterApi`]: the controllers of this group as the manager sees them.

use std::sync::Arc;

use futures::future::BoxFuture;
use manager::{Configured, Context, Controller, Failure, Permission, Runner, Stopped};
use pflag::{Problem, Spec, Values};

use crate::api::{GROUP, INFRASTRUCTURE_GROUP};
use crate::cluster;
use crate::flags::FLAGS;
use crate::options::{Mode, Options, judge};

const NAME: &str = "cluster-api-infrastructure-controller";

/// Keeps Clusters of Cluster API.
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
        if options.mode == Mode::Provider {
            let reason = "--capi-mode=provider leaves Clusters to Cluster API's own core";
            return Ok(Configured::idle(reason));
        }
        let permissions = permissions(&options).leak();
        Ok(Configured::run(Standalone { options, permissions }))
    }
}

struct Standalone {
    options: Options,
    permissions: &'static [Permission],
}

impl Runner for Standalone {
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
            cluster::run(&context, &self.options).await?;
            Ok(Stopped::default())
        })
    }
}

/// What the controller does in its own name. Kinds that Clusters refer to are not known yet; of those of
/// infrastructure the one of this program stands for all.
fn permissions(options: &Options) -> Vec<Permission> {
    // As long as the flags, which are judged once.
    let namespace: &'static str = options.namespace.clone().unwrap_or_default().leak();
    let needed = [
        Permission::new("patch", GROUP, "clusters"),
        Permission::new("patch", GROUP, "clusters").subresource("status"),
        Permission::new("delete", GROUP, "machines"),
        Permission::new("get", INFRASTRUCTURE_GROUP, "awsclusters"),
        Permission::new("patch", INFRASTRUCTURE_GROUP, "awsclusters"),
        Permission::new("delete", INFRASTRUCTURE_GROUP, "awsclusters"),
        Permission::new("get", "", "secrets"),
        Permission::new("create", "", "secrets"),
        Permission::new("patch", "", "secrets"),
    ];
    needed.into_iter().map(|right| right.in_namespace(namespace)).collect()
}
