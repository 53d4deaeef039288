//! The programs that are measured, and how a controller manager is started: the same command line
//! for both.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::time::Instant;

use anyhow::Context as _;
use tests::Allocator;
use tests::child::Child;
use tests::ports::free_port;

use crate::blocks::{MASK_SIZE, pool};
use crate::cases::{Case, Load, Pools, Server, Throttle};

/// The service account whose token both managers use for Nodes.
pub(crate) const SERVICE_ACCOUNT: &str = "node-controller";

/// A program that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Contender {
    /// This repository's release binary.
    Product,
    /// Kubernetes' own kube-controller-manager.
    Stock,
    /// A bare loop of the same PATCHes.
    Raw,
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Product => "product",
            Self::Stock => "stock",
            Self::Raw => "raw",
        })
    }
}

impl FromStr for Contender {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        [Self::Product, Self::Stock, Self::Raw]
            .into_iter()
            .find(|contender| contender.to_string() == text)
            .with_context(|| format!("unknown contender {text:?}: product, stock or raw"))
    }
}

/// The user that sends the PATCHes, which decides what the server spends on authentication,
/// authorization and fairness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// kubeadm's way: user `system:kube-controller-manager` with
    /// `--use-service-account-credentials`.
    ControllerManager,
    /// A certificate in `system:masters`, exempt from RBAC and from Priority and Fairness.
    Admin,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ControllerManager => "controller-manager",
            Self::Admin => "admin",
        })
    }
}

impl FromStr for Identity {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "controller-manager" => Ok(Self::ControllerManager),
            "admin" => Ok(Self::Admin),
            _ => anyhow::bail!("unknown identity {text:?}: controller-manager or admin"),
        }
    }
}

/// A controller manager's binary.
pub(crate) struct Program {
    path: PathBuf,
    /// Output of `--version`.
    pub(crate) version: String,
}

impl Program {
    /// Checks that the binary runs.
    pub(crate) fn new(path: PathBuf) -> anyhow::Result<Self> {
        let output = Command::new(&path)
            .arg("--version")
            .output()
            .with_context(|| format!("cannot run {}", path.display()))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        anyhow::ensure!(
            output.status.success() && !version.is_empty(),
            "{} --version ended with {} and printed {version:?}",
            path.display(),
            output.status
        );
        Ok(Self { path, version })
    }

    /// Starts it with nothing but the allocation of pod CIDRs. The returned moment is the one right
    /// before the start; 1 to 2 ms of it, alike for all, belong to the shell that executes the
    /// binary.
    pub(crate) fn start(
        &self,
        kubeconfig: &Path,
        identity: Identity,
        case: &Case,
        log: &Path,
    ) -> anyhow::Result<(Running, Instant)> {
        let output =
            File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let errors = output.try_clone()?;
        let port = free_port();
        let start = Instant::now();
        let child = Child::spawn(&self.path, |command| {
            command
                .args(arguments(identity, case))
                .arg(format!("--secure-port={port}"))
                .arg(format!("--kubeconfig={}", kubeconfig.display()))
                .stdout(output)
                .stderr(errors);
        })?;
        Ok((Running { child, port, log: log.to_path_buf() }, start))
    }
}

fn arguments(identity: Identity, case: &Case) -> Vec<String> {
    let stands_by = matches!(case.load, Load::Takeover(_));
    let mut arguments = vec![
        "--controllers=node-ipam-controller".to_owned(),
        "--allocate-node-cidrs=true".to_owned(),
        format!("--leader-elect={stands_by}"),
        "--bind-address=127.0.0.1".to_owned(),
        // The bench reads metrics without credentials.
        "--authorization-always-allow-paths=/*".to_owned(),
    ];
    if stands_by {
        arguments.push("--warm-standby=true".to_owned());
    }
    if identity == Identity::ControllerManager {
        arguments.push("--use-service-account-credentials=true".to_owned());
    }
    match case.pools {
        Pools::Flags => arguments.extend([
            format!("--cluster-cidr={}", pool()),
            format!("--node-cidr-mask-size={MASK_SIZE}"),
        ]),
        Pools::Ipv6 => arguments.extend(
            [
                "--cluster-cidr=fd00::/44",
                "--node-cidr-mask-size=64",
                "--node-cidr-max-ipv6-bits=20",
            ]
            .map(str::to_owned),
        ),
        Pools::ClusterCidrs(_) => arguments.push(Allocator::MultiCidr.flag().to_owned()),
    }
    if let Server::Double { json, .. } = case.server {
        arguments.push("--kube-api-qps=-1".to_owned());
        if json {
            arguments.push("--kube-api-content-type=application/json".to_owned());
        }
    } else if case.throttle == Throttle::Lifted {
        arguments.extend(["--kube-api-qps=5000".to_owned(), "--kube-api-burst=5000".to_owned()]);
    }
    arguments
}

/// A started controller manager. Dropping it kills it: without leader election it has nothing to
/// hand over.
pub(crate) struct Running {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl Running {
    /// Resolves when the process ends by itself.
    pub(crate) async fn ended(&self) -> anyhow::Error {
        anyhow::anyhow!("the contender ended with {}", self.child.exited().await)
    }

    /// The process ID of the contender.
    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// The loopback port that it serves on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The last lines of its log.
    pub(crate) fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}
