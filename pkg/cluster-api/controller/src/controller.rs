//! [`ClusterApi`]: the controllers of this group as the manager sees them.

use std::sync::Arc;

use flags::{Problem, Spec, Values};
use futures::future::BoxFuture;
use kube_api::Resource;
use manager::command::Command;
use manager::dormancy::{Awaited, CrdOf};
use manager::{
    Configured, Context, Controller, CrdLabel, Failure, Permission, Runner, Stopped, dormancy,
};
use tokio_util::sync::CancellationToken;

use super::{NAME, cluster};
use crate::api::{AWS_CLUSTERS, CLUSTERS, GROUP, INFRASTRUCTURE_GROUP};
use crate::contract::Contract;
use crate::flags::FLAGS;
use crate::options::{Mode, Options, judge};
use crate::plan_command::COMMAND;

#[cfg(feature = "aws")]
use crate::aws_cluster;

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

    fn commands(&self) -> &'static [Command] {
        &[COMMAND]
    }

    fn crds(&self) -> &'static [&'static str] {
        CRDS
    }

    fn crd_label(&self, values: &Values) -> Result<Option<CrdLabel>, Problem> {
        Contract::given(values).map(|contract| Some(contract.crd_label()))
    }

    fn configure(&self, values: &Values) -> Result<Configured, Vec<Problem>> {
        let options = judge(values)?;
        #[cfg(feature = "aws")]
        {
            let problems = crate::options::environment(|name| std::env::var(name).ok());
            if !problems.is_empty() {
                return Err(problems);
            }
        }
        if options.mode == Mode::Provider && !cfg!(feature = "aws") {
            let reason = "no controller to run: --capi-mode=provider disables the controller of \
                Clusters, and this program was built without AWS";
            return Ok(Configured::idle(reason));
        }
        Ok(Configured::run(Group::new(options)))
    }
}

struct Group {
    options: Options,
    /// None in provider mode.
    clusters: Option<Awaited>,
    /// None in builds without AWS.
    aws_clusters: Option<Awaited>,
}

impl Group {
    fn new(options: Options) -> Self {
        let awaited = |kind: Resource, crd, rights: Vec<Permission>| Awaited {
            kind,
            crd,
            namespace: options.namespace.clone(),
            rights: in_namespace(&options, rights),
        };
        let crd_of_clusters = match options.mode {
            Mode::Auto => Some(CrdOf::Us),
            Mode::Standalone => Some(CrdOf::Anybody),
            Mode::Provider => None,
        };
        let clusters = crd_of_clusters.map(|crd| awaited(CLUSTERS, crd, rights_for_clusters()));
        let aws_clusters = cfg!(feature = "aws")
            .then(|| awaited(AWS_CLUSTERS, CrdOf::Us, rights_for_aws_clusters()));
        Self { options, clusters, aws_clusters }
    }

    fn kinds(&self) -> Vec<Awaited> {
        self.clusters.iter().chain(&self.aws_clusters).cloned().collect()
    }
}

impl Runner for Group {
    fn service_account(&self) -> &'static str {
        NAME
    }

    fn permissions(&self) -> &'static [Permission] {
        // As long as no kind is served it needs none.
        &[]
    }

    fn awaited(&self) -> Vec<Awaited> {
        self.kinds()
    }

    fn manifest(&self) -> Option<&'static str> {
        Some("config/rbac/cluster-api.yaml")
    }

    fn event_component(&self) -> &'static str {
        NAME
    }

    fn may_have_predecessor(
        &self,
        client: kube::Client,
    ) -> BoxFuture<'static, Result<bool, Failure>> {
        let kinds = self.kinds();
        Box::pin(async move { dormancy::is_any_there(&client, &kinds).await.map_err(Failure::new) })
    }

    fn run(self: Arc<Self>, context: Context) -> BoxFuture<'static, Result<Stopped, Failure>> {
        Box::pin(async move {
            // If one controller fails, the other one stops in order before the group starts again.
            let mut context = context;
            let stop = context.stop.child_token();
            context.stop = stop.clone();
            let (context, options) = (&context, &self.options);
            let clusters = async {
                if is_served(context, self.clusters.as_ref()).await {
                    return ending(cluster::run(context, options).await, &stop);
                }
                Ok(())
            };
            let infrastructure = async {
                #[cfg(feature = "aws")]
                if is_served(context, self.aws_clusters.as_ref()).await {
                    return ending(aws_cluster::run(context, options).await, &stop);
                }
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

/// Waits until there is something to do with a kind, and has the rights for it checked then. False
/// where that never comes.
async fn is_served(context: &Context, kind: Option<&Awaited>) -> bool {
    let Some(kind) = kind else { return false };
    let is_served = context.stop.run_until_cancelled(kind.served(context)).await.is_some();
    if is_served {
        context.needs(&kind.rights);
    }
    is_served
}

fn rights_for_aws_clusters() -> Vec<Permission> {
    vec![
        Permission::new("patch", INFRASTRUCTURE_GROUP, "awsclusters"),
        Permission::new("patch", INFRASTRUCTURE_GROUP, "awsclusters").subresource("status"),
    ]
}

/// Rights for Clusters. The kinds of infrastructure that Clusters name are not known yet; AWSClusters
/// stand for all of them.
fn rights_for_clusters() -> Vec<Permission> {
    vec![
        Permission::new("get", INFRASTRUCTURE_GROUP, "awsclusters"),
        Permission::new("patch", GROUP, "clusters"),
        Permission::new("patch", GROUP, "clusters").subresource("status"),
        Permission::new("delete", GROUP, "machines"),
        Permission::new("delete", INFRASTRUCTURE_GROUP, "awsclusters"),
        Permission::new("get", "", "secrets"),
        Permission::new("create", "", "secrets"),
        Permission::new("patch", "", "secrets"),
    ]
}

fn in_namespace(options: &Options, rights: Vec<Permission>) -> Vec<Permission> {
    let namespace = options.namespace.as_deref();
    rights.into_iter().map(|right| right.in_namespace_of(namespace)).collect()
}

/// What `config/crd` holds of them.
pub(crate) const CRDS: &[&str] = &[
    include_str!("../../../../config/crd/cluster.x-k8s.io_clusters.yaml"),
    include_str!("../../../../config/crd/cluster.x-k8s.io_machines.yaml"),
    include_str!("../../../../config/crd/infrastructure.cluster.x-k8s.io_awsclusters.yaml"),
    include_str!("../../../../config/crd/infrastructure.cluster.x-k8s.io_awsclustertemplates.yaml"),
    include_str!(
        "../../../../config/crd/infrastructure.cluster.x-k8s.io_awsclustercontrolleridentities.yaml"
    ),
    include_str!(
        "../../../../config/crd/infrastructure.cluster.x-k8s.io_awsclusterroleidentities.yaml"
    ),
    include_str!(
        "../../../../config/crd/infrastructure.cluster.x-k8s.io_awsclusterstaticidentities.yaml"
    ),
];
