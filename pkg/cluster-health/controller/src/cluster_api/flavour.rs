//! [`ClusterApi`]: the Clusters of Cluster API, as the engine sees them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use flags::Values;
use health::{Code, Health, Policy, Status};
use jiff::Timestamp;
use kube_api::Resource;
use objects::Object;
use probe::{Inputs, Problem};
use serde_json::json;

use super::access;
use crate::api::cluster_api::{CLUSTERS, Cluster, pause};
use crate::api::is_name;
use crate::engine::{
    AnnouncedEnds, Connections, Flavour, MemberId, Members, ObjectModel, Objects, Resolve, Seed,
    Statement, StatusWrite, Supervision,
};
use crate::flags::CAPI_NAMESPACES;
use crate::secret_data::SecretData;
use crate::shared_conditions;

/// How long the Secret of a Cluster whose control plane answers may be missing before that is published: its provider
/// makes it at about the same time.
const SECRET_GRACE: Duration = Duration::from_secs(60);

/// The values of the flags of this flavour, checked.
#[derive(Clone, Debug)]
pub(crate) struct ClusterApiOptions {
    /// Namespaces of the objects; empty for all.
    pub namespaces: Vec<String>,
    pub policy: Policy,
}

impl ClusterApiOptions {
    /// Judges the flags of this flavour; `policy` is that of the flags that it shares with KubeFed.
    pub(crate) fn judge(
        values: &Values,
        policy: Policy,
        problems: &mut Vec<flags::Problem>,
    ) -> Self {
        let namespaces = values.get(&CAPI_NAMESPACES);
        for name in namespaces.iter().filter(|name| !is_name(name)) {
            let why = format!("{name:?} is not the name of a namespace");
            problems.push(CAPI_NAMESPACES.problem(why));
        }
        Self { namespaces, policy }
    }

    /// The only namespace that is watched; `None` for all.
    pub(crate) fn watched_namespace(&self) -> Option<String> {
        match &self.namespaces[..] {
            [one] => Some(one.clone()),
            _ => None,
        }
    }
}

/// The flavour `capi`, in one run of the controller.
pub(crate) struct ClusterApi {
    options: ClusterApiOptions,
    /// Whether credentials may be sent over plain http.
    allow_plaintext: bool,
    prober: Arc<probe::Prober>,
    objects: Objects<Cluster>,
    connections: Connections,
    /// Set when it is known that the status can be shared.
    kind: OnceLock<&'static Resource>,
}

impl ClusterApi {
    pub(crate) fn new(
        options: ClusterApiOptions,
        allow_plaintext: bool,
        prober: Arc<probe::Prober>,
    ) -> Self {
        Self {
            options,
            allow_plaintext,
            prober,
            objects: Objects::default(),
            connections: Connections::default(),
            kind: OnceLock::new(),
        }
    }

    /// Uses this version of the API from now on; each run sets it once.
    pub(super) fn serve(&self, kind: &'static Resource) {
        self.kind.get_or_init(|| kind);
    }

    /// Whether the object is in a namespace of this installation.
    fn is_ours(&self, object: &Object<Cluster>) -> bool {
        let namespaces = &self.options.namespaces;
        let namespace = object.metadata.namespace().unwrap_or_default();
        namespaces.is_empty() || namespaces.iter().any(|it| it == namespace)
    }

    /// The only namespace that is watched; `None` for all.
    pub(super) fn watched_namespace(&self) -> Option<String> {
        self.options.watched_namespace()
    }
}

