//! Runs on the double of the API server, which has more Nodes than an etcd can hold: it makes them as
//! they are read.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::tests::metrics::Metrics;
use ::tests::process;
use ::tests::programs;
use ::tests::temp_dir::TempDir;
use anyhow::Context as _;
use api_server_double::{ApiServer, Fleet, FleetCounts, FleetOptions, Loopback};
use k8s_openapi::ByteString;
use serde_json::json;
use tokio::time::{sleep, sleep_until, timeout};

use crate::api::{Api, JSON};
use crate::blocks;
use crate::cases::{Case, Load, Server};
use crate::contender::{Contender, Identity, Program};
use crate::own_share;
use crate::raw_list;
use crate::report::{self, Line, Run};
use crate::stage;
use crate::turn::{self, Spent};

/// The Lease of the contender.
const LEASE: &str = "infra-controller-manager";

/// What all runs on the double share.
#[derive(Default)]
pub(crate) struct Double {
    product: Option<Program>,
}

/// A double that serves, and the folder of its kubeconfig.
struct Scene {
    fleet: Fleet,
    kubeconfig: PathBuf,
    folder: TempDir,
    _server: Loopback,
}

impl Double {
    /// One contender's turn on a double of its own.
    pub(crate) async fn run(
        &mut self,
        case: &Case,
        contender: Contender,
        number: usize,
    ) -> anyhow::Result<Line> {
        let scene = Scene::set(case).await?;
        let commit = stage::commit();
        let run = Run { case: *case, contender, number, version: report::VERSION, commit: &commit };
        if contender == Contender::Raw {
            return scene.bare_read(&run).await;
        }
        if self.product.is_none() {
            self.product = Some(Program::new(programs::product().to_path_buf())?);
        }
        let program = self.product.as_ref().context("the product was looked for")?;
        scene.measure(&Run { version: &program.version, ..run }, program).await
    }
}

impl Scene {
    async fn set(case: &Case) -> anyhow::Result<Self> {
        let Server::Double { pages, .. } = case.server else {
            anyhow::bail!("{case} is not a case of the double")
        };
        // In a join the first Node shows that the contender is up.
        let nodes = match case.load {
            Load::Existing(nodes) => nodes,
            Load::Join { .. } => 1,
            Load::Takeover(nodes) => nodes + 1,
        };
        let size = case.size;
        let fleet = Fleet::new(FleetOptions { nodes, size, streams_lists: !pages });
        if let Load::Takeover(nodes) = case.load {
            fleet.assign_first(nodes, |place| blocks::block(place).to_string());
            fleet.hold_lease(LEASE);
        }
        let served = fleet.clone();
        let server = ApiServer::new(move |asked| served.answer(asked)).without_record();
        let server = server.listen_with_tls().await;
        let folder = TempDir::new("double")?;
        let kubeconfig = folder.join("kubeconfig");
        write_kubeconfig(&kubeconfig, &server)?;
        Ok(Self { fleet, kubeconfig, folder, _server: server })
    }

    /// Reads the list and throws it away.
    async fn bare_read(&self, run: &Run<'_>) -> anyhow::Result<Line> {
        let api = Api::connect(&self.kubeconfig).await?;
        let start = Instant::now();
        match run.case.server {
            Server::Double { json: true, .. } => raw_list::read_as(&api, JSON).await?,
            _ => raw_list::read(&api).await?,
        }
        let line = report::of_times(run, &[(start, Instant::now())], start, None);
        Ok(Line { nodes: run.case.nodes(), ..line })
    }

