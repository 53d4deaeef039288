//! [`INFO`]: product, version and commit of this build; `--version` and its override.

use flags::{Values, VersionRequest};
use manager::command::Program;
use serving::BuildInfo;
use uuid::Uuid;

use super::flags::table::generic::VERSION;

/// Name of the binary, the lease and the user agent's product.
pub const PRODUCT: &str = "infra-controller-manager";
/// Version (of the workspace, unless the build names one), commit (`unknown` outside a checkout) and compiler.
pub const INFO: VersionInfo = VersionInfo {
    product: PRODUCT,
    version: env!("ICM_VERSION"),
    commit: env!("ICM_COMMIT"),
    rustc: env!("ICM_RUSTC"),
};
/// The program as servers know it.
pub const PROGRAM: Program =
    Program { product: PRODUCT, version: INFO.version, commit: INFO.commit };
/// API servers that this version is built for.
pub const KUBERNETES: &str = "1.31+";

/// Build facts for `/version` and `icm_build_info`, with the version that `--version=` asks for.
pub fn info(reported_version: &str) -> BuildInfo<'_> {
    BuildInfo {
        version: reported_version.trim_start_matches('v'),
        commit: INFO.commit,
        rustc: INFO.rustc,
        k8s_compat: KUBERNETES,
    }
}

/// Names this process among all candidates: `<host>_<random>` .
#[allow(clippy::disallowed_methods, reason = "a simulation names its processes")]
pub fn identity() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}_{}", Uuid::new_v4())
}

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