impl Flavour for ClusterApi {
    fn name(&self) -> &'static str {
        "capi"
    }

    fn resource(&self) -> &'static Resource {
        self.kind.get().copied().unwrap_or(&CLUSTERS[0])
    }

    fn fingerprint(&self, _: &MemberId, statement: &Statement<'_>) -> u64 {
        match statement.published.filter(|_| !statement.paused) {
            Some(published) => shared_conditions::fingerprint(Some(published.health), &()),
            None if statement.paused => shared_conditions::fingerprint(None, &()),
            None => 0,
        }
    }

    fn write(&self, cluster: &MemberId, statement: &Statement<'_>) -> Option<StatusWrite> {
        let object = self.objects.get(cluster)?;
        let stored = &object.status.conditions;
        let conditions = match (self.supervision(&object), pause(&object)) {
            // It was probed when this was submitted.
            (Supervision::LeftAlone, _) => {
                return Some(StatusWrite::Shared(json!({ "status": {} })));
            }
            (_, Some(why)) => shared_conditions::paused(why, statement, stored),
            (_, None) => shared_conditions::conditions(statement.published?, statement, stored),
        };
        Some(StatusWrite::Shared(json!({ "status": { "conditions": conditions } })))
    }

    fn stored(&self, cluster: &MemberId) -> Option<Health> {
        let object = self.objects.get(cluster)?;
        let seed = shared_conditions::seed(&object.status.conditions, Timestamp::now());
        seed.map(|published| published.health)
    }

    fn keeps_checks(&self) -> bool {
        true
    }

    fn stored_check(&self, cluster: &MemberId, check: &str) -> Option<Status> {
        shared_conditions::stored_check(&self.objects.get(cluster)?.status.conditions, check)
    }

    fn removed(&self, cluster: &MemberId) {
        self.connections.remove(cluster);
    }
}

impl ObjectModel for ClusterApi {
    type Schema = Cluster;

    fn supervision(&self, object: &Object<Cluster>) -> Supervision {
        let is_there = object.status.initialization.control_plane_initialized;
        if !self.is_ours(object) || !is_there || object.metadata.deleting() {
            return Supervision::LeftAlone;
        }
        if pause(object).is_some() { Supervision::Locked } else { Supervision::Probed }
    }

    fn is_work(&self, old: &Object<Cluster>, new: &Object<Cluster>) -> bool {
        self.supervision(old) != self.supervision(new)
            || pause(old) != pause(new)
            || access::access(old) != access::access(new)
    }

    fn policy(&self, _: &Object<Cluster>) -> Policy {
        self.options.policy
    }

    fn seed(&self, object: &Object<Cluster>, now: Timestamp) -> Seed {
        let published = shared_conditions::seed(&object.status.conditions, now);
        // The conditions have no room for announced ends.
        let announced_ends =
            if published.is_some() { AnnouncedEnds::Unknown } else { AnnouncedEnds::Nothing };
        Seed { published, announced_ends }
    }

    fn record<'a>(&self, object: &'a Object<Cluster>) -> Option<&'a str> {
        shared_conditions::record(&object.status.conditions)
    }

    fn shown(&self, object: &Object<Cluster>) -> Option<u64> {
        shared_conditions::shown(&object.status.conditions, &())
    }

    /// Nobody reads the conditions of a Cluster that is being deleted, and those in other namespaces may be of another
    /// installation.
    fn is_to_be_withdrawn(&self, object: &Object<Cluster>, is_under_way: bool) -> bool {
        let is_read = self.is_ours(object) && !object.metadata.deleting();
        is_read && (is_under_way || shared_conditions::has_ours(&object.status.conditions))
    }
}

impl Resolve for ClusterApi {
    type Credential = ();

    const AUTHENTICATED_READ: bool = false;

    fn members(&self) -> Members<'_, Cluster> {
        let Self { objects, connections, prober, .. } = self;
        Members { objects, connections, prober }
    }

    fn access(&self, object: &Object<Cluster>) -> u64 {
        access::access(object)
    }

    fn addresses(&self, object: &Object<Cluster>) -> Vec<Box<str>> {
        access::addresses(object)
    }

    fn secret(&self, object: &Object<Cluster>, _: Option<&()>) -> Result<Option<String>, Problem> {
        access::secret_key(object).map(Some)
    }

    fn secret_entry(&self, _: &Object<Cluster>) -> Option<String> {
        Some(access::KEY.to_owned())
    }

    fn inputs(
        &self,
        object: &Object<Cluster>,
        _: Option<()>,
        secret: Option<SecretData>,
    ) -> Result<Inputs, Problem> {
        access::inputs(object, secret.as_ref(), self.allow_plaintext)
    }

    fn grace(&self, object: &Object<Cluster>, problem: &Problem) -> Option<Duration> {
        let is_new = !shared_conditions::has_ours(&object.status.conditions);
        (is_new && problem.code() == Code::SecretMissing).then_some(SECRET_GRACE)
    }
}
