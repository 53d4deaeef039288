//! One run in which replicas whose leader probes all members are replaced, one by one, by
//! replicas that share them, and the other way round, as a Deployment does when
//! `--cluster-health-shards` changes.

use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio::time::sleep;

use crate::options::Options;
use crate::secrets::Secrets;
use crate::sharing::{self, Report};

/// Until a leader that had no lease for want of a namespace has one: it tries every ten seconds.
const SEEN_WITHIN: Duration = Duration::from_secs(15);
/// How long a new replica runs before the old one is stopped, and after that.
const OVERLAPPING: Duration = Duration::from_secs(6);
const STOPS_WITHIN: Duration = Duration::from_secs(60);

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Report> {
    let (fleet, management) = sharing::prepare(options).await?;
    let launch = |shards| sharing::launch(&management, &fleet, shards);
    let mut replicas: Vec<_> = (0..options.shards).map(|_| launch(1)).collect();
    sharing::settle(&fleet, &management, options).await?;
    fleet.ledger.begin();
    let (begin, turns) = (Instant::now(), management.turns());
    management.make_room_for_leases()?;
    sleep(SEEN_WITHIN).await;
    let (mut replaced, mut secrets) = (0, Secrets::new());
    for shards in [options.shards, 1].repeat(usize::try_from(options.rolls)?) {
        for old in &mut replicas {
            eprintln!("{:.0?}: a replica with {shards} shards comes", begin.elapsed());
            let new = launch(shards);
            sleep(OVERLAPPING).await;
            let old = std::mem::replace(old, new);
            old.terminate();
            let status = old.exit(STOPS_WITHIN).await;
            secrets.look_at(&old);
            ensure!(status.success(), "a replica that was stopped ended with {status}");
            sleep(OVERLAPPING).await;
            replaced += 1;
        }
    }
    let turns = management.turns() - turns;
    let report = Report::of(options, &fleet, &management, (replaced, turns, begin.elapsed()));
    Ok(report.with_secrets(secrets.found(&management, &replicas).await?))
}
