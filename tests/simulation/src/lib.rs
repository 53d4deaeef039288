//! [`run`]: replicas of the real program on API servers in memory, with faults, in virtual time and from one
//! seed. Only API servers, clocks and network are simulated; all other code is that of the program.
//!
//! | file | holds |
//! |---|---|
//! | `store.rs` | [`store::Store`]: the objects in all their versions |
//! | `call.rs`, `api.rs`, `writes.rs` | [`api::answer`]: requests, and the answers of an API server |
//! | `plan.rs` | [`Plan`]: what happens, by number |
//! | `world.rs`, `claims.rs` | the state of a run, and what must hold after each step |
//! | `wire.rs`, `replica.rs` | the way of requests; the processes |
//! | `life.rs` | edits and failures, and the end of a run |
//! | `sieve.rs` | a scenario that is perturbed at every point |
//! | `members.rs` | member clusters, and what their objects may say of them |
//! | `clusters.rs` | Clusters of Cluster API, the provider of their infrastructure, and what may be written of both |
//! | `cloud.rs`, `aws_cluster.rs` | AWS and the calls to it; an AWSCluster and its Cluster, and what must be there at rest |
//! | `shrink.rs` | [`shrink`]: fewer faults, Nodes and seconds for the same violation |

pub mod api;
mod aws_cluster;
pub mod call;
mod claims;
mod cloud;
mod clusters;
mod life;
mod members;
mod plan;
mod replica;
mod shrink;
pub mod sieve;
pub mod store;
mod wire;
mod world;
mod writes;

use std::collections::BTreeMap;

use tokio::runtime::Builder;

pub use plan::{Moment, Number, Plan, Script, number_of};
pub use shrink::shrink;
use sieve::Record;
use world::World;

/// The end of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The first claim that was violated.
    pub violation: Option<String>,
    /// The faults and edits that happened.
    pub happened: Vec<Number>,
    /// How often each kind of them happened.
    pub reach: BTreeMap<&'static str, u64>,
    /// How often the state was judged.
    pub steps: u64,
    /// The lines of the trace, if the plan keeps them.
    pub trace: Vec<String>,
    /// What a script did.
    pub record: Record,
}

/// Runs a plan.
///
/// # Errors
/// There is no runtime.
pub fn run(plan: &Plan) -> std::io::Result<Report> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    resilience::seed_draws(Some(plan.seed));
    let report = runtime.block_on(async {
        let world = World::new(plan);
        members::connect(Some(&world));
        cloud::connect(Some(&world));
        tokio::select! {
            biased;
            () = world.violated() => {}
            () = life::live(&world) => {}
        }
        world.with(|state| Report {
            violation: state.violation.clone(),
            happened: std::mem::take(&mut state.happened),
            reach: state.reach_with_terms(),
            steps: state.steps,
            trace: std::mem::take(&mut state.trace),
            record: std::mem::take(&mut state.record),
        })
    });
    drop(runtime);
    members::connect(None);
    cloud::connect(None);
    resilience::seed_draws(None);
    Ok(report)
}
