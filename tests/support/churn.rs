//! Nodes that come and go.

use std::collections::VecDeque;
use std::time::Duration;

use kube::Client;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::nodes::{NewNode, names};
use crate::{Vms, create_nodes, delete_nodes, mk_node};

const BEAT: Duration = Duration::from_millis(250);
/// Fewer than go at a beat, so that names are used again within milliseconds.
const SPARE_NAMES: usize = 10;

/// Number of Nodes that are replaced at each beat.
#[derive(Debug, Clone, Copy)]
pub struct Going {
    /// The oldest, which have a block.
    pub old: usize,
    /// The youngest, which are being given theirs.
    pub young: usize,
}

/// A crowd of Nodes that keeps its size.
pub struct Churn {
    client: Client,
    going: Going,
    /// The VMs of the Nodes, if they have VMs.
    vms: Option<Vms>,
    /// Oldest first.
    alive: VecDeque<String>,
    /// Names without a Node, the one longest unused first.
    free: VecDeque<String>,
}

impl Churn {
    /// Makes so many Nodes.
    pub async fn begin(client: &Client, size: usize, going: Going, vms: Option<Vms>) -> Self {
        let (client, alive) = (client.clone(), VecDeque::new());
        let free = names("n", size + SPARE_NAMES).collect();
        let mut churn = Self { client, going, vms, alive, free };
        churn.create(size).await;
        churn
    }

    /// Deletes and creates until `calm`; the names of the Nodes that are left.
    pub async fn run(mut self, calm: CancellationToken) -> Vec<String> {
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while calm.run_until_cancelled(beat.tick()).await.is_some() {
            let young = self.alive.split_off(self.alive.len() - self.going.young);
            let going: Vec<_> = self.alive.drain(..self.going.old).chain(young).collect();
            let count = going.len();
            delete_nodes(&self.client, going.iter().cloned()).await;
            self.free.extend(going);
            self.create(count).await;
        }
        self.alive.into()
    }

    fn node(&self, name: &str) -> NewNode {
        self.vms.as_ref().map_or_else(|| mk_node(name), |vms| vms.node(name))
    }

    async fn create(&mut self, count: usize) {
        let coming: Vec<_> = self.free.drain(..count).collect();
        let nodes: Vec<_> = coming.iter().map(|name| self.node(name)).collect();
        create_nodes(&self.client, nodes).await;
        self.alive.extend(coming);
    }
}
