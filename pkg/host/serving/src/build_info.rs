//! Who this program is, for `/version` and `icm_build_info`.

use serde_json::json;

/// What the build knows about itself; `cmd` fills it from its build script.
#[derive(Clone, Copy, Debug)]
pub struct BuildInfo<'a> {
    /// Version to report, without a leading `v`, such as `0.1.0` or `0.1.0-custom`.
    pub version: &'a str,
    /// Commit the program was built from, or `unknown`.
    pub commit: &'static str,
    /// What the compiler says of itself, such as `rustc 1.95.0 (59807616e 2026-04-14)`.
    pub rustc: &'static str,
    /// Range of Kubernetes versions it works with, such as `1.31-1.37`.
    pub k8s_compat: &'static str,
}

impl BuildInfo<'_> {
    /// The body of `/version`: the field names of Kubernetes' own version object where we have the
    /// fact, so that tools which read a component's version read ours.
    pub(crate) fn to_json(self) -> String {
        let mut numbers = self.version.split('.');
        json!({
            "major": numbers.next().unwrap_or_default(),
            "minor": numbers.next().unwrap_or_default(),
            "gitVersion": format!("v{}", self.version),
            "gitCommit": self.commit,
            "compiler": self.rustc,
            "platform": kube_api::go::platform(),
            "kubernetesCompatibility": self.k8s_compat,
        })
        .to_string()
    }
}
