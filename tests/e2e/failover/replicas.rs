//! Two processes of the product, each behind a proxy of its own, so that every PATCH has a sender.

use std::array::IntoIter;
use std::collections::HashMap;
use std::iter::Cycle;

use futures::future::select_all;
use tests::control_plane::MANAGER_USER;
use tests::fault_proxy::NodePatch;
use tests::{Allocator, Cluster, FaultProxy, PATIENCE, Process, Vms, Wire, eventually};

/// The way in which a leader ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// SIGKILL: its lease has to expire.
    Kill,
    /// SIGTERM: it gives the lease back.
    Terminate,
}

/// The running ones and what is left of those that ended.
pub(crate) struct Replicas<'a> {
    cluster: &'a Cluster,
    allocator: Allocator,
    vms: Option<Vms>,
    args: &'a str,
    /// Encodings of the next processes, in turn.
    wires: Cycle<IntoIter<Wire, 3>>,
    running: Vec<Replica>,
    ended: Vec<FaultProxy>,
}

struct Replica {
    manager: Process,
    proxy: FaultProxy,
}

impl<'a> Replicas<'a> {
    pub(crate) async fn start(
        cluster: &'a Cluster,
        allocator: Allocator,
        vms: Option<Vms>,
        args: &'a str,
    ) -> Self {
        let mut wires = Wire::ALL.into_iter().cycle();
        let first = wires.by_ref().take(2).collect::<Vec<_>>();
        let (running, ended) = (Vec::new(), Vec::new());
        let mut replicas = Self { cluster, allocator, vms, args, wires, running, ended };
        for wire in first {
            let replica = replicas.replica(wire).await;
            replicas.running.push(replica);
        }
        replicas
    }

    async fn replica(&self, wire: Wire) -> Replica {
        let proxy = FaultProxy::start_with(wire, self.cluster, MANAGER_USER, &[]).await;
        let launch = Process::with_kubeconfig(proxy.kubeconfig())
            .args(["--allocate-node-cidrs=true", "--use-service-account-credentials=true"])
            .args(["--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=5s"])
            .args(["--leader-elect-retry-period=500ms", self.allocator.flag()])
            .args(self.args.split_whitespace());
        let launch = match &self.vms {
            Some(vms) => vms.equip(launch, self.args),
            None => launch,
        };
        Replica { manager: launch.start(), proxy }
    }

    /// Waits until one of them leads, and says which.
    pub(crate) async fn leader(&self) -> usize {
        let leads = self.running.iter().map(|replica| {
            Box::pin(async { replica.manager.line("Successfully acquired lease").await })
        });
        select_all(leads).await.1
    }

    /// Waits until a leader has assigned a block, or has ended by itself.
    pub(crate) async fn until_assigned(&self, leader: usize) {
        let Replica { manager, proxy } = &self.running[leader];
        let done = |patch: &NodePatch| patch.upstream_status == Some(200);
        eventually("the leader has assigned a block", || {
            proxy.node_patches().iter().any(done) || !manager.is_running()
        })
        .await;
    }

    /// Ends a leader and starts a new process in its place; how many Nodes it has assigned.
    pub(crate) async fn end(&mut self, leader: usize, how: End) -> usize {
        let Replica { manager, proxy } = &self.running[leader];
        let by_itself = !manager.is_running();
        let lost = manager.has_said("leaderelection lost") && proxy.lease_was_late();
        assert!(lost || !by_itself, "the leader has ended by itself");
        match how {
            End::Kill => manager.kill(),
            End::Terminate => manager.terminate(),
        }
        let status = manager.exit(PATIENCE).await;
        if matches!(how, End::Terminate) && !by_itself {
            assert!(status.success(), "a requested stop ends with 0, not {status}");
        }
        let wire = self.wires.next().expect("it cycles");
        let next = self.replica(wire).await;
        let Replica { proxy, .. } = std::mem::replace(&mut self.running[leader], next);
        let patches = proxy.node_patches();
        self.ended.push(proxy);
        patches.iter().filter(|patch| patch.upstream_status == Some(200)).count()
    }

    /// Waits until the pool that this leader sees is used no more than that, and all is settled.
    pub(crate) async fn until_back_at(&self, leader: usize, share: f64) {
        let manager = &self.running[leader].manager;
        if self.vms.is_none() {
            let usage = self.allocator.metric("usage_cidrs");
            manager.until_metric(&usage, &[], |now| (now - share).abs() < 1e-6).await;
        }
        for metric in ["node_ipam_pending_nodes", "node_ipam_conflicts"] {
            manager.until_metric(metric, &[], |now| now == 0.0).await;
        }
        assert!(manager.is_running());
    }

    /// Every PATCH of every process, in order of arrival at each. Fails if one process has sent
    /// one Node two different blocks.
    pub(crate) fn node_patches(&self) -> Vec<NodePatch> {
        let proxies = self.running.iter().map(|replica| &replica.proxy).chain(&self.ended);
        proxies.flat_map(|proxy| same_block_each_time(proxy.node_patches())).collect()
    }
}

fn same_block_each_time(patches: Vec<NodePatch>) -> Vec<NodePatch> {
    let mut first = HashMap::new();
    for patch in &patches {
        let cidrs = first.entry(&patch.uid).or_insert(&patch.pod_cidrs);
        assert_eq!(*cidrs, &patch.pod_cidrs, "node {} was sent both", patch.node);
    }
    patches
}
