//! [`ClusterHealth`]: the controller as the manager sees it.

use std::iter;
use std::sync::Arc;

use flags::{Problem, Spec, Values};
use futures::future::BoxFuture;
use manager::command::Command;
use manager::dormancy::{self, Awaited, CrdOf};
use manager::{
    Configured, Context, Controller, Failure, OwnThreads, Permission, Placement, Runner, Stopped,
};
use probe::{ConnectionLimits, Names, Resolver};

use crate::api::cluster_api;
use crate::api::cluster_profile::{CLUSTER_PROFILES, CRD, GROUP};
use crate::api::kubefed::KUBEFED_CLUSTERS;
use crate::api::tke::CLUSTERS;
use crate::beat_command;
use crate::cluster_api::ClusterApi;
use crate::cluster_profile::ClusterProfiles;
use crate::engine::{
    self, Exposed, Guarding, Limits, Metrics, NetworkTargets, PluginCounter, Source,
};
use crate::flags::FLAGS;
use crate::kubefed::{KubeFed, UpstreamMetrics};
use crate::options::{GuardOptions, KubeFedOptions, MemberOptions, Options, TkeOptions, judge};
use crate::probe_command::COMMAND;
use crate::shared_flavour::{Shared, SharedOptions};
use crate::tke::{SummaryMetrics, Tke};

const NAME: &str = "cluster-health-controller";
/// Thousands of TLS handshakes at the start, and lists of Pods of any size.
const THREADS: usize = 4;

/// Watches over member clusters.
#[derive(Debug)]
pub struct ClusterHealth;

impl Controller for ClusterHealth {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["clusterhealth", "cluster-health"]
    }

    fn flags(&self) -> &'static [Spec] {
        FLAGS
    }

    fn commands(&self) -> &'static [Command] {
        &[COMMAND, beat_command::COMMAND]
    }

    fn crds(&self) -> &'static [&'static str] {
        CRDS
    }

    fn configure(&self, values: &Values) -> Result<Configured, Vec<Problem>> {
        let (options, warnings) = judge(values)?;
        let (kinds, threads) = (kinds(&options), OwnThreads::new("cluster-health", THREADS));
        Ok(Configured::run(Watch { options, kinds, threads }).with_warnings(warnings))
    }
}

struct Watch {
    options: Options,
    kinds: Vec<Awaited>,
    threads: OwnThreads,
}

impl Runner for Watch {
    fn placement(&self) -> Placement {
        match self.options.limits.shards {
            0 | 1 => Placement::Leader,
            _ => Placement::EveryReplica,
        }
    }

    fn service_account(&self) -> &'static str {
        NAME
    }

    fn permissions(&self) -> &'static [Permission] {
        // As long as no kind is served it needs none.
        &[]
    }

    fn awaited(&self) -> Vec<Awaited> {
        self.kinds.clone()
    }

    fn manifest(&self) -> Option<&'static str> {
        Some(
            "config/rbac/cluster-health.yaml and cluster-health-account.yaml, for TKEStack's Clusters cluster-health-tke.yaml, for ClusterProfiles cluster-health-clusterprofile.yaml, for Cluster API's Clusters cluster-health-capi.yaml, and without --use-service-account-credentials cluster-health-process.yaml",
        )
    }

    fn pages(&self) -> &'static [&'static str] {
        &engine::PAGES
    }

    fn event_component(&self) -> &'static str {
        NAME
    }

    fn may_have_predecessor(
        &self,
        client: kube::Client,
    ) -> BoxFuture<'static, Result<bool, Failure>> {
        let kinds = self.kinds.clone();
        Box::pin(async move { dormancy::is_any_there(&client, &kinds).await.map_err(Failure::new) })
    }

    fn run(self: Arc<Self>, context: Context) -> BoxFuture<'static, Result<Stopped, Failure>> {
        Box::pin(async move {
            let served = dormancy::served(&context, &self.kinds);
            if context.stop.run_until_cancelled(served).await.is_none() {
                return Ok(Stopped::default());
            }
            dormancy::check_rights(&context, &self.kinds);
            let this = Arc::clone(&self);
            Box::pin(self.threads.run(async move { this.watch(context).await })).await?
        })
    }
}

