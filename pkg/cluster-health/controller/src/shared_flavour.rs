//! [`SharedFlavour`]: a flavour of objects whose kind and status belong to other programs
//! (`rule:a-shared-status-is-shared`): what is alike in all of them.

use std::fmt::Debug;
use std::future::ready;
use std::sync::{Arc, OnceLock};

use flags::{Flag, Values};
use futures::future::BoxFuture;
use health::{Health, Policy, Published, Status};
use jiff::Timestamp;
use kube_api::Resource;
use manager::{Context, Failure};
use objects::{Object, Schema};
use resilience::wall_now;
use serde_json::{Value, json};

use crate::api::{Condition, is_name};
use crate::engine::{
    Companions, Connections, CredentialPlugins, Flavour, FlavourRegistry, Followed, MemberId,
    Members, ObjectModel, Objects, PluginCounter, Resolve, SecretScope, Seed, SharedKind, Source,
    Statement, StatusWrite, Supervision, Watched, watch_shared_clusters,
};
use crate::shared_conditions;

/// Secrets that are read at the same time.
const WORKERS: usize = 64;

/// The values of the flags that each such flavour has, checked.
#[derive(Clone, Debug)]
pub(crate) struct SharedOptions {
    /// Namespaces of the objects; empty for all.
    pub namespaces: Vec<String>,
    pub policy: Policy,
}

impl SharedOptions {
    /// Judges the flag of the namespaces; `policy` is that of the flags that the flavour shares with KubeFed.
    pub(crate) fn judge(
        values: &Values,
        flag: &Flag<Vec<String>>,
        policy: Policy,
        problems: &mut Vec<flags::Problem>,
    ) -> Self {
        Self { namespaces: namespaces(values, flag, problems), policy }
    }

    /// The only namespace that is watched; `None` for all.
    pub(crate) fn watched_namespace(&self) -> Option<String> {
        match &self.namespaces[..] {
            [one] => Some(one.clone()),
            _ => None,
        }
    }

    /// Whether the object is in a namespace of this installation.
    pub(crate) fn include<S: Schema>(&self, object: &Object<S>) -> bool {
        let namespace = object.metadata.namespace().unwrap_or_default();
        self.namespaces.is_empty() || self.namespaces.iter().any(|it| it == namespace)
    }
}

/// The namespaces that a flag lists.
pub(crate) fn namespaces(
    values: &Values,
    flag: &Flag<Vec<String>>,
    problems: &mut Vec<flags::Problem>,
) -> Vec<String> {
    let names = values.get(flag);
    for name in names.iter().filter(|name| !is_name(name)) {
        problems.push(flag.problem(format!("{name:?} is not the name of a namespace")));
    }
    names
}

/// The objects of such a flavour in one run of the controller, and how they are reached.
pub(crate) struct Shared<S: Schema> {
    pub(crate) options: SharedOptions,
    /// Whether credentials may be sent over plain http.
    pub(crate) allow_plaintext: bool,
    pub(crate) prober: Arc<probe::Prober>,
    pub(crate) objects: Objects<S>,
    pub(crate) connections: Connections,
    /// `None` for a flavour whose credentials no exec plugin prints.
    pub(crate) plugins: Option<Arc<CredentialPlugins>>,
    /// The version of the API that is used; set when it is known that its status can be shared.
    kind: OnceLock<&'static Resource>,
}

impl<S: Schema> Shared<S> {
    pub(crate) fn new(
        options: SharedOptions,
        allow_plaintext: bool,
        prober: Arc<probe::Prober>,
    ) -> Self {
        let (objects, connections) = (Objects::default(), Connections::default());
        let kind = OnceLock::new();
        Self { options, allow_plaintext, prober, objects, connections, plugins: None, kind }
    }

    /// With exec plugins, whose runs are counted.
    pub(crate) fn with_plugins(self, counter: PluginCounter) -> Self {
        Self { plugins: Some(Arc::new(CredentialPlugins::new(counter))), ..self }
    }
}

type StatusOf<F> = <<F as SharedFlavour>::Schema as Schema>::Status;

/// A flavour whose CRD and status belong to others: what its objects mean, without I/O.
pub(crate) trait SharedFlavour: Sized + Send + Sync + 'static {
    type Schema: Schema<Status: PartialEq>;

    /// The label of metrics.
    const NAME: &'static str;
    const KIND: SharedKind;
    /// The name of the queue in metrics.
    const QUEUE: &'static str;
    /// Grants what is read and written of the kind.
    const MANIFEST: &'static str;
    /// Grants the Secrets of one namespace.
    const SECRETS_MANIFEST: &'static str;

    fn shared(&self) -> &Shared<Self::Schema>;

    /// Whether an object in a namespace of this installation stands for a cluster that is there.
    fn is_live(&self, object: &Object<Self::Schema>) -> bool;

    /// Why the cluster is not probed on purpose; `None` when it is.
    fn pause(_object: &Object<Self::Schema>) -> Option<&'static str> {
        None
    }

    /// See [`ObjectModel::access`].
    fn access_of(object: &Object<Self::Schema>) -> u64;

    fn conditions(status: &StatusOf<Self>) -> &[Condition];

    /// Whether a status has fields of ours.
    fn has_ours(status: &StatusOf<Self>) -> bool {
        shared_conditions::has_ours(Self::conditions(status))
    }

    /// Whether fields of ours are taken away when the cluster is left alone.
    fn may_withdraw(&self, _object: &Object<Self::Schema>) -> bool {
        true
    }

    /// The health that an object shows; `None` when it shows none.
    fn seed_of(status: &StatusOf<Self>, now: Timestamp) -> Option<Published> {
        shared_conditions::seed(Self::conditions(status), now)
    }

    /// What matters in the status besides the conditions that each such flavour has.
    fn further(&self, _object: &Object<Self::Schema>) -> impl Debug {}

    /// The fields of the status.
    fn status(
        &self,
        object: &Object<Self::Schema>,
        published: &Published,
        statement: &Statement<'_>,
    ) -> Value {
        let stored = Self::conditions(&object.status);
        json!({ "conditions": shared_conditions::conditions(published, statement, stored) })
    }

    /// See [`Flavour::removed`].
    fn forget(&self, _cluster: &MemberId) {}

    /// The work in addition to probes.
    fn companions(_flavour: Arc<Self>, _followed: &Followed<'_, Self>) -> Companions
    where
        Self: Resolve,
    {
        Companions { ready: Box::pin(ready(())), run: Box::pin(ready(Ok(()))) }
    }
}

