//! The value of `--controllers`: which controllers it turns on, hosted here or known upstream.
//!
//! The command registers what it hosts in [`Known`]; [`Known::select`] applies the user's list.
//! Names of kube-controller-manager's own controllers are known too, so that a list written for it
//! is accepted.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

/// The hosted controllers that run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    enabled: BTreeSet<&'static str>,
    named: BTreeSet<&'static str>,
}

impl Selection {
    /// Whether a controller, by canonical name, runs; unknown ones do not.
    pub fn is_enabled(&self, name: &str) -> bool {
        self.enabled.contains(name)
    }

    /// Whether a controller runs because its own name or an alias turned it on, not through `*`.
    pub fn is_named(&self, name: &str) -> bool {
        self.named.contains(name)
    }
}

/// Names in `--controllers` that no controller has; all of them at once.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.sentence())]
pub struct BadNames {
    /// Names that neither this program nor kube-controller-manager knows, as written.
    pub unknown: Vec<String>,
    /// Names that are close to the unknown one.
    pub hosted: Vec<&'static str>,
}

impl BadNames {
    fn sentence(&self) -> String {
        let (unknown, hosted) = (quoted(&self.unknown), self.hosted.join(", "));
        format!("there is no controller {unknown}; this program hosts: {hosted}")
    }
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

impl Known {
    /// Applies a `--controllers` list. For each controller the first entry that names it decides;
    /// unnamed ones run if `*` stands anywhere and they are on by default.
    ///
    /// # Errors
    /// All names that are unknown, negated or not.
    pub fn select(&self, list: &[String]) -> Result<Selection, BadNames> {
        let mut bad = BadNames { unknown: vec![], hosted: self.names() };
        let mut named = BTreeMap::new();
        let star = list.iter().any(|entry| entry == "*");
        for entry in list.iter().filter(|entry| *entry != "*") {
            let (name, on) = match entry.strip_prefix('-') {
                Some(name) => (name, false),
                None => (entry.as_str(), true),
            };
            if let Some(controller) = self.resolve(name) {
                named.entry(controller).or_insert(on);
            } else if !is_upstream(name) {
                bad.unknown.push(name.to_owned());
            }
        }
        if !bad.unknown.is_empty() {
            return Err(bad);
        }
        let runs = |controller: &&Controller| {
            let default = star && controller.on_by_default;
            named.get(controller.name).copied().unwrap_or(default)
        };
        let enabled = self.controllers().iter().filter(runs).map(|controller| controller.name);
        let enabled = enabled.collect();
        let named = named.into_iter().filter_map(|(name, on)| on.then_some(name)).collect();
        Ok(Selection { enabled, named })
    }
}

/// The entries of a list that turn on a controller which only kube-controller-manager hosts; for
/// the start-up warning.
pub fn not_hosted(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).filter(|entry| is_upstream(entry)).collect()
}

/// A controller that this program can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Canonical name, `<what>-controller`.
    pub name: &'static str,
    /// Other names users may know it by.
    pub aliases: &'static [&'static str],
    /// Whether `*` turns it on.
    pub on_by_default: bool,
}

/// A registration that would make a name ambiguous or empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RegistryError {
    /// Two registrations claim one name.
    #[error("cannot register controller name {0:?} twice")]
    Twice(&'static str),
}

/// All hosted controllers.
#[derive(Clone, Debug, Default)]
pub struct Known {
    controllers: Vec<Controller>,
}

impl Known {
    /// Registers everything at once.
    pub fn new(controllers: Vec<Controller>) -> Result<Self, RegistryError> {
        let mut seen = BTreeSet::new();
        for controller in &controllers {
            for name in std::iter::once(&controller.name).chain(controller.aliases) {
                if !seen.insert(*name) {
                    return Err(RegistryError::Twice(name));
                }
            }
        }
        Ok(Self { controllers })
    }

    /// The controllers in order of registration.
    pub fn controllers(&self) -> &[Controller] {
        &self.controllers
    }

    /// Canonical names in order of registration.
    pub fn names(&self) -> Vec<&'static str> {
        self.controllers.iter().map(|controller| controller.name).collect()
    }

    /// The canonical name of a hosted controller, by that or an alias.
    pub fn resolve(&self, name: &str) -> Option<&'static str> {
        let matches = |known: &&Controller| known.name == name || known.aliases.contains(&name);
        self.controllers.iter().find(matches).map(|controller| controller.name)
    }
}

/// Canonical names without the common suffix `-controller`, except node-ipam.
const STEMS: &str = "\
    bootstrap-signer certificatesigningrequest-approving certificatesigningrequest-cleaner \
    certificatesigningrequest-signing cloud-node-lifecycle clusterrole-aggregation cronjob \
    daemonset deployment device-taint-eviction disruption endpoints endpointslice \
    endpointslice-mirroring ephemeral-volume garbage-collector horizontal-pod-autoscaler job \
    kube-apiserver-serving-clustertrustbundle-publisher legacy-serviceaccount-token-cleaner \
    namespace node-lifecycle node-route persistentvolume-attach-detach persistentvolume-binder \
    persistentvolume-expander persistentvolume-protection persistentvolumeclaim-protection \
    pod-garbage-collector podcertificaterequest-cleaner podgroup-protection replicaset \
    replicationcontroller resourceclaim resourcepoolstatusrequest resourcequota \
    root-ca-certificate-publisher selinux-warning service-ca-certificate-publisher service-cidr \
    service-lb serviceaccount serviceaccount-token statefulset storage-version-migrator \
    storageversion-garbage-collector taint-eviction token-cleaner ttl ttl-after-finished \
    validatingadmissionpolicy-status volumeattributesclass-protection";

/// Names from before 1.27 that the 1.36 program still takes (measured by starting it with them).
const ALIASES: &str = "\
    attachdetach bootstrapsigner cloud-node-lifecycle clusterrole-aggregation cronjob csrapproving \
    csrcleaner csrsigning daemonset deployment disruption endpoint endpointslice \
    endpointslicemirroring ephemeral-volume garbagecollector horizontalpodautoscaling job \
    legacy-service-account-token-cleaner namespace nodelifecycle persistentvolume-binder \
    persistentvolume-expander podgc pv-protection pvc-protection replicaset replicationcontroller \
    resource-claim-controller resourcequota root-ca-cert-publisher route service \
    service-ca-cert-publisher serviceaccount serviceaccount-token statefulset storage-version-gc \
    svm tokencleaner ttl ttl-after-finished";

/// Whether kube-controller-manager has a controller of this name or alias and we have not.
pub fn is_upstream(name: &str) -> bool {
    let has = |names: &str, name: &str| names.split(' ').any(|known| known == name);
    name.strip_suffix("-controller").is_some_and(|stem| has(STEMS, stem)) || has(ALIASES, name)
}

#[cfg(test)]
mod tests;
