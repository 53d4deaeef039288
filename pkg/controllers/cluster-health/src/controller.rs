//! [`ClusterHealth`]: the controller as the manager sees it.

use std::sync::Arc;

use futures::future::BoxFuture;
use manager::{Configured, Context, Controller, Failure, Permission, Placement, Runner, Stopped};
use pflag::{Problem, Spec, Values};
use probe::{ConnectionLimits, Names};

use crate::engine::{self, Exposed, Metrics, Source};
use crate::flags::FLAGS;
use crate::kubefed::{KubeFed, UpstreamMetrics};
use crate::options::{MemberOptions, Options, judge};
use crate::tke::{Clusters, SummaryMetrics};

const NAME: &str = "cluster-health-controller";

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

    fn configure(&self, values: &Values) -> Result<Configured, Vec<Problem>> {
        let (options, warnings) = judge(values)?;
        let permissions = permissions(&options).leak();
        Ok(Configured::run(Watch { options, permissions }).with_warnings(warnings))
    }
}

struct Watch {
    options: Options,
    permissions: &'static [Permission],
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
        self.permissions
    }

    fn manifest(&self) -> Option<&'static str> {
        Some(
            "config/rbac/cluster-health.yaml and, for TKEStack's Clusters, config/rbac/cluster-health-tke.yaml, or config/rbac/cluster-health-account.yaml with --use-service-account-credentials",
        )
    }

    fn event_component(&self) -> &'static str {
        NAME
    }

    fn threads(&self) -> usize {
        // Thousands of TLS handshakes at the start, and lists of Pods of any size.
        4
    }

    fn run(self: Arc<Self>, context: Context) -> BoxFuture<'static, Result<Stopped, Failure>> {
        Box::pin(async move {
            let (per_cluster, audit) =
                (self.options.per_cluster_metrics, self.options.limits.audit);
            let exposed = Exposed { per_cluster, audit };
            let metrics = context.metrics(|registry| Metrics::new(registry, exposed))?;
            let meters = context.metrics(probe::Meters::new)?;
            let upstream = if self.options.upstream_metrics {
                Some(context.metrics(|it| UpstreamMetrics::new(it, per_cluster))?)
            } else {
                None
            };
            let summaries =
                context.metrics(|registry| SummaryMetrics::new(registry, per_cluster))?;
            let sources = sources(&self.options, meters, upstream, summaries);
            engine::run(context, &sources, &self.options.limits, &metrics).await
        })
    }
}

/// What the controller does in its own name. Its objects are watched by the process.
fn permissions(options: &Options) -> Vec<Permission> {
    const TKE: &str = "platform.tkestack.io";
    let (kubefed, tke) = (options.kubefed.as_ref(), options.tke.as_ref());
    let namespace = kubefed.map(|options| &options.namespace);
    let namespace = namespace.or(tke.map(|options| &options.secret_namespace));
    let namespace = namespace.cloned().flatten().unwrap_or_default();
    // As long as the flags, which are judged once.
    let namespace: &'static str = namespace.leak();
    let mut needed = vec![Permission::new("get", "", "secrets").in_namespace(namespace)];
    if options.limits.audit {
        if tke.is_some() {
            needed.push(Permission::new("get", TKE, "clustercredentials"));
        }
        return needed;
    }
    if kubefed.is_some() {
        let clusters = Permission::new("patch", "core.kubefed.io", "kubefedclusters");
        needed.push(clusters.subresource("status").in_namespace(namespace));
    }
    // What a cluster says is read when it comes from another replica.
    let shared = options.limits.shards > 1;
    if shared && kubefed.is_some() {
        let clusters = Permission::new("get", "core.kubefed.io", "kubefedclusters");
        needed.push(clusters.in_namespace(namespace));
    }
    if shared && tke.is_some() {
        needed.push(Permission::new("get", TKE, "clusters"));
    }
    if let Some(tke) = tke {
        if !tke.machine_period.is_zero() {
            needed.push(Permission::new("patch", TKE, "machines").subresource("status"));
        }
        needed.push(Permission::new("get", TKE, "clustercredentials"));
        needed.push(Permission::new("patch", TKE, "clusters").subresource("status"));
    }
    needed
}

/// The flavours that are asked for; a new one is added here.
fn sources(
    options: &Options,
    meters: probe::Meters,
    upstream: Option<UpstreamMetrics>,
    summaries: SummaryMetrics,
) -> Vec<Arc<dyn Source>> {
    let MemberOptions { connection_max_age: max_age, idle_timeout: idle_max, allow_plaintext } =
        options.members;
    let limits = ConnectionLimits { max_age, idle_max };
    let prober = Arc::new(probe::Prober::new(meters, limits, Names::default()));
    let kubefed = options.kubefed.clone().map(|options| {
        Arc::new(KubeFed::new(options, allow_plaintext, Arc::clone(&prober), upstream))
            as Arc<dyn Source>
    });
    let tke = options.tke.clone();
    let tke =
        tke.map(|options| Arc::new(Clusters::new(options, prober, summaries)) as Arc<dyn Source>);
    kubefed.into_iter().chain(tke).collect()
}

#[cfg(test)]
mod monitoring;
#[cfg(test)]
mod tests;
