//! Snapshots of a control plane's etcd, and going back to one as an operator does: with
//! `etcdutl snapshot restore` and a restart.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::Signal;
use tokio::time::sleep;

use super::{ControlPlane, ETCD_ARGS, api_server_args, spawn};
use crate::{poll, programs};

/// How often etcd writes what it has accepted into its database.
const COMMIT: Duration = Duration::from_millis(100);

impl ControlPlane {
    /// Copies etcd's database as soon as an object with this text is in it: etcd writes what it has
    /// accepted into its database a moment later. Reads and writes wait meanwhile.
    pub async fn snapshot_with(&self, text: &str) -> PathBuf {
        let copy = self.dir.join("snapshot.db");
        poll("a snapshot with the last object", async || {
            self.copy_database(&copy);
            let bytes = fs::read(&copy).expect("the copy can be read");
            memchr::memmem::find(&bytes, text.as_bytes()).map(drop)
        })
        .await;
        // What was found may have been in the midst of being written.
        sleep(COMMIT * 5).await;
        self.copy_database(&copy);
        copy
    }

    fn copy_database(&self, copy: &Path) {
        let frozen = self.freeze_store();
        let copied = fs::copy(self.dir.join("etcd/member/snap/db"), copy);
        drop(frozen);
        copied.expect("etcd's database can be copied");
    }

    /// Restores [`Self::snapshot`]: what was stored since is lost, and resource versions
    /// that were given since are given again.
    pub async fn restore(&mut self, snapshot: &Path) -> anyhow::Result<()> {
        for child in [&self.api_server, &self.etcd] {
            child.signal(Signal::KILL);
            child.exited().await;
        }
        fs::rename(self.dir.join("etcd"), self.dir.join("etcd-before"))?;
        let etcdutl = programs::control_plane_binaries(&["etcdutl"])?;
        let output = Command::new(etcdutl.first().context("etcdutl has a path")?)
            .args(["snapshot", "restore", "--skip-hash-check", "--data-dir=etcd", "--name=etcd"])
            .args(["--initial-cluster=etcd=unix://peer:0"])
            .args(["--initial-advertise-peer-urls=unix://peer:0"])
            .arg(snapshot)
            .current_dir(&*self.dir)
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            bail!("etcdutl cannot restore: {}", String::from_utf8_lossy(&output.stderr));
        }
        let (etcd, api_server) = programs::etcd_and_apiserver()?;
        self.etcd = spawn(etcd, &self.dir, ETCD_ARGS.iter().map(|&arg| arg.to_owned()))?;
        let args = api_server_args(self.port, &self.options);
        self.api_server = spawn(api_server, &self.dir, args)?;
        self.ready().await
    }
}
