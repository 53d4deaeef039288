//! The flags of this flavour, and [`ClusterProfileOptions`], which they come to.

use flags::{Flag, Problem, Values};
use health::Policy;
use kube_api::LabelSelector;

use crate::api::is_name;

const GROUP: &str = "cluster-health-controller";

pub(crate) const NAMESPACES: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "cluster-health-profile-namespaces",
    "",
    "Namespaces of the ClusterProfiles; empty for all namespaces. With more than one, the ClusterProfiles of all namespaces are watched and those of other namespaces are ignored.",
);

pub(crate) const SELECTOR: Flag<String> = Flag::string(
    GROUP,
    "cluster-health-profile-selector",
    "",
    "Label selector of the ClusterProfiles; empty for all. A ClusterProfile that is no longer selected loses the conditions of this program.",
);

pub(crate) const MANAGERS: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "cluster-health-profile-managers",
    "infra-controller-manager",
    "Names in spec.clusterManager of the ClusterProfiles for which this program also writes ControlPlaneHealthy and version.kubernetes; other cluster managers write both themselves.",
);

pub(crate) const SECRET_NAMESPACES: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "cluster-health-profile-secret-namespaces",
    "",
    "Namespaces whose Secrets every ClusterProfile may name, besides those of its own namespace. Whoever writes the status of a ClusterProfile can have any kubeconfig and token there sent to a server of their choice.",
);

#[derive(Clone, Debug)]
pub(crate) struct ClusterProfileOptions {
    /// Namespaces of the objects; empty for all.
    pub namespaces: Vec<String>,
    /// The objects that are probed; `None` for all.
    pub selector: Option<LabelSelector>,
    /// The cluster managers in whose name `ControlPlaneHealthy` and the version are written.
    pub managers: Vec<String>,
    /// Namespaces of Secrets in addition to that of the object.
    pub secret_namespaces: Vec<String>,
    pub policy: Policy,
}

impl ClusterProfileOptions {
    /// Judges the flags of this flavour; `policy` is that of the flags that it shares with KubeFed.
    pub(crate) fn judge(values: &Values, policy: Policy, problems: &mut Vec<Problem>) -> Self {
        for flag in [&NAMESPACES, &SECRET_NAMESPACES] {
            for name in values.get(flag).iter().filter(|name| !is_name(name)) {
                problems.push(flag.problem(format!("{name:?} is not the name of a namespace")));
            }
        }
        let text = values.get(&SELECTOR);
        let selector = match LabelSelector::parse(&text) {
            Ok(selector) => Some(selector).filter(|_| !text.trim().is_empty()),
            Err(error) => {
                problems.push(SELECTOR.problem(error.to_string()));
                None
            }
        };
        Self {
            namespaces: values.get(&NAMESPACES),
            selector,
            managers: values.get(&MANAGERS),
            secret_namespaces: values.get(&SECRET_NAMESPACES),
            policy,
        }
    }

    /// The only namespace that is watched; `None` for all.
    pub(crate) fn watched_namespace(&self) -> Option<String> {
        match &self.namespaces[..] {
            [one] => Some(one.clone()),
            _ => None,
        }
    }
}
