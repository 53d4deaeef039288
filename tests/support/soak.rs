//! Two replicas under all faults at once: what a pair of controller managers makes of a cluster in
//! which nothing works reliably, the product's and, in the same scene with the same seed,
//! kube-controller-manager's.
//!
//! For a while Nodes come and go, leaders are killed and asked to stop, and every proxy draws
//! faults from its seed. Then it is calm, and what is left is counted. Called by `scripts/soak` and
//! by a short test of the suite `failover`.
//!
//! | module | part |
//! |---|---|
//! | `faults` | what goes wrong between a replica and the API server |
//! | `pair` | the two replicas: ended, restarted, their terms of leadership |
//! | `scene` | the plan of a scene, and its contender |
//! | `report` | what was counted |

mod faults;
mod pair;
mod report;
mod scene;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

pub use report::{Report, Term};
pub use scene::{Contender, Scene};

use crate::churn::{Churn, Going};
use crate::observer::Seen;
use crate::{Allocator, ControlPlane, Observer, Vms, delete_nodes, history, mk_node};
use pair::Pair;

/// Small blocks, more than half as many again as there are Nodes; the Services take a quarter and a
/// foreign Node some, so that what is in use is known to the block.
const POOL: &str = "--cluster-cidr=10.0.0.0/17 --node-cidr-mask-size=28 \
     --service-cluster-ip-range=10.0.0.0/19";
/// Range of the alias ranges of VMs, which the cloud reuses.
const OF_CLOUD: &str = "--cluster-cidr=10.1.0.0/18 --node-cidr-mask-size=28";
const FOREIGN: (&str, &str) = ("foreign", "10.0.32.0/22");
const BASELINE: f64 = 0.25;
const BLOCKS: f64 = 2_048.0;
/// Number of Nodes that are alive. Each lives about ten seconds: a few terms of leadership.
const ALIVE: usize = 400;
const GOING: Going = Going { old: 8, young: 2 };
/// Time for all Nodes to be served after the faults, on a busy machine.
const LONG: Duration = Duration::from_secs(180);

/// Interval of the progress reports of a scene.
const PROGRESS: Duration = Duration::from_secs(10);

/// Plays a scene on a control plane without Nodes, which it leaves without Nodes. Tells its
/// progress on standard error.
pub async fn play(scene: &Scene, contender: &Contender, plane: &ControlPlane) -> Report {
    let tell = |text: String| eprintln!("seed {}, {}: {text}", scene.seed, contender.name());
    tell(format!("{ALIVE} Nodes and two replicas come"));
    scene.allocator.prepare(plane).await;
    let client = plane.client().await;
    let nodes = Observer::start(&client).await;
    mk_node(FOREIGN.0).cidr(FOREIGN.1).create(&client).await;
    let (pool, vms) = match scene.allocator {
        Allocator::Cloud => (OF_CLOUD, Some(Vms::start().await)),
        _ => (POOL, None),
    };
    let mut pair = Pair::start(plane, contender, (pool, vms.clone()), scene).await;
    // Without a leader no Node can be served: this time does not count for a contender.
    pair.first_leader().await;
    let churn = Churn::begin(&client, ALIVE, GOING, vms).await;
    let calm = CancellationToken::new();
    let churning = tokio::spawn(churn.run(calm.clone()));

    let begun = Instant::now();
    while let Some(left) = scene.length.checked_sub(begun.elapsed()) {
        pair.endure(left.min(PROGRESS)).await;
        let Counts { lived, served } = Counts::of(&nodes.history());
        let (time, processes) = (begun.elapsed().as_secs(), pair.started());
        tell(format!("{time} s: {served} of {lived} Nodes served, {processes} processes so far"));
    }
    calm.cancel();
    let mut left = churning.await.expect("Nodes can be made and deleted");
    let until = Instant::now();
    pair.calm();
    left.push(FOREIGN.0.to_owned());
    tell(format!("calm; the {} Nodes that are left have to be served, then go", left.len()));
    let all_served = nodes.within(LONG, |now| now.assigned() == left.len()).await;
    let forgotten = left.len() - all_served.assigned();
    delete_nodes(&client, left).await;
    nodes.until_within(LONG, "all Nodes are gone", |now| now.is_empty()).await;
    let leaked = pair.leaked(BASELINE, BLOCKS).await;

    let mut history = nodes.history();
    let (patches, terms, bad_ends) = pair.end().await;
    let doubled = history::shared(&history, &[]);
    let risky = match contender {
        Contender::Product => history::patches_that_share(&patches, &history, &[]),
        // Its PATCHes do not name the Node that they are meant for.
        Contender::Stock(_) => Vec::new(),
    };
    history.retain(|seen| seen.at <= until);
    let Counts { lived, served } = Counts::of(&history);
    let (seed, contender) = (scene.seed, contender.name());
    Report {
        seed,
        contender,
        nodes: lived,
        served,
        doubled,
        risky,
        forgotten,
        leaked,
        bad_ends,
        terms,
    }
}

/// Nodes whose life is over.
struct Counts {
    lived: usize,
    /// Number of Nodes that got a block.
    served: usize,
}

impl Counts {
    fn of(history: &[Seen]) -> Self {
        let uids = |wanted: fn(&&Seen) -> bool| -> HashSet<_> {
            history.iter().filter(wanted).map(|seen| &seen.uid).collect()
        };
        let over = uids(|seen| seen.deleted);
        let with_block = uids(|seen| !seen.pod_cidrs.is_empty());
        Self { lived: over.len(), served: over.intersection(&with_block).count() }
    }
}
