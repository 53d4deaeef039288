//! A control plane for people and scripts: starts it, prints its address, runs until it is asked to
//! stop, removes everything. Called by `scripts/control-plane`.

#![allow(clippy::print_stdout, reason = "what scripts read goes to stdout")]

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use local_control_plane::control_plane::{
    ADMIN_GROUP, ControlPlane, MANAGER_USER, Options, kubeconfig_name,
};
use local_control_plane::watchdog;
use tokio::signal::unix::{SignalKind, signal};

const HELP: &str = "\
usage: scripts/control-plane [--user NAME[=GROUP[,GROUP]]]… [--dir DIR] [--api-server-arg ARG]…

Starts etcd and kube-apiserver (TLS, RBAC on) on a free loopback port in a temporary directory,
prints where they are, and runs until Ctrl-C, SIGTERM, or, when stdin is a pipe, its end. Then,
and also when it is killed, nothing is left behind. SIGUSR1 stops kube-apiserver; the next one
starts it again at the same address, with what it held.

  --user NAME[=GROUP[,GROUP]]  make one more kubeconfig, for this user and at most two groups:
                               --user system:node:a=system:nodes
  --dir DIR                    put the kubeconfigs there instead of the temporary directory;
                               DIR is made if need be, and removed again if it was
  --api-server-arg ARG         give kube-apiserver one more flag:
                               --api-server-arg --max-mutating-requests-inflight=2000
  --help                       this text

Prints, a line each and in this order:
  server URL
  directory PATH               of certificates and logs
  kubeconfig USER PATH         for admin, system:kube-controller-manager, and each --user
  export KUBECONFIG=PATH       the admin's
and later, at SIGUSR1, `stopped` and `started`.
";

#[derive(Default)]
struct Request {
    users: Vec<(String, Vec<String>)>,
    dir: Option<PathBuf>,
    api_server_args: Vec<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let request = match parse(args) {
        Ok(request) => request,
        Err(error) => {
            eprintln!("control-plane: {error:#}; see --help");
            return ExitCode::from(2);
        }
    };
    match run(request).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("control-plane: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse(args: Vec<String>) -> anyhow::Result<Request> {
    let mut request = Request::default();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        // `--flag=value` and `--flag value`; a user's groups follow a second `=`.
        let (flag, value) = match arg.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (arg, args.next()),
        };
        let value = value.with_context(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--user" => {
                let value = value?;
                let (name, groups) = value.split_once('=').unwrap_or((&value, ""));
                let groups = groups.split(',').filter(|group| !group.is_empty());
                request.users.push((name.to_owned(), groups.map(str::to_owned).collect()));
            }
            "--dir" => request.dir = Some(value?.into()),
            "--api-server-arg" => request.api_server_args.push(value?),
            unknown => bail!("unknown argument {unknown:?}"),
        }
    }
    Ok(request)
}

async fn run(request: Request) -> anyhow::Result<()> {
    // Before anything is started: a signal must find us listening.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut toggle = signal(SignalKind::user_defined1())?;
    let options = Options { api_server_args: request.api_server_args };
    let serve = async {
        let mut plane = ControlPlane::start(options).await?;
        let _kubeconfigs = announce(&plane, request.dir, request.users)?;
        loop {
            tokio::select! {
                ended = plane.ended() => bail!(ended),
                _ = toggle.recv() => {}
            }
            plane.stop_api_server().await;
            println!("stopped");
            toggle.recv().await;
            plane.start_api_server().await?;
            println!("started");
        }
    };
    tokio::select! {
        failure = serve => failure,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        _ = hangup.recv() => Ok(()),
        () = pipe_closed() => Ok(()),
    }
}

fn announce(
    plane: &ControlPlane,
    dir: Option<PathBuf>,
    mut users: Vec<(String, Vec<String>)>,
) -> anyhow::Result<Removed> {
    users.insert(0, ("admin".to_owned(), vec![ADMIN_GROUP.to_owned()]));
    users.insert(1, (MANAGER_USER.to_owned(), Vec::new()));
    let mut removed = Removed::default();
    let dir = match dir {
        Some(dir) => removed.make_dir(dir)?,
        None => plane.dir().to_owned(),
    };
    let mut lines =
        vec![format!("server {}", plane.url()), format!("directory {}", plane.dir().display())];
    for (user, groups) in &users {
        let path = dir.join(kubeconfig_name(user));
        removed.file(path.clone());
        let groups: Vec<_> = groups.iter().map(String::as_str).collect();
        plane.write_kubeconfig(&path, user, &groups)?;
        lines.push(format!("kubeconfig {user} {}", path.display()));
    }
    lines.push(format!("export KUBECONFIG={}", dir.join(kubeconfig_name("admin")).display()));
    println!("{}", lines.join("\n"));
    Ok(removed)
}

/// Files that are deleted at the end: the kubeconfigs, and their directory if this program created
/// it.
#[derive(Default)]
struct Removed {
    files: Vec<PathBuf>,
    dir: Option<PathBuf>,
}

impl Removed {
    fn make_dir(&mut self, dir: PathBuf) -> anyhow::Result<PathBuf> {
        if !dir.exists() {
            fs::create_dir_all(&dir)
                .with_context(|| format!("cannot create the directory {}", dir.display()))?;
            self.dir = Some(dir.canonicalize()?);
        }
        Ok(dir.canonicalize()?)
    }

    fn file(&mut self, path: PathBuf) {
        watchdog::remove_at_exit(&path);
        self.files.push(path);
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        for file in &self.files {
            // Absent when writing it was what failed.
            let _absent = fs::remove_file(file).is_err();
        }
        if let Some(dir) = &self.dir {
            // Not removed once another program has written files there.
            let _in_use = fs::remove_dir(dir).is_err();
        }
    }
}

/// Waits until the other end of a pipe on stdin is closed. Never returns when stdin is not a pipe:
/// a script's `&` gives us /dev/null, which is at its end from the start.
async fn pipe_closed() {
    let is_pipe = fs::metadata("/dev/stdin")
        .is_ok_and(|stdin| stdin.file_type().is_fifo() || stdin.file_type().is_socket());
    if !is_pipe {
        return std::future::pending().await;
    }
    let (closed, wait) = tokio::sync::oneshot::channel::<()>();
    // A thread of its own: a runtime would wait for the blocked read when it ends.
    std::thread::spawn(move || {
        while matches!(std::io::stdin().read(&mut [0; 512]), Ok(1..)) {}
        drop(closed);
    });
    let _closed = wait.await.is_err();
}
