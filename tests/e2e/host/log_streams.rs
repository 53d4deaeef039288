//! The log in two streams; one of them is buffered.

use std::io::Read as _;

use rustix::io::ioctl_fionread;
use rustix::process::Signal;
use tests::child::Child;
use tests::{poll, ports, process, programs};
use tokio::time::timeout;

use crate::scene::AT_ONCE;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_back_of_the_log_is_written_at_the_end() {
    let (mut rest, stdout) = std::io::pipe().unwrap();
    let (mut errors, stderr) = std::io::pipe().unwrap();
    let port = ports::free_port();
    let manager = Child::spawn(programs::product(), |command| {
        command
            .args(["--bind-address=127.0.0.1", &format!("--secure-port={port}")])
            .args(["--master=http://127.0.0.1:9", "--leader-elect=false"])
            .args(["--controllers=node-ipam-controller", "--log-text-split-stream"])
            .args(["--log-text-info-buffer-size=1Mi", "--log-flush-frequency=1h"])
            .arg("--feature-gates=LoggingAlphaOptions=true")
            .stdout(stdout)
            .stderr(stderr);
    });
    let manager = manager.unwrap();
    poll("it serves", async || process::get(port, "/livez").await.ok()).await;
    assert_eq!(ioctl_fionread(&rest).unwrap(), 0, "nothing is due");
    manager.signal(Signal::TERM);
    let status = timeout(AT_ONCE, manager.exited()).await.expect("it ends");
    assert_eq!(status.code(), Some(0));
    let (mut shown, mut failed) = (String::new(), String::new());
    rest.read_to_string(&mut shown).unwrap();
    errors.read_to_string(&mut failed).unwrap();
    assert!(shown.contains("Serving securely on ") && !failed.contains("Serving"), "{failed}");
    assert!(shown.lines().all(|line| line.starts_with(['I', 'W'])), "{shown}");
}