impl Watch {
    async fn watch(&self, context: Context) -> Result<Stopped, Failure> {
        let (per_cluster, audit) = (self.options.per_cluster_metrics, self.options.limits.audit);
        let exposed = Exposed { per_cluster, audit };
        let metrics = context.metrics(|registry| Metrics::new(registry, exposed))?;
        let meters = context.metrics(probe::Meters::new)?;
        let upstream = if self.options.upstream_metrics {
            Some(context.metrics(|it| UpstreamMetrics::new(it, per_cluster))?)
        } else {
            None
        };
        let summaries = context.metrics(|registry| SummaryMetrics::new(registry, per_cluster))?;
        let MemberOptions { connection_max_age: max_age, idle_timeout: idle_max, policy, .. } =
            self.options.members.clone();
        let limits = ConnectionLimits { max_age, idle_max };
        let resolver = || Resolver::new(Names::default(), policy.clone());
        let prober = Arc::new(probe::Prober::new(meters, limits, resolver()));
        let plugins = context.metrics(PluginCounter::new)?;
        let sources = sources(&self.options, &prober, upstream, summaries, plugins);
        let guarding = match &self.options.guard {
            Some(options) => Some(guarding(&context, options, prober, resolver())?),
            None => None,
        };
        engine::run(context, &sources, &self.options.limits, &metrics, guarding).await
    }
}

/// The guard with its targets.
fn guarding(
    context: &Context,
    options: &GuardOptions,
    prober: Arc<probe::Prober>,
    resolver: Resolver,
) -> Result<Guarding, Failure> {
    let api = NetworkTargets::api_caller(context.clients.factory()).map_err(Failure::new)?;
    let targets = NetworkTargets::new(api, &options.endpoints, prober, resolver);
    let targets = Arc::new(targets.map_err(Failure::new)?);
    Ok(Guarding { policy: options.policy, targets })
}

/// The kinds of the flavours that are asked for.
fn kinds(options: &Options) -> Vec<Awaited> {
    let kubefed = options.kubefed.as_ref().map(|kubefed| Awaited {
        kind: KUBEFED_CLUSTERS,
        crd: CrdOf::Default,
        namespace: kubefed.namespace.clone(),
        rights: kubefed_rights(kubefed, &options.limits),
    });
    let tke = options.tke.as_ref().map(|tke| Awaited {
        kind: CLUSTERS,
        crd: CrdOf::Default,
        namespace: None,
        rights: tke_rights(tke, options.kubefed.is_none(), &options.limits),
    });
    let profiles = options.cluster_profile.as_ref().into_iter().flat_map(|profiles| {
        CLUSTER_PROFILES.each_ref().map(|kind| Awaited {
            kind: kind.clone(),
            crd: CrdOf::Anybody,
            namespace: profiles.shared.watched_namespace(),
            rights: shared_rights(
                (CRD, GROUP, "clusterprofiles"),
                (&profiles.shared, &profiles.secret_namespaces),
                &options.limits,
            ),
        })
    });
    let capi = options.cluster_api.as_ref().map(|capi| Awaited {
        kind: cluster_api::CLUSTERS[0].clone(),
        crd: CrdOf::Anybody,
        namespace: capi.watched_namespace(),
        rights: shared_rights(
            (cluster_api::CRD, cluster_api::GROUP, "clusters"),
            (capi, &[]),
            &options.limits,
        ),
    });
    kubefed.into_iter().chain(tke).chain(profiles).chain(capi).collect()
}

/// The permissions for the objects of a kind: to write their status, and to read one again when its member moves or the
/// lease was lost. An audit needs none of them.
fn cluster_rights(
    (group, plural): (&'static str, &'static str),
    namespace: Option<&str>,
    limits: &Limits,
) -> impl Iterator<Item = Permission> {
    let status = Permission::new("patch", group, plural).subresource("status");
    let rights = (!limits.audit).then(|| [status, Permission::new("get", group, plural)]);
    rights.into_iter().flatten().map(move |it| it.in_namespace_of(namespace))
}