    async fn measure(&self, run: &Run<'_>, program: &Program) -> anyhow::Result<Line> {
        let log = self.folder.join("log");
        let (running, spawned) =
            program.start(&self.kubeconfig, Identity::Admin, &run.case, &log)?;
        let outcome = tokio::select! {
            outcome = self.follow(&run.case, spawned, running.port()) => outcome,
            reason = running.ended() => Err(reason),
        };
        let start = match outcome {
            Ok(start) => start,
            Err(error) => anyhow::bail!("{error:#}; its log ends with\n{}", running.log_tail()),
        };
        let usage = turn::cost(running.pid()).await?;
        let own_share = own_share::of(running.port()).await?;
        let had_one = self.fleet.times().len() - self.fleet.counts().borrow().assigned;
        let times = self
            .fleet
            .times()
            .into_iter()
            .skip(had_one)
            .map(|(joined, assigned)| Ok((joined, assigned.context("a Node got no CIDR")?)));
        let times: Vec<_> = times.collect::<anyhow::Result<_>>()?;
        let line = report::of_times(run, &times, start, Some(Spent { usage, own_share }));
        Ok(Line { duplicates: self.fleet.counts().borrow().duplicates, ..line })
    }

    /// Waits until every Node has its CIDR, letting them join where the case says so; returns when
    /// the time began.
    async fn follow(&self, case: &Case, spawned: Instant, port: u16) -> anyhow::Result<Instant> {
        let rate = match case.load {
            Load::Existing(nodes) => {
                self.until_assigned(case, nodes).await?;
                return Ok(spawned);
            }
            Load::Takeover(nodes) => {
                until_cached(nodes + 1, port).await?;
                self.fleet.give_lease_back();
                self.until_assigned(case, 1).await?;
                return self.fleet.lease_won().context("the contender did not take the Lease");
            }
            Load::Join { rate, .. } => rate,
        };
        self.until_assigned(case, 1).await?;
        let start = Instant::now();
        for number in 0..u32::try_from(case.nodes())? {
            sleep_until((start + Duration::from_secs(1) * number / rate).into()).await;
            self.fleet.join(1);
        }
        self.until_assigned(case, case.nodes() + 1).await?;
        Ok(start)
    }

    async fn until_assigned(&self, case: &Case, nodes: usize) -> anyhow::Result<()> {
        let (mut counts, limit) = (self.fleet.counts(), case.limit());
        let reached = counts.wait_for(|counts: &FleetCounts| counts.assigned == nodes);
        match timeout(limit, reached).await {
            Ok(reached) => drop(reached.context("the double ended")?),
            Err(_) => anyhow::bail!("not done after {limit:?}: {:?}", self.fleet.counts().borrow()),
        }
        Ok(())
    }
}

/// Waits until the cache of the contender has so many Nodes.
async fn until_cached(nodes: usize, port: u16) -> anyhow::Result<()> {
    for _ in 0..600 {
        // It does not listen at once.
        if let Ok((200, page)) = process::get(port, "/metrics").await {
            let page = Metrics::parse(&page);
            #[allow(clippy::cast_precision_loss, reason = "there are not so many Nodes")]
            if page
                .samples("icm_informer_objects")
                .any(|(_, objects)| (objects - nodes as f64).abs() < 0.5)
            {
                return Ok(());
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("the standby does not cache {nodes} Nodes within a minute")
}

fn write_kubeconfig(path: &Path, server: &Loopback) -> anyhow::Result<()> {
    let authority = ByteString(server.certificate.clone().into_bytes());
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "double",
        "clusters": [{"name": "double", "cluster": {
            "server": server.url, "certificate-authority-data": authority,
        }}],
        "users": [{"name": "double", "user": {"token": "any"}}],
        "contexts": [{"name": "double", "context": {"cluster": "double", "user": "double"}}],
    });
    std::fs::write(path, kubeconfig.to_string())
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_bare_read_reads_the_whole_list_in_both_encodings() {
        for text in ["double-existing-300-50kb", "double-existing-300-50kb-json"] {
            let case: Case = text.parse().unwrap();
            let scene = Scene::set(&case).await.unwrap();
            let (contender, number) = (Contender::Raw, 1);
            let run = Run { case, contender, number, version: "v", commit: "c" };
            let line =
                timeout(Duration::from_secs(60), scene.bare_read(&run)).await.unwrap().unwrap();
            assert_eq!((line.nodes, line.duplicates), (300, 0));
            assert!(line.seconds_to_first > 0.0);
        }
    }
}
