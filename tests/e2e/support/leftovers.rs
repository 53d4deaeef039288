//! `scripts/control-plane`'s program: nothing stays behind, however it ends.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tests::eventually;
use tests::temp_dir::TempDir;

/// The program, run as a shell would: our own `Child` would clean up in its place.
struct Running {
    program: Child,
    directory: PathBuf,
    kubeconfigs: PathBuf,
    _parent: TempDir,
}

impl Running {
    async fn start() -> Self {
        let parent = TempDir::new("leftovers").unwrap();
        let (kubeconfigs, output) = (parent.join("made/by/it"), parent.join("output"));
        let program = Command::new(tests::programs::control_plane())
            .arg("--dir")
            .arg(&kubeconfigs)
            .args(["--user", "system:node:a=system:nodes"])
            .stdin(Stdio::piped())
            .stdout(fs::File::create(&output).unwrap())
            .spawn()
            .unwrap();
        let read = || fs::read_to_string(&output).unwrap();
        eventually("the control plane is up", || read().contains("export KUBECONFIG=")).await;
        let text = read();
        let directory = text.lines().find_map(|line| line.strip_prefix("directory ")).unwrap();
        assert_eq!(processes_in(Path::new(directory)), 2, "etcd and kube-apiserver");
        for name in ["admin", "system-kube-controller-manager", "system-node-a"] {
            assert!(kubeconfigs.join(format!("{name}.kubeconfig")).exists(), "{name}");
        }
        Self { program, directory: directory.into(), kubeconfigs, _parent: parent }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.program), signal).unwrap();
    }

    async fn leaves_nothing(&self) {
        eventually("no process is left", || processes_in(&self.directory) == 0).await;
        eventually("its directory is gone", || !self.directory.exists()).await;
        let keys = || fs::read_dir(&self.kubeconfigs).is_ok_and(|mut dir| dir.next().is_some());
        eventually("the kubeconfigs are gone", || !keys()).await;
    }
}

/// Processes that run in a directory, as the programs of a control plane do.
fn processes_in(directory: &Path) -> usize {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path().join("cwd")).ok())
        // The kernel adds " (deleted)" once the directory is gone and the process is not.
        .filter(|cwd| cwd.to_string_lossy().starts_with(&*directory.to_string_lossy()))
        .count()
}

#[tokio::test]
async fn nothing_is_left_after_sigkill_of_the_owner() {
    let mut running = Running::start().await;
    running.signal(Signal::KILL);
    running.program.wait().unwrap();
    running.leaves_nothing().await;
}

#[tokio::test]
async fn ctrl_c_ends_it_without_an_error_and_nothing_is_left() {
    let mut running = Running::start().await;
    running.signal(Signal::INT);
    assert!(running.program.wait().unwrap().success());
    running.leaves_nothing().await;
    assert!(!running.kubeconfigs.exists(), "it made the folder, so it removes it");
}

#[tokio::test]
async fn the_end_of_a_pipe_on_stdin_ends_it() {
    let mut running = Running::start().await;
    let mut stdin = running.program.stdin.take().unwrap();
    stdin.write_all(b"not yet\n").unwrap();
    drop(stdin);
    assert!(running.program.wait().unwrap().success());
    running.leaves_nothing().await;
}
