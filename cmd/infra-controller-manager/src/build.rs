//! What this binary is and was built from.

use manager::command::Program;
use serving::BuildInfo;
use uuid::Uuid;

use crate::flags::VersionInfo;

/// Name of the binary, the lease and the user agent's product.
pub const PRODUCT: &str = "infra-controller-manager";
/// Version of the workspace, commit (`unknown` outside a checkout) and compiler.
pub const INFO: VersionInfo = VersionInfo {
    product: PRODUCT,
    version: env!("CARGO_PKG_VERSION"),
    commit: env!("ICM_COMMIT"),
    rustc: env!("ICM_RUSTC"),
};
/// The program as servers know it.
pub const PROGRAM: Program =
    Program { product: PRODUCT, version: INFO.version, commit: INFO.commit };
/// API servers that this version is built for.
pub const KUBERNETES: &str = "1.31+";

/// The same for `/version` and `icm_build_info`, under the version that `--version=` asks for.
pub fn info(reported_version: &str) -> BuildInfo<'_> {
    BuildInfo {
        version: reported_version.trim_start_matches('v'),
        commit: INFO.commit,
        rustc: INFO.rustc,
        k8s_compat: KUBERNETES,
    }
}

/// Names this process among all candidates: `<host>_<random>` .
pub fn identity() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}_{}", Uuid::new_v4())
}
