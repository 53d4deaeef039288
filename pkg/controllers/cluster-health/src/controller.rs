//! [`ClusterHealth`]: the controller as the manager sees it.

use std::sync::Arc;

use futures::future::BoxFuture;
use manager::{Configured, Context, Controller, Failure, Permission, Runner, Stopped};
use pflag::{Problem, Spec, Values};

use crate::engine::{self, Metrics, Source};
use crate::flags::FLAGS;
use crate::options::{Options, judge};

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
        Ok(Configured::run(Watch { options }).with_warnings(warnings))
    }
}

struct Watch {
    options: Options,
}

impl Runner for Watch {
    fn service_account(&self) -> &'static str {
        NAME
    }

    fn permissions(&self) -> &'static [Permission] {
        const KUBEFED: &str = "core.kubefed.io";
        const NEEDED: [Permission; 2] = [
            Permission::new("patch", KUBEFED, "kubefedclusters").subresource("status"),
            Permission::new("get", "", "secrets"),
        ];
        &NEEDED
    }

    fn event_component(&self) -> &'static str {
        NAME
    }

    fn run(self: Arc<Self>, context: Context) -> BoxFuture<'static, Result<Stopped, Failure>> {
        Box::pin(async move {
            let per_cluster = self.options.per_cluster_metrics;
            let metrics = context.metrics(|registry| Metrics::new(registry, per_cluster))?;
            engine::run(context, &sources(&self.options), self.options.limits, &metrics).await
        })
    }
}

/// The flavours that are asked for; a new one is added here.
fn sources(_options: &Options) -> Vec<Arc<dyn Source>> {
    Vec::new()
}
