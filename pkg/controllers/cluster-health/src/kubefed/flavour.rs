//! [`KubeFed`]: what the engine asks of this flavour, and what is remembered of each member.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use health::Policy;
use informer::Informer;
use model::Resource;
use objects::Object;
use parking_lot::Mutex;
use serde_json::Value;

use super::{settings, status};
use crate::api::kubefed::{ClusterHealthCheck, KUBEFED_CLUSTERS, KubeFedCluster};
use crate::engine::{Cluster, Flavour, Prober, Statement};
use crate::member::Newest;
use crate::options::KubeFedOptions;

/// A constant has no address to refer to.
static RESOURCE: Resource = KUBEFED_CLUSTERS;

/// The members of KubeFed, in one run of the controller.
pub(crate) struct KubeFed {
    pub(super) options: KubeFedOptions,
    /// Whether tokens may be sent over plain http.
    pub(super) allow_plaintext: bool,
    pub(super) prober: Arc<probe::Prober>,
    /// Filled when the run begins.
    clusters: OnceLock<Informer<Object<KubeFedCluster>>>,
    policy: Mutex<Policy>,
    /// By UID.
    members: Mutex<HashMap<Arc<str>, Known>>,
}

/// What a member was last told of with.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) object: Arc<Object<KubeFedCluster>>,
    /// UID and version of its Secret.
    pub(super) secret: Option<(Arc<str>, u64)>,
    /// A hash of what the prober is made of.
    pub(super) inputs: u64,
    pub(super) prober: Arc<dyn Prober>,
    pub(super) newest: Newest,
}

impl KubeFed {
    /// The flavour for one run of the controller.
    pub(crate) fn new(
        options: KubeFedOptions,
        allow_plaintext: bool,
        prober: Arc<probe::Prober>,
    ) -> Self {
        let policy = Mutex::new(options.policy);
        let members = Mutex::default();
        Self { options, allow_plaintext, prober, clusters: OnceLock::new(), policy, members }
    }

    /// The objects are read from here.
    pub(super) fn follow(&self, clusters: &Informer<Object<KubeFedCluster>>) {
        self.clusters.get_or_init(|| clusters.clone());
    }

    /// Takes in what the KubeFedConfig says; returns what of it is wrong.
    pub(super) fn configure(&self, config: Option<&ClusterHealthCheck>) -> Vec<String> {
        let (policy, wrong) = settings::policy(&self.options.policy, config);
        *self.policy.lock() = policy;
        wrong
    }

    /// How members are watched over now.
    pub(super) fn policy(&self) -> Policy {
        *self.policy.lock()
    }

    pub(super) fn known(&self, uid: &str) -> Option<Known> {
        self.members.lock().get(uid).cloned()
    }

    pub(super) fn remember(&self, uid: &Arc<str>, known: Known) {
        self.members.lock().insert(Arc::clone(uid), known);
    }

    /// The object of this cluster, if it is still there.
    fn object(&self, cluster: &Cluster) -> Option<Arc<Object<KubeFedCluster>>> {
        let object = self.clusters.get()?.get(&cluster.key)?;
        (object.metadata.uid == cluster.uid).then_some(object)
    }
}

impl Flavour for KubeFed {
    fn name(&self) -> &'static str {
        "kubefed"
    }

    fn resource(&self) -> &'static Resource {
        &RESOURCE
    }

    fn fingerprint(&self, cluster: &Cluster, statement: &Statement<'_>) -> u64 {
        let (Some(object), Some(published)) = (self.object(cluster), statement.published) else {
            return 0;
        };
        status::fingerprint(published.standing, &object.status)
    }

    fn fields(&self, cluster: &Cluster, statement: &Statement<'_>) -> Option<Value> {
        let object = self.object(cluster)?;
        Some(status::fields(statement.published?, statement.message, &object.status))
    }

    fn removed(&self, cluster: &Cluster) {
        self.members.lock().remove(&cluster.uid);
    }
}
