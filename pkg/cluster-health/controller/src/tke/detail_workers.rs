//! [`DetailWorkers`]: the workers of [`DetailTask`]s and of Machines.

use std::sync::Arc;
use std::time::Duration;

use informer::Informer;
use kube_api::Kind;
use manager::{Context, Failure};
use objects::Object;
use tokio::try_join;
use workqueue::WorkQueue;

use super::cluster_states::SUMMARY_LIMIT_MAX;
use super::details::{DetailReconciler, DetailTask};
use super::flavour::Tke;
use super::machines::{MachineHealth, MachineReconciler, follow, lookup};
use super::node_lists::NodeLists;
use crate::api::tke::{Cluster, MACHINES, Machine};
use crate::engine::Registry;
use crate::missing_rights::Reading;
use crate::missing_rights::{Denied, denied};

/// The time limit of a task: that of the longest one, a summary.
const TASK_LIMIT: Duration = SUMMARY_LIMIT_MAX.saturating_add(Duration::from_secs(30));

/// The workers of tasks and of Machines, which share the lists of Nodes.
pub(super) struct DetailWorkers {
    tasks: DetailReconciler,
    reconciler: MachineReconciler,
    /// `None` when Machines are not looked after.
    machines: Option<Informer<Object<Machine>>>,
}

impl DetailWorkers {
    pub(super) fn new(
        context: &Context,
        flavour: &Tke,
        registry: &Registry,
        clusters: &Informer<Object<Cluster>>,
    ) -> Self {
        let (prober, states) = (&flavour.prober, &flavour.states);
        let (options, informers) = (&flavour.options, &context.informers);
        let machines = || informers.get_from(informers.source(Kind::Custom(MACHINES)));
        let machines = (!options.machine_period.is_zero()).then(machines);
        let (recorder, found) = (context.recorder.clone(), lookup(machines.as_ref()));
        let machines_of = (found, Arc::new(informers.schema_is_ours(&MACHINES)) as _);
        let health =
            MachineHealth::new(machines_of, registry.clone(), recorder, Arc::clone(options));
        let health = Arc::new(health);
        let lists = Arc::new(NodeLists {
            prober: Arc::clone(prober),
            states: Arc::clone(states),
            registry: registry.clone(),
            options: Arc::clone(options),
            machines: Arc::clone(&health),
        });
        let tasks = DetailReconciler {
            prober: Arc::clone(prober),
            states: Arc::clone(states),
            registry: registry.clone(),
            options: Arc::clone(options),
            lists: Arc::clone(&lists),
            metrics: flavour.metrics.clone(),
        };
        let cached = clusters.clone();
        let reconciler = MachineReconciler {
            clusters: Box::new(move |name| cached.get(name)),
            states: Arc::clone(states),
            registry: registry.clone(),
            options: Arc::clone(options),
            machines: health,
            lists,
        };
        Self { tasks, reconciler, machines }
    }

    /// Asks the cache of Machines what it was refused.
    pub(super) fn denied(&self) -> Option<Denied> {
        self.machines.as_ref().map(denied)
    }

    /// Until the run stops.
    pub(super) async fn run(
        self,
        context: &Context,
        tasks: &WorkQueue<DetailTask>,
        machines: &WorkQueue<Arc<str>>,
        clusters: &Informer<Object<Cluster>>,
    ) -> Result<(), Failure> {
        let concurrency = self.tasks.options.summary_concurrency;
        let gathering = Arc::new(Reading::new(self.tasks, &context.stop));
        let gather = context
            .run(tasks, gathering)
            .workers(concurrency)
            .item_limit(TASK_LIMIT)
            .until_stopped();
        let look = follow(context, clusters, self.machines, machines, self.reconciler);
        try_join!(gather, look)?;
        Ok(())
    }
}
