//! Where the programs are: etcd and friends by way of `scripts/control-plane-binary`, the product
//! by way of `cargo build`, so that what is tested is never stale.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, bail};

/// The checkout.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace")
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

/// The product's binary: `$ICM_BINARY` when set, else what `cargo build` makes of the checkout,
/// in the profile this crate was built with.
pub fn product() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| match std::env::var_os("ICM_BINARY") {
        Some(path) => path.into(),
        None => build_product().expect("the product builds"),
    })
}

/// What cargo tells a test of its package. Build scripts that read the same names, as ring's does,
/// would be run again in a cargo that inherits them, and all that needs ring compiled again: by
/// this build, and by the next one outside.
fn is_of_this_package(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_EXE_"].iter().any(|it| name.starts_with(it))
}

fn build_product() -> anyhow::Result<PathBuf> {
    const NAME: &str = "infra-controller-manager";
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--package", NAME, "--bin", NAME]);
    if cfg!(debug_assertions) {
        // With the features of this package's dependencies, so that the SDKs of AWS are compiled
        // once for both.
        command.args(["--package", "tests"]);
    }
    command.arg("--message-format=json-render-diagnostics").current_dir(workspace());
    // A release build takes minutes, which are not to pass in silence.
    command.arg(if cfg!(debug_assertions) { "--quiet" } else { "--release" });
    for (name, _) in std::env::vars_os() {
        if is_of_this_package(&name) {
            command.env_remove(name);
        }
    }
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo to build the product")?;
    if !output.status.success() {
        bail!("cannot build {NAME}: see cargo's message above");
    }
    String::from_utf8(output.stdout)?
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| {
            (message["target"]["name"] == NAME)
                .then(|| message["executable"].as_str().map(PathBuf::from))
                .flatten()
        })
        .with_context(|| format!("cargo did not say where {NAME} is"))
}
