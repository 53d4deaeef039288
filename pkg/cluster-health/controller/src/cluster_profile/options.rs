//! [`ClusterProfileOptions`]: the values of the flags of this flavour, checked.

use std::fs;

use flags::{Problem, Values};
use health::Policy;
use kube_api::LabelSelector;

use super::providers::Providers;
use crate::flags::{
    PROFILE_EXEC, PROFILE_MANAGERS, PROFILE_NAMESPACES, PROFILE_PROVIDERS,
    PROFILE_SECRET_NAMESPACES, PROFILE_SELECTOR,
};
use crate::shared_flavour::{SharedOptions, namespaces};

#[derive(Clone, Debug)]
pub(crate) struct ClusterProfileOptions {
    /// Namespaces and policy.
    pub shared: SharedOptions,
    /// The objects that are probed; `None` for all.
    pub selector: Option<LabelSelector>,
    /// The cluster managers in whose name `ControlPlaneHealthy` and the version are written.
    pub managers: Vec<String>,
    /// Namespaces of Secrets in addition to that of the object.
    pub secret_namespaces: Vec<String>,
    /// How the clusters are reached.
    pub providers: Providers,
}

impl ClusterProfileOptions {
    /// Judges the flags of this flavour; `policy` is that of the flags that it shares with KubeFed.
    pub(crate) fn judge(values: &Values, policy: Policy, problems: &mut Vec<Problem>) -> Self {
        let shared = SharedOptions::judge(values, &PROFILE_NAMESPACES, policy, problems);
        let secret_namespaces = namespaces(values, &PROFILE_SECRET_NAMESPACES, problems);
        let text = values.get(&PROFILE_SELECTOR);
        let selector = match LabelSelector::parse(&text) {
            Ok(selector) => Some(selector).filter(|_| !text.trim().is_empty()),
            Err(error) => {
                problems.push(PROFILE_SELECTOR.problem(error.to_string()));
                None
            }
        };
        let providers = providers(values).unwrap_or_else(|why| {
            problems.push(PROFILE_PROVIDERS.problem(why));
            Providers::built_in()
        });
        let managers = values.get(&PROFILE_MANAGERS);
        Self { shared, selector, managers, secret_namespaces, providers }
    }
}

fn providers(values: &Values) -> Result<Providers, String> {
    let path = values.get(&PROFILE_PROVIDERS);
    if path.is_empty() {
        return Ok(Providers::built_in());
    }
    let text = fs::read(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
    let parsed = Providers::parse(&text, values.get(&PROFILE_EXEC));
    parsed.map_err(|why| format!("cannot use {path}: {why}"))
}
