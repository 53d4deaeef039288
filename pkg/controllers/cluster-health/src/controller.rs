//! [`ClusterHealth`]: the controller as the manager sees it.

use std::sync::Arc;

use futures::future::BoxFuture;
use manager::{Configured, Context, Controller, Failure, Permission, Runner, Stopped};
use pflag::{Problem, Spec, Values};
use probe::{ConnectionLimits, Names};

use crate::engine::{self, Metrics, Source};
use crate::flags::FLAGS;
use crate::kubefed::KubeFed;
use crate::options::{MemberOptions, Options, judge};
use crate::tke::Clusters;

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
        const TKE: &str = "platform.tkestack.io";
        const NEEDED: [Permission; 4] = [
            Permission::new("get", TKE, "clustercredentials"),
            Permission::new("patch", TKE, "clusters").subresource("status"),
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
            let meters = context.metrics(probe::Meters::new)?;
            let sources = sources(&self.options, meters);
            engine::run(context, &sources, self.options.limits, &metrics).await
        })
    }
}

/// The flavours that are asked for; a new one is added here.
fn sources(options: &Options, meters: probe::Meters) -> Vec<Arc<dyn Source>> {
    let MemberOptions { connection_max_age: max_age, allow_plaintext } = options.members;
    let limits = ConnectionLimits { max_age, ..ConnectionLimits::default() };
    let prober = Arc::new(probe::Prober::new(meters, limits, Names::default()));
    let kubefed = options.kubefed.clone().map(|options| {
        Arc::new(KubeFed::new(options, allow_plaintext, Arc::clone(&prober))) as Arc<dyn Source>
    });
    let tke = options.tke.clone();
    let tke = tke.map(|options| Arc::new(Clusters::new(options, prober)) as Arc<dyn Source>);
    kubefed.into_iter().chain(tke).collect()
}