impl<F: SharedFlavour> Flavour for F {
    fn name(&self) -> &'static str {
        F::NAME
    }

    /// Until the version is known nothing is written.
    fn resource(&self) -> &'static Resource {
        self.shared().kind.get().copied().unwrap_or(&F::KIND.versions[0])
    }

    /// A run may use any version.
    fn further_kinds(&self) -> &'static [Resource] {
        F::KIND.versions
    }

    fn fingerprint(&self, cluster: &MemberId, statement: &Statement<'_>) -> u64 {
        let published = statement.published.filter(|_| !statement.paused);
        let object = self.shared().objects.get(cluster);
        let Some(object) = object.filter(|_| statement.paused || published.is_some()) else {
            return 0;
        };
        let health = published.map(|published| published.health);
        shared_conditions::fingerprint(health, &self.further(&object))
    }

    fn write(&self, cluster: &MemberId, statement: &Statement<'_>) -> Option<StatusWrite> {
        let object = self.shared().objects.get(cluster)?;
        let status = match (self.supervision(&object), F::pause(&object)) {
            // It was probed when this was submitted.
            (Supervision::LeftAlone, _) => json!({}),
            (_, Some(why)) => {
                let stored = F::conditions(&object.status);
                json!({ "conditions": shared_conditions::paused(why, statement, stored) })
            }
            (_, None) => self.status(&object, statement.published?, statement),
        };
        Some(StatusWrite::Shared(json!({ "status": status })))
    }

    fn stored(&self, cluster: &MemberId) -> Option<Health> {
        let seed = F::seed_of(&self.shared().objects.get(cluster)?.status, wall_now());
        seed.map(|published| published.health)
    }

    fn keeps_checks(&self) -> bool {
        true
    }

    fn stored_check(&self, cluster: &MemberId, check: &str) -> Option<Status> {
        let object = self.shared().objects.get(cluster)?;
        shared_conditions::stored_check(F::conditions(&object.status), check)
    }

    fn removed(&self, cluster: &MemberId) {
        self.shared().connections.remove(cluster);
        if let Some(plugins) = &self.shared().plugins {
            plugins.forget(&cluster.uid);
        }
        self.forget(cluster);
    }
}

impl<F: SharedFlavour> ObjectModel for F {
    type Schema = F::Schema;

    fn members(&self) -> Members<'_, F::Schema> {
        let Shared { objects, connections, prober, plugins, .. } = self.shared();
        Members { objects, connections, prober, plugins: plugins.as_ref() }
    }

    fn supervision(&self, object: &Object<F::Schema>) -> Supervision {
        if !self.shared().options.include(object) || !self.is_live(object) {
            return Supervision::LeftAlone;
        }
        if F::pause(object).is_some() { Supervision::Locked } else { Supervision::Probed }
    }

    fn is_work(&self, old: &Object<F::Schema>, new: &Object<F::Schema>) -> bool {
        self.supervision(old) != self.supervision(new)
            || F::pause(old) != F::pause(new)
            || F::access_of(old) != F::access_of(new)
    }

    fn access(&self, object: &Object<F::Schema>) -> u64 {
        F::access_of(object)
    }

    fn policy(&self, _: &Object<F::Schema>) -> Policy {
        self.shared().options.policy
    }

    fn seed(&self, object: &Object<F::Schema>, now: Timestamp) -> Seed {
        Seed::without_ends(F::seed_of(&object.status, now))
    }

    fn record<'a>(&self, object: &'a Object<F::Schema>) -> Option<&'a str> {
        shared_conditions::record(F::conditions(&object.status))
    }

    fn shown(&self, object: &Object<F::Schema>) -> Option<u64> {
        shared_conditions::shown(F::conditions(&object.status), &self.further(object))
    }

    fn is_to_be_withdrawn(&self, object: &Object<F::Schema>, is_under_way: bool) -> bool {
        self.may_withdraw(object) && (is_under_way || F::has_ours(&object.status))
    }
}

impl<F: SharedFlavour + Resolve> Source for F {
    fn watch(
        self: Arc<Self>,
        context: Context,
        registry: FlavourRegistry,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let watched = Watched {
            namespace: self.shared().options.watched_namespace(),
            secrets: SecretScope::InUse,
            credentials: None,
            manifest: F::MANIFEST,
            secrets_manifest: F::SECRETS_MANIFEST,
            queue: F::QUEUE,
            workers: WORKERS,
            purpose: "cluster-health-secrets",
        };
        let (served, of) = (Arc::clone(&self), Arc::clone(&self));
        let serve = move |kind| {
            served.shared().kind.get_or_init(|| kind);
        };
        let companions = move |followed: &Followed<'_, Self>| F::companions(of, followed);
        let watched = (watched, F::KIND);
        Box::pin(watch_shared_clusters(self, context, registry, watched, serve, companions))
    }
}
