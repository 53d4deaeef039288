//! What all runs share: the control plane, the programs, and the order of one run.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use api_server_double::NodeSize;
use http::Method;
use tests::temp_dir::TempDir;
use tests::{Allocator, ControlPlane, ControlPlaneOptions, programs};

use crate::api::{Api, JSON};
use crate::cases::{Case, Pools};
use crate::clock::Clock;
use crate::cluster_cidrs::ClusterCidrs;
use crate::contender::{Contender, Identity, Program};
use crate::nodes;
use crate::options::Options;
use crate::report::{self, Line, Run};
use crate::turn::{self, Player};
use tests::usage;

/// How long the server may stay busy with what it was given before.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);

/// The control plane and the programs of one invocation.
pub(crate) struct Stage {
    api: Api,
    /// Kubeconfig for the clock and for creating Nodes: a certificate in `system:masters`, which
    /// neither RBAC nor fairness slows down.
    admin: PathBuf,
    /// Kubeconfig of the contenders.
    kubeconfig: PathBuf,
    identity: Identity,
    product: Option<Program>,
    stock: Option<Program>,
    commit: String,
    runs_so_far: usize,
    control_plane: ControlPlane,
    /// Logs of the contenders. After a failure the error contains the needed part.
    logs: TempDir,
}

impl Stage {
    /// Starts the control plane and finds what the options call for.
    pub(crate) async fn set(options: &Options) -> anyhow::Result<Self> {
        let (mut product, mut stock) = (None, None);
        if options.needs(Contender::Product) {
            product = Some(Program::new(programs::product().to_path_buf())?);
        }
        if options.needs(Contender::Stock) {
            let paths = programs::control_plane_binaries(&["kube-controller-manager"])?;
            stock = paths.into_iter().next().map(Program::new).transpose()?;
        }
        eprintln!("starting etcd and kube-apiserver");
        let control_plane = ControlPlane::start(ControlPlaneOptions::default()).await?;
        let admin = control_plane.admin_kubeconfig();
        let kubeconfig = match options.identity {
            Identity::Admin => admin.clone(),
            Identity::ControllerManager => control_plane.manager_kubeconfig(),
        };
        let stage = Self {
            api: Api::connect(&admin).await?,
            admin,
            kubeconfig,
            identity: options.identity,
            product,
            stock,
            commit: commit(),
            runs_so_far: 0,
            control_plane,
            logs: TempDir::new("bench")?,
        };
        stage.introduce().await?;
        Ok(stage)
    }

    /// Says what the numbers depend on.
    async fn introduce(&self) -> anyhow::Result<()> {
        let name = "bench-size".to_owned();
        let mut sizes = [0; 2];
        for (place, size) in [NodeSize::Registered, NodeSize::Grown].into_iter().enumerate() {
            sizes[place] = nodes::create(&self.api, &name, size, &[]).await?;
            nodes::delete_all(&self.api, std::slice::from_ref(&name)).await?;
        }
        let (cores, [small, large]) = (std::thread::available_parallelism()?, sizes);
        eprintln!(
            "{cores} cores, Nodes of {small} bytes, with -50kb of {large}, {}, {}",
            self.identity, self.commit
        );
        for program in [&self.product, &self.stock].into_iter().flatten() {
            eprintln!("{}", program.version);
        }
        Ok(())
    }

    /// One contender's turn: fresh Nodes, a fresh clock, the measurement, and the Nodes gone again.
    pub(crate) async fn run(
        &mut self,
        case: &Case,
        contender: Contender,
        number: usize,
    ) -> anyhow::Result<Line> {
        self.runs_so_far += 1;
        let prefix = format!("bench-{:03}", self.runs_so_far);
        let mut names: Vec<String> =
            (0..case.nodes()).map(|node| format!("{prefix}-{node:06}")).collect();
        let outcome = self.measure(case, contender, number, &names).await;
        // Also after a failure: these Nodes must not become the next run's existing ones.
        names.push(turn::warm_up_name(&names));
        // The server closes a connection that was idle for a long case.
        self.api = Api::connect(&self.admin).await?;
        nodes::delete_all(&self.api, &names).await?;
        self.settle().await;
        outcome
    }

    async fn measure(
        &self,
        case: &Case,
        contender: Contender,
        number: usize,
        names: &[String],
    ) -> anyhow::Result<Line> {
        let mut clock = Clock::start(&self.admin).await?;
        if let Pools::ClusterCidrs(objects) = case.pools {
            Allocator::MultiCidr.prepare(&self.control_plane).await;
            let path = "/apis/networking.x-k8s.io/v1/clustercidrs";
            for manifest in ClusterCidrs::new(objects).manifests() {
                let body = (JSON, manifest.to_string().into());
                self.api.call(Method::POST, path, Some(body), &[]).await?;
            }
        }
        turn::prepare(case, names, &self.api, &mut clock).await?;
        self.settle().await;
        let log = self.logs.join(format!("{case}-{contender}-{number}.log"));
        let player = Player { case, names, api: &self.api, kubeconfig: &self.kubeconfig };
        let (start, spent) = match self.program(contender)? {
            Some(program) => player.manager(program, self.identity, &log, &mut clock).await?,
            None => player.raw(self.identity, &mut clock).await?,
        };
        let run = Run {
            case: *case,
            contender,
            number,
            version: self.program(contender)?.map_or(report::VERSION, |p| p.version.as_str()),
            commit: &self.commit,
        };
        clock.read(|ledger| report::line(&run, ledger, start, spent))
    }

    /// The program of a contender; the raw loop has none.
    fn program(&self, contender: Contender) -> anyhow::Result<Option<&Program>> {
        let program = match contender {
            Contender::Product => &self.product,
            Contender::Stock => &self.stock,
            Contender::Raw => return Ok(None),
        };
        program.as_ref().map(Some).with_context(|| format!("{contender} was not looked for"))
    }

    /// Waits until etcd and kube-apiserver are done with what the last step left them.
    async fn settle(&self) {
        if !usage::quiet(&self.control_plane.pids(), SETTLE_LIMIT).await {
            eprintln!("the API server is still busy after {SETTLE_LIMIT:?}; going on");
        }
    }
}

/// The commit of this checkout, marked when it differs from what is committed.
pub(crate) fn commit() -> String {
    let output = Command::new("git")
        .current_dir(programs::workspace())
        .args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        .output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        // An exported tree has no commit; that is no reason not to measure.
        _ => "unknown".to_owned(),
    }
}
