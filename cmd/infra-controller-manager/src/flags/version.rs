//! `--version`: what it prints, and the override it allows.

use flags::{Values, VersionRequest};

use super::table::program::VERSION;

/// Facts about this build.
#[derive(Clone, Copy, Debug)]
pub struct VersionInfo {
    /// Name of the program.
    pub product: &'static str,
    /// Version, with or without the `v` that Kubernetes versions carry.
    pub version: &'static str,
    /// Commit of the source.
    pub commit: &'static str,
    /// Compiler.
    pub rustc: &'static str,
}

impl VersionInfo {
    /// With the `v` that Kubernetes versions carry.
    fn prefixed(&self) -> String {
        format!("v{}", self.version.trim_start_matches('v'))
    }

    pub(super) fn line(&self) -> String {
        format!("{} {}\n", self.product, self.prefixed())
    }

    pub(super) fn raw(&self) -> String {
        format!(
            "product: {}\nversion: {}\ncommit: {}\nrustc: {}\nplatform: {}/{}\n",
            self.product,
            self.prefixed(),
            self.commit,
            self.rustc,
            std::env::consts::OS,
            std::env::consts::ARCH
        )
    }

    /// An override may add to the real version, never claim another release.
    pub(super) fn check_override(&self, wanted: &str) -> Result<(), String> {
        let real = self.prefixed();
        let extends = |rest: &str| rest.is_empty() || rest.starts_with(['-', '+', '.']);
        if wanted.strip_prefix(&real).is_some_and(extends) {
            return Ok(());
        }
        Err(format!(
            "invalid argument {wanted:?} for \"--version\" flag: it must extend the real version, \
             as in {real}-custom"
        ))
    }
}

/// The version to report in user agents, logs, metrics and `/version`.
pub fn reported_version(values: &Values, info: &VersionInfo) -> String {
    match &values.get(&VERSION) {
        VersionRequest::Override(version) => version.clone(),
        _ => info.prefixed(),
    }
}
