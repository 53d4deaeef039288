//! Where etcd, kube-apiserver and the other programs of a control plane are:
//! `scripts/control-plane-binary` prints their paths and builds them where they are missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, bail};

/// The checkout.
pub fn workspace() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("the crate lies two folders below the workspace")
}

/// The paths of `etcd` and `kube-apiserver`; builds them first where that is needed, which
/// takes minutes and shows its progress on stderr.
pub fn etcd_and_apiserver() -> anyhow::Result<&'static (PathBuf, PathBuf)> {
    static PATHS: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    if let Some(paths) = PATHS.get() {
        return Ok(paths);
    }
    let mut found = control_plane_binaries(&["etcd", "kube-apiserver"])?.into_iter();
    let paths =
        found.next().zip(found.next()).context("control-plane-binary printed too little")?;
    Ok(PATHS.get_or_init(|| paths))
}

/// Runs `scripts/control-plane-binary` for these names.
pub fn control_plane_binaries(names: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    let script = workspace().join("scripts/control-plane-binary");
    let output = Command::new(&script)
        .args(names)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", script.display()))?;
    if !output.status.success() {
        bail!("cannot get {}: see the message of {} above", names.join(", "), script.display());
    }
    Ok(String::from_utf8(output.stdout)?.lines().map(PathBuf::from).collect())
}
