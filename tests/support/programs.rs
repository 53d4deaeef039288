//! The product's binary by way of `cargo build`, so that what is tested is never stale, and the
//! programs of the control plane.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, bail};
pub use local_control_plane::programs::{control_plane_binaries, workspace};

const PRODUCT: &str = "infra-controller-manager";

/// The product's binary: `$ICM_BINARY` when set, else what `cargo build` makes of the checkout,
/// in the profile this crate was built with.
pub fn product() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| match std::env::var_os("ICM_BINARY") {
        Some(path) => path.into(),
        None => build(PRODUCT, PRODUCT).expect("the product builds"),
    })
}

/// The program behind `scripts/control-plane`.
pub fn control_plane() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| build("local-control-plane", "control-plane").expect("it builds"))
}

/// What cargo tells a test of its package. Build scripts that read the same names, as ring's does,
/// would be run again in a cargo that inherits them, and all that needs ring compiled again: by
/// this build, and by the next one outside.
fn is_of_this_package(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_EXE_"].iter().any(|it| name.starts_with(it))
}

fn build(package: &str, name: &str) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--package", package, "--bin", name]);
    if cfg!(debug_assertions) {
        // With the features of this package's dependencies, so that each is compiled once for both.
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
        .with_context(|| format!("cannot run cargo to build {name}"))?;
    if !output.status.success() {
        bail!("cannot build {name}: see cargo's message above");
    }
    String::from_utf8(output.stdout)?
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| {
            (message["target"]["name"] == name)
                .then(|| message["executable"].as_str().map(PathBuf::from))
                .flatten()
        })
        .with_context(|| format!("cargo did not say where {name} is"))
}