fn secrets_in(namespace: Option<&str>) -> Permission {
    Permission::new("get", "", "secrets").in_namespace_of(namespace)
}

/// The permissions for a kind whose CRD belongs to others. With objects of all namespaces it is not known which namespaces
/// have Secrets, so the permissions for Secrets are left out.
fn shared_rights(
    (crd, group, plural): (&'static str, &'static str, &'static str),
    (options, of_secrets): (&SharedOptions, &[String]),
    limits: &Limits,
) -> Vec<Permission> {
    let crd =
        Permission::new("get", "apiextensions.k8s.io", "customresourcedefinitions").named(crd);
    let secrets = options.namespaces.iter().chain(of_secrets).map(|it| secrets_in(Some(it)));
    let namespace = options.watched_namespace();
    let clusters = cluster_rights((group, plural), namespace.as_deref(), limits);
    iter::once(crd).chain(secrets).chain(clusters).collect()
}

fn kubefed_rights(kubefed: &KubeFedOptions, limits: &Limits) -> Vec<Permission> {
    let namespace = kubefed.namespace.as_deref();
    let clusters = cluster_rights(("core.kubefed.io", "kubefedclusters"), namespace, limits);
    iter::once(secrets_in(namespace)).chain(clusters).collect()
}

/// The rights for TKEStack's Clusters; the right to Secrets only if KubeFed's members do not need it.
fn tke_rights(tke: &TkeOptions, secrets: bool, limits: &Limits) -> Vec<Permission> {
    const GROUP: &str = "platform.tkestack.io";
    let credentials = Permission::new("get", GROUP, "clustercredentials");
    let secrets = secrets.then(|| secrets_in(tke.secret_namespace.as_deref()));
    let machines = Permission::new("patch", GROUP, "machines").subresource("status");
    // An audit writes none: then the period is zero.
    let machines = (!tke.machine_period.is_zero()).then_some(machines);
    let clusters = cluster_rights((GROUP, "clusters"), None, limits);
    iter::once(credentials).chain(secrets).chain(clusters).chain(machines).collect()
}

/// The flavours that are asked for; a new one is added here.
fn sources(
    options: &Options,
    prober: &Arc<probe::Prober>,
    upstream: Option<UpstreamMetrics>,
    summaries: SummaryMetrics,
    plugins: PluginCounter,
) -> Vec<Arc<dyn Source>> {
    let allow_plaintext = options.members.allow_plaintext;
    let kubefed = options.kubefed.clone().map(|options| {
        Arc::new(KubeFed::new(options, allow_plaintext, Arc::clone(prober), upstream))
            as Arc<dyn Source>
    });
    let tke = options.tke.clone();
    let tke = tke.map(|options| {
        Arc::new(Tke::new(options, Arc::clone(prober), summaries)) as Arc<dyn Source>
    });
    let profiles = options.cluster_profile.clone().map(|options| {
        let shared = Shared::new(options.shared.clone(), allow_plaintext, Arc::clone(prober));
        let shared = shared.with_plugins(plugins);
        Arc::new(ClusterProfiles::new(options, shared)) as Arc<dyn Source>
    });
    let capi = options.cluster_api.clone().map(|options| {
        let shared = Shared::new(options, allow_plaintext, Arc::clone(prober));
        Arc::new(ClusterApi { shared }) as Arc<dyn Source>
    });
    kubefed.into_iter().chain(tke).chain(profiles).chain(capi).collect()
}

#[cfg(test)]
mod tests;

/// What `config/crd` holds of them.
pub(crate) const CRDS: &[&str] = &[
    include_str!("../../../../config/crd/core.kubefed.io_kubefedclusters.yaml"),
    include_str!("../../../../config/crd/core.kubefed.io_kubefedconfigs.yaml"),
    include_str!("../../../../config/crd/platform.tkestack.io_clustercredentials.yaml"),
    include_str!("../../../../config/crd/platform.tkestack.io_clusters.yaml"),
    include_str!("../../../../config/crd/platform.tkestack.io_machines.yaml"),
];
