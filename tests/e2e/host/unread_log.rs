//! A log whose reader stands still (rule:logging-never-blocks).

use std::io::PipeReader;
use std::process::Stdio;

use rustix::io::ioctl_fionread;
use tests::child::Child;
use tests::poll::poll;
use tests::{Match, ports, programs};
use tokio::time::timeout;

use rustix::process::Signal;

use crate::scene::{AT_ONCE, SHORT_LEASE, Scene};

/// The product with its log in a pipe that is not read; `args` are those of the case.
pub(crate) fn launch_unread(scene: &Scene, args: &str) -> (Child, PipeReader) {
    let (unread, log) = std::io::pipe().unwrap();
    let child = Child::spawn(programs::product(), |command| {
        command
            .args(["--allocate-node-cidrs=true", "--cluster-cidr=10.0.0.0/12", "--v=10"])
            .args(["--bind-address=127.0.0.1", &format!("--secure-port={}", ports::free_port())])
            .arg(format!("--kubeconfig={}", scene.proxy.kubeconfig().display()))
            .args(["--use-service-account-credentials=true"])
            .args(args.split_whitespace())
            .stdout(Stdio::null())
            .stderr(log);
    });
    (child.unwrap(), unread)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_log_pipe_holds_up_neither_the_lease_nor_the_work_nor_the_end() {
    let scene = Scene::set().await;
    let (manager, unread) = launch_unread(&scene, SHORT_LEASE);
    poll("the pipe is full", async || (ioctl_fionread(&unread).unwrap() > 60_000).then_some(()))
        .await;
    let leader = async || Some(scene.holder().await).filter(|holder| !holder.is_empty());
    let holder = poll("it leads", leader).await;
    scene.serves("a").await;
    let before = scene.proxy.requests_like(&Match::leases()).len();
    // Two lease durations.
    poll("it renews", async || {
        (scene.proxy.requests_like(&Match::leases()).len() >= before + 24).then_some(())
    })
    .await;
    assert_eq!(scene.holder().await, holder);
    manager.signal(Signal::TERM);
    let status = timeout(AT_ONCE, manager.exited()).await.expect("it ends");
    assert_eq!(status.code(), Some(0));
    assert_eq!(scene.holder().await, "", "released in order");
}
