//! Two replicas under all faults at once: what a pair of controller managers makes of a cluster in
//! which nothing works reliably, the product's and, in the same scene with the same seed,
//! kube-controller-manager's.
//!
//! For a while Nodes come and go, leaders are killed and asked to stop, and every proxy draws faults
//! from its seed. Then it is calm, and what is left is counted. Called by `scripts/soak` and by a
//! short test of the suite `failover`.
//!
//! | module | part |
//! |---|---|
//! | `faults` | what goes wrong between a replica and the API server |
//! | `pair` | the two replicas: ended, restarted, their terms of leadership |
//! | `scene` | what is played, and by whom |
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
use crate::{ControlPlane, Observer, delete_nodes, history, mk_node};
use pair::Pair;

/// Blocks of one address, more than half as many again as there are Nodes; the Services take a
/// quarter and a foreign Node some, so that what is in use is known to the address.
const POOL: &str = "--cluster-cidr=10.0.0.0/21 --node-cidr-mask-size=32 \
     --service-cluster-ip-range=10.0.0.0/23";
const FOREIGN: (&str, &str) = ("foreign", "10.0.2.0/26");
const BASELINE: f64 = 0.25;
const BLOCKS: f64 = 2_048.0;
/// Each lives some ten seconds: a few terms of leadership.
const ALIVE: usize = 400;
const GOING: Going = Going { old: 8, young: 2 };
/// For what is to be settled after the faults, on a busy machine.
const LONG: Duration = Duration::from_secs(90);

/// Plays a scene on a control plane without Nodes, which it leaves without Nodes.
pub async fn play(scene: &Scene, contender: &Contender, plane: &ControlPlane) -> Report {
    let client = plane.client().await;
    let nodes = Observer::start(&client).await;
    mk_node(FOREIGN.0).cidr(FOREIGN.1).create(&client).await;
    let mut pair = Pair::start(plane, contender, POOL, scene).await;
    // Until there is one, nobody can serve anybody: that time is no contender's merit.
    pair.first_leader().await;
    let churn = Churn::begin(&client, ALIVE, GOING).await;
    let calm = CancellationToken::new();
    let churning = tokio::spawn(churn.run(calm.clone()));

    pair.endure(scene.length).await;
    calm.cancel();
    let mut left = churning.await.expect("Nodes can be made and deleted");
    let until = Instant::now();
    pair.calm();
    left.push(FOREIGN.0.to_owned());
    let all_served = nodes.within(LONG, |now| now.assigned() == left.len()).await;
    let forgotten = left.len() - all_served.assigned();
    delete_nodes(&client, left).await;
    nodes.until_within(LONG, "all Nodes are gone", |now| now.is_empty()).await;
    let leaked = pair.leaked(BASELINE, BLOCKS).await;

    let history = nodes.history();
    let (patches, terms) = pair.end().await;
    let faulty: Vec<_> = history.iter().filter(|seen| seen.at <= until).collect();
    Report {
        seed: scene.seed,
        contender: match contender {
            Contender::Product => "product",
            Contender::Stock(_) => "stock",
        },
        nodes: uids(faulty.iter().copied()),
        served: uids(faulty.iter().copied().filter(|seen| !seen.pod_cidrs.is_empty())),
        doubled: history::shared(&history, &[]),
        risky: match contender {
            Contender::Product => history::patches_that_share(&patches, &history, &[]),
            // Its PATCHes do not name the Node that they are meant for.
            Contender::Stock(_) => Vec::new(),
        },
        forgotten,
        leaked,
        terms,
    }
}

fn uids<'a>(seen: impl Iterator<Item = &'a Seen>) -> usize {
    // Without the foreign one, which needs nobody to serve it.
    let ours = seen.filter(|seen| &*seen.name != FOREIGN.0);
    ours.map(|seen| &seen.uid).collect::<HashSet<_>>().len()
}
