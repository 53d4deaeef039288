//! What happens while the clock runs: a manager's turn and the raw loop's.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::api::Api;
use crate::cases::{Case, Load};
use crate::clock::Clock;
use crate::contender::{Identity, Program};
use crate::nodes;
use crate::own_share::{self, OwnShare};
use crate::raw_list;
use crate::raw_loop;
use tests::usage::{self, Usage};

/// How long the clock may take to see all Nodes that were created.
const SIGHT_LIMIT: Duration = Duration::from_secs(60);
/// How long a manager may stay busy after its last assignment before its cost is read.
const QUIET_LIMIT: Duration = Duration::from_secs(10);

/// What a manager cost, and what its metrics say.
pub(crate) struct Spent {
    /// CPU time and memory.
    pub(crate) usage: Usage,
    /// The product's own part of the waits of Nodes.
    pub(crate) own_share: Option<OwnShare>,
}

/// One turn on Nodes of its own.
pub(crate) struct Player<'a> {
    /// The load.
    pub(crate) case: &'a Case,
    /// The Nodes that get a CIDR.
    pub(crate) names: &'a [String],
    /// Makes Nodes.
    pub(crate) api: &'a Api,
    /// Kubeconfig of the user that the contender works as.
    pub(crate) kubeconfig: &'a Path,
}

/// Creates the Nodes that are there before the contender, and waits until the clock has seen them.
pub(crate) async fn prepare(
    case: &Case,
    names: &[String],
    api: &Api,
    clock: &mut Clock,
) -> anyhow::Result<()> {
    let Load::Existing(nodes) = case.load else { return Ok(()) };
    nodes::create_all(api, names, case.size, |number| case.labels(number)).await?;
    clock
        .until(SIGHT_LIMIT, |counts| counts.added == nodes)
        .await
        .context("the clock does not see the new Nodes")
}

/// The Node that shows that a manager is up before the others join.
pub(crate) fn warm_up_name(names: &[String]) -> String {
    format!("{}-warm-up", names.first().map_or("bench", String::as_str))
}

impl Player<'_> {
    /// Runs a controller manager; returns when its time began, and what it cost.
    pub(crate) async fn manager(
        &self,
        program: &Program,
        identity: Identity,
        log: &Path,
        clock: &mut Clock,
    ) -> anyhow::Result<(Instant, Option<Spent>)> {
        let (running, spawned) = program.start(self.kubeconfig, identity, self.case, log)?;
        let outcome = tokio::select! {
            outcome = self.follow(spawned, clock) => outcome,
            reason = running.ended() => Err(reason),
        };
        let start = match outcome {
            Ok(start) => start,
            Err(error) => anyhow::bail!("{error:#}; its log ends with\n{}", running.log_tail()),
        };
        let usage = cost(running.pid()).await?;
        let own_share = own_share::of(running.port()).await?;
        Ok((start, Some(Spent { usage, own_share })))
    }

    /// Lists the Nodes and sends the same PATCHes as a bare loop; its time begins with the list.
    pub(crate) async fn raw(
        &self,
        identity: Identity,
        clock: &mut Clock,
    ) -> anyhow::Result<(Instant, Option<Spent>)> {
        let api = raw_loop::connect(self.kubeconfig, identity).await?;
        let patches = clock.read(|ledger| {
            raw_loop::patches(ledger.nodes().map(|(uid, seen)| (uid, seen.name.as_str())))
        })?;
        let start = Instant::now();
        raw_list::read(&api).await?;
        raw_loop::send(&api, patches).await?;
        self.until_assigned(self.names.len(), clock).await?;
        Ok((start, None))
    }

    /// Waits until every Node has its CIDR, letting them join where the case says so; returns when
    /// the time began.
    async fn follow(&self, spawned: Instant, clock: &mut Clock) -> anyhow::Result<Instant> {
        let Load::Join { rate, .. } = self.case.load else {
            self.until_assigned(self.names.len(), clock).await?;
            return Ok(spawned);
        };
        nodes::create(self.api, &warm_up_name(self.names), self.case.size, &[]).await?;
        self.until_assigned(1, clock).await?;
        let start = Instant::now();
        nodes::create_on_schedule(self.api, self.names, self.case.size, rate).await?;
        self.until_assigned(self.names.len() + 1, clock).await?;
        Ok(start)
    }

    async fn until_assigned(&self, nodes: usize, clock: &mut Clock) -> anyhow::Result<()> {
        clock.until(self.case.limit(), |counts| counts.assigned == nodes).await
    }
}

/// CPU and memory that the manager used until its last own writes came back by its watch.
pub(crate) async fn cost(pid: u32) -> anyhow::Result<Usage> {
    if !usage::quiet(&[pid], QUIET_LIMIT).await {
        eprintln!("the contender is still busy {QUIET_LIMIT:?} after its last assignment");
    }
    usage::of(pid)
}
