//! One run of several replicas that share the members: they are frozen, stopped and killed in turn,
//! and come back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::json;
use tests::{Process, programs};
use tokio::time::sleep;

use crate::fleet::Fleet;
use crate::management::Management;
use crate::options::Options;
use crate::secrets::Secrets;

/// How long a member may go without a probe: a period with its jitter, a lease, and the time to
/// notice. It is the time after which the product calls a cluster unknown, when it has shards.
const UNPROBED: Duration = Duration::from_secs(49);
const SETTLES_WITHIN: Duration = Duration::from_secs(120);
const TICK: Duration = Duration::from_millis(200);

/// What is done to one replica after the other, and how long that is watched.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// SIGSTOP for longer than its lease lasts, then SIGCONT.
    Freeze,
    /// SIGTERM, and another one at once.
    Stop,
    /// SIGKILL, and another one at once.
    Kill,
}

/// The blows, in turn. A short run has only the first two.
const BLOWS: [(Blow, Duration); 3] = [
    (Blow::Stop, Duration::from_secs(5)),
    (Blow::Kill, Duration::from_secs(48)),
    (Blow::Freeze, Duration::from_secs(38)),
];
/// Longer than a lease lasts, and than others take to see that it has run out.
const FROZEN: Duration = Duration::from_secs(34);

/// What was measured.
pub(crate) struct Report {
    members: u32,
    shards: u32,
    blows: u32,
    overlaps: u32,
    unprobed_max: Duration,
    moves: u32,
    moves_max: u32,
    turns: u64,
    ready: usize,
    length: Duration,
    secrets_shown_in: Vec<String>,
}

/// The members and their objects, which no replica probes yet.
pub(crate) async fn prepare(options: &Options) -> anyhow::Result<(Arc<Fleet>, Management)> {
    programs::product();
    let fleet = Fleet::start(options).await?;
    let management = Management::start().await?;
    eprintln!("making {} members", options.members);
    management.populate(&fleet, options.members).await?;
    management.watch();
    let probed = Arc::clone(&fleet);
    tokio::spawn(async move { probed.probers.follow().await });
    Ok((fleet, management))
}

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Report> {
    let (fleet, management) = prepare(options).await?;
    management.make_room_for_leases()?;
    let start = || launch(&management, &fleet, options.shards);
    let mut replicas: Vec<_> = (0..options.shards).map(|_| start()).collect();
    settle(&fleet, &management, options).await?;
    eprintln!("measuring for {:?}", options.length);
    fleet.ledger.begin();
    let (begin, turns) = (Instant::now(), management.turns());
    let end = begin + options.length;
    let (mut blows, mut secrets) = (0, Secrets::new());
    while Instant::now() < end {
        let (blow, watched) = BLOWS[blows % BLOWS.len()];
        let struck = blows % replicas.len();
        eprintln!("{:.0?}: {blow:?} of replica {struck}", begin.elapsed());
        let next = (Instant::now() + watched).min(end);
        secrets.look_at(&replicas[struck]);
        strike(&mut replicas[struck], blow, start).await;
        blows += 1;
        while Instant::now() < next {
            sleep(TICK).await;
        }
    }
    let turns = management.turns() - turns;
    let counted = (u32::try_from(blows)?, turns, begin.elapsed());
    let report = Report::of(options, &fleet, &management, counted);
    Ok(report.with_secrets(secrets.found(&management, &replicas).await?))
}

/// Waits until every member was probed and its object is ready.
pub(crate) async fn settle(
    fleet: &Fleet,
    management: &Management,
    options: &Options,
) -> anyhow::Result<()> {
    let (begin, all) = (Instant::now(), options.members as usize);
    while fleet.ledger.reached(options.members) < all || management.ready() < all {
        if begin.elapsed() > SETTLES_WITHIN {
            bail!("only {} of {all} members are ready", management.ready());
        }
        sleep(TICK).await;
    }
    eprintln!("all members were ready within {:?} of the start", begin.elapsed());
    Ok(())
}

async fn strike(replica: &mut Process, blow: Blow, start: impl FnOnce() -> Process) {
    match blow {
        Blow::Freeze => {
            replica.pause();
            sleep(FROZEN).await;
            replica.resume();
        }
        Blow::Stop => {
            replica.terminate();
            replica.exit(Duration::from_secs(60)).await;
            *replica = start();
        }
        Blow::Kill => {
            replica.kill();
            *replica = start();
        }
    }
}

/// A replica of the product; with one shard the leader probes all.
pub(crate) fn launch(management: &Management, fleet: &Fleet, shards: u32) -> Process {
    let replica = Process::with_kubeconfig(&management.plane.admin_kubeconfig())
        .args(["--controllers=cluster-health".to_owned()])
        .args([format!("--cluster-health-shards={shards}")])
        .start();
    fleet.probers.add(replica.pid());
    replica
}

impl Report {
    /// After so many blows, with so many turns since they began, which took so long.
    pub(crate) fn of(
        options: &Options,
        fleet: &Fleet,
        management: &Management,
        (blows, turns, length): (u32, u64, Duration),
    ) -> Self {
        let (moves, moves_max) = fleet.ledger.moves();
        Self {
            members: options.members,
            shards: options.shards,
            blows,
            overlaps: fleet.ledger.overlaps(),
            unprobed_max: fleet.ledger.waits(0..options.members).pop().unwrap_or_default(),
            moves,
            moves_max,
            turns,
            ready: management.ready(),
            length,
            secrets_shown_in: Vec::new(),
        }
    }

    /// The token was found in these places.
    pub(crate) fn with_secrets(self, secrets_shown_in: Vec<String>) -> Self {
        Self { secrets_shown_in, ..self }
    }

    pub(crate) fn json(&self) -> String {
        let seconds = |time: Duration| (time.as_secs_f64() * 1000.0).round() / 1000.0;
        json!({
            "members": self.members,
            "shards": self.shards,
            "length_seconds": seconds(self.length),
            "blows": self.blows,
            "probed_by_two_at_once": self.overlaps,
            "unprobed_max_seconds": seconds(self.unprobed_max),
            "moves": self.moves,
            "moves_of_one_max": self.moves_max,
            "transitions": self.turns,
            "ready": self.ready,
            "secrets_shown_in": self.secrets_shown_in,
        })
        .to_string()
    }

    /// The targets that were missed, as text.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.overlaps > 0 {
            faults.push(format!("{} probes began while another was under way", self.overlaps));
        }
        if self.unprobed_max > UNPROBED {
            faults.push(format!("a member was not probed for {:?}", self.unprobed_max));
        }
        // Away and back.
        if self.moves_max > 2 * self.blows {
            faults.push(format!("a member moved {} times in {} blows", self.moves_max, self.blows));
        }
        if !self.secrets_shown_in.is_empty() {
            faults.push(format!("a token is shown in {:?}", self.secrets_shown_in));
        }
        if self.moves == 0 {
            faults.push("no member ever moved".to_owned());
        }
        if self.turns > 0 || self.ready < self.members as usize {
            let (turns, ready) = (self.turns, self.ready);
            faults.push(format!("{turns} transitions were published, {ready} members are ready"));
        }
        faults
    }
}
