//! [`Pipeline`]: from the object of a cluster to its [`Target`], the same for all flavours.
//!
//! | part | the flavour says | the pipeline does |
//! |---|---|---|
//! | Watch | [`ObjectModel::supervision`], [`ObjectModel::is_work`] | subscription, first list, ownership, deletion |
//! | Resolve | [`Resolve::source`], [`Resolve::inputs`] | reads credentials and Secrets, takes what exec plugins printed, swaps clients, holds back, retries |
//! | Judge | [`ObjectModel::policy`], [`ObjectModel::seed`] | builds the [`Target`]; the engine decides |
//! | Status | [`ObjectModel::shown`], [`Flavour::fingerprint`], [`Flavour::write`] | compares with the status that the object shows |
//!
//! [`Flavour::fingerprint`]: super::Flavour::fingerprint
//! [`Flavour::write`]: super::Flavour::write

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use events::{EventType, Recorder};
use health::{Code, EvidenceSource, Policy, Record};
use informer::Informer;
use kube_api::Metadata;
use objects::Object;
use probe::{Client, Inputs, Problem};
use resilience::wall_now;
use workqueue::{Next, Reconcile, Retry, WorkQueue};

use super::beats::NO_NAMESPACE;
use super::connections::{Connection, ObjectVersion, ResolvedFrom, SecretCache};
use super::flavour::{ClusterProber, MemberId, Misconfigured, Target};
use super::flavour_registry::{FlavourRegistry, Look};
use super::probes::{MakeProber, Rereads, reread};
use super::resolve::{
    CredentialSource, Found, Members, ObjectModel, ReadCredentials, Resolve, Seed, Supervision,
    identity,
};
use crate::secret_data::{ReadError, SecretData};

/// Until a cluster is looked at again whose last write has not ended.
const LATER: Duration = Duration::from_millis(100);

/// Heartbeats without a renewal after which fields in the status of a cluster that is left alone belong to no installation.
const RENEWALS_MISSED: u32 = 3;

/// Something to look at again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// The cluster with this key.
    Cluster(Arc<str>),
    /// The clusters that use the credential object of this name, and the one that it is for.
    Credential(Arc<str>),
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Cluster(key) | Self::Credential(key)) = self;
        f.write_str(key)
    }
}

/// The clusters of one flavour, from the cache of their objects to the engine.
pub(crate) struct Pipeline<R: Resolve> {
    pub(crate) flavour: Arc<R>,
    pub(crate) registry: FlavourRegistry,
    pub(crate) objects: Informer<Object<R::Schema>>,
    pub(crate) queue: WorkQueue<Work>,
    pub(crate) secrets: SecretCache,
    /// `None` for a flavour whose only credentials are Secrets.
    pub(crate) credentials: Option<Credentials<R>>,
    /// Reads Secrets.
    pub(crate) client: kube::Client,
    pub(crate) recorder: Recorder,
    pub(crate) probers: MakeProber<R>,
    pub(crate) of_first_list: FirstList,
    pub(crate) rereads: Rereads,
}

/// UIDs of the live clusters in the first list.
#[derive(Default)]
pub(crate) struct FirstList(OnceLock<HashSet<Arc<str>>>);

/// The credential objects of a flavour.
pub(crate) struct Credentials<R: Resolve> {
    pub(crate) cache: Informer<Metadata>,
    pub(crate) reader: CredentialReader<R>,
}

pub(crate) type CredentialReader<R> =
    Box<dyn ReadCredentials<<R as ObjectModel>::Schema, <R as Resolve>::Credential>>;

impl<R: Resolve> Reconcile for Pipeline<R> {
    type Key = Work;

    async fn reconcile(&self, work: &Work) -> Result<Next, Retry> {
        let key = match work {
            Work::Cluster(key) => key,
            Work::Credential(name) => return self.credential(name).await,
        };
        match self.registry.look(&self.objects, key).await? {
            Look::At(object) => self.register(&object, self.together(&object)).await,
            Look::Later => Ok(Next::After(LATER)),
            // The engine and the flavour know already.
            Look::Gone | Look::Elsewhere => {
                self.secrets.end_unused(self.flavour.members().connections);
                Ok(Next::Done)
            }
        }
    }
}

impl<R: Resolve> Pipeline<R> {
    /// Queues the clusters that use a credential object, and the one that it is for: that may have
    /// none yet, or an older one.
    async fn credential(&self, name: &str) -> Result<Next, Retry> {
        let Some(credentials) = &self.credentials else { return Ok(Next::Done) };
        let connections = &self.flavour.members().connections;
        let users = connections.users_of_credential(name);
        for user in &users {
            self.queue.add(Work::Cluster(Arc::clone(user)));
        }
        if let Some(owner) = credentials.reader.owner(name).await?
            && !users.contains(&owner)
        {
            connections.invalidate(&owner);
            self.queue.add(Work::Cluster(owner));
        }
        Ok(Next::Done)
    }

    /// Registers a cluster that came with so many others.
    pub(crate) async fn register(
        &self,
        object: &Arc<Object<R::Schema>>,
        together: usize,
    ) -> Result<Next, Retry> {
        let cluster = identity(object);
        let next = match self.flavour.supervision(object) {
            Supervision::LeftAlone => {
                return Ok(self.leave_alone(cluster, object));
            }
            Supervision::Locked => {
                self.arrive(&cluster, object);
                let locked = Problem::new(Code::BadEndpoint, "the cluster is locked");
                let target = self.target(object, &cluster, Err(locked), together);
                // Of a locked cluster no address is known: another one counts when it is probed again.
                self.registry.upsert(Target { paused: true, addresses: Vec::new(), ..target });
                Ok(Next::Done)
            }
            Supervision::Probed => self.resolve(object, &cluster, together).await,
        };
        // A deletion while the credential was read came before the cluster was registered
        // (`rule:nothing-outlives-its-object`).
        let is_there = |object: Arc<Object<R::Schema>>| object.metadata.uid == cluster.uid;
        if !self.objects.get(&cluster.key).is_some_and(is_there) {
            self.registry.remove(&cluster);
        }
        next
    }

    /// Ends the probes of a cluster, and takes away the fields of ours from its status, a first one that is being written
    /// included. Fields that another process wrote may be of another installation, with another selector: they go when
    /// nobody has renewed them for some heartbeats.
    fn leave_alone(&self, cluster: MemberId, object: &Object<R::Schema>) -> Next {
        let is_written = self.registry.is_writing(&cluster);
        let was_ours = is_written || self.registry.knows(&cluster);
        self.registry.remove(&cluster);
        self.secrets.end_unused(self.flavour.members().connections);
        if !self.flavour.is_to_be_withdrawn(object, is_written) {
            return Next::Done;
        }
        let (now, Policy { heartbeat, cadence, .. }) = (wall_now(), self.flavour.policy(object));
        let renewed = self.flavour.seed(object, now).published.and_then(|it| it.probed);
        let age = renewed.and_then(|at| Duration::try_from(now.duration_since(at)).ok());
        let outdated_in =
            age.and_then(|age| (RENEWALS_MISSED * heartbeat.max(cadence.period)).checked_sub(age));
        match outdated_in {
            Some(left) if !was_ours && !left.is_zero() => Next::After(left),
            _ => {
                self.registry.withdraw(cluster);
                Next::Done
            }
        }
    }

    async fn resolve(
        &self,
        object: &Object<R::Schema>,
        cluster: &MemberId,
        together: usize,
    ) -> Result<Next, Retry> {
        let (evidence, problem) = self.flavour.members().objects.evidence_source(object);
        if let Some(problem) = problem {
            self.warn(cluster, "EvidenceInvalid", problem);
        }
        let watched_by = |target: Target| {
            let policy = Policy { evidence, ..target.policy };
            self.registry.upsert(Target { policy, ..target });
        };
        if evidence == EvidenceSource::Beats {
            self.follow_lease(object, cluster);
            let unused = Problem::new(Code::OwnLimit, "the cluster is judged by its Lease alone");
            watched_by(self.target(object, cluster, Err(unused), together));
            return Ok(Next::Done);
        }
        let (client, error) = match self.connection(object, cluster).await {
            Ok((connection, error)) => (connection.client, error),
            Err(error) if self.registry.knows(cluster) => return Err(error.into()),
            Err(error) => (Err(Problem::new(Code::OwnLimit, error.to_string())), Some(error)),
        };
        let problem = client.as_ref().err();
        let grace = problem.and_then(|problem| self.flavour.grace(object, problem));
        let (left, was_held_back) = self.flavour.members().connections.hold_back(cluster, grace);
        let retry = error.map(Retry::from);
        if let (Some(left), Some(problem)) = (left, problem) {
            self.registry.hold_back(cluster, problem.code(), &problem.to_string());
            return retry.map_or(Ok(Next::After(left)), Err);
        }
        self.arrive(cluster, object);
        let together = if was_held_back { 0 } else { together };
        watched_by(self.target(object, cluster, client, together));
        retry.map_or(Ok(Next::Done), Err)
    }

    /// A cluster is judged by its Lease alone: nothing is read for it, and its client goes.
    fn follow_lease(&self, object: &Object<R::Schema>, cluster: &MemberId) {
        self.flavour.members().connections.remove(cluster);
        self.arrive(cluster, object);
        if !self.registry.watches_beats() && !self.registry.follows_lease(cluster) {
            self.warn(cluster, "EvidenceInvalid", NO_NAMESPACE.to_owned());
        }
    }

    fn arrive(&self, cluster: &MemberId, object: &Object<R::Schema>) {
        if !self.registry.knows(cluster) {
            self.flavour.arrives(cluster, object);
        }
    }

    fn target(
        &self,
        object: &Object<R::Schema>,
        cluster: &MemberId,
        client: Result<Arc<Client>, Problem>,
        together: usize,
    ) -> Target {
        let now = wall_now();
        let Seed { published, announced_ends } = self.flavour.seed(object, now);
        let record = self.flavour.record(object).and_then(|text| Record::decode(text, now));
        let policy = self.flavour.policy(object);
        let objects = self.flavour.members().objects;
        let (objective, problem) = objects.objective(object, policy.objective);
        if let Some(problem) = problem {
            self.warn(cluster, "ObjectiveInvalid", problem);
        }
        let inputs = match &client {
            Ok(client) => client.fingerprint().number(),
            Err(problem) => health::hash(&format!("{}: {problem}", problem.code())),
        };
        Target {
            cluster: cluster.clone(),
            addresses: self.flavour.addresses(object),
            inputs,
            prober: self.prober(cluster.clone(), client),
            policy: Policy { objective, ..policy },
            labels: object.metadata.labels.clone(),
            paused: false,
            published,
            record,
            written: self.flavour.shown(object),
            announced_ends,
            together,
        }
    }

    fn prober(
        &self,
        cluster: MemberId,
        client: Result<Arc<Client>, Problem>,
    ) -> Box<dyn FnOnce() -> Arc<dyn ClusterProber> + Send> {
        let (flavour, make) = (Arc::clone(&self.flavour), self.probers);
        // The watch of credential objects shows a rotation; a refusal is not worth two reads.
        let reads = (self.client.clone(), self.rereads.clone());
        let reads = self.credentials.is_none().then_some(reads);
        Box::new(move || match client {
            Ok(client) => {
                let read = reads.map(|(api, turns)| reread(&flavour, api, turns, cluster.clone()));
                make(flavour, cluster, client, read)
            }
            Err(problem) => {
                let (code, detail) = (problem.code(), problem.to_string().into());
                Arc::new(Misconfigured { code, detail })
            }
        })
    }

    /// The connection of a cluster: the known one while what it was resolved from is the same. An
    /// error whose end no watch announces, as a missing right, is returned with it.
    pub(crate) async fn connection(
        &self,
        object: &Object<R::Schema>,
        cluster: &MemberId,
    ) -> Result<(Connection, Option<ReadError>), ReadError> {
        let (flavour, members) = (&*self.flavour, self.flavour.members());
        let (known, invalidations) =
            members.connections.begin_resolve(cluster, flavour.reference(object));
        let access = flavour.access(object);
        if let Some(known) = &known
            && known.resolved_at == Some(invalidations)
            && known.resolved_from.access == access
            && self.is_current(&known.resolved_from).await?
        {
            return Ok((known.clone(), None));
        }
        let mut resolved_from = ResolvedFrom { access, credential: None, secret: None };
        let (client, error) = match self.look_up(object, cluster, &mut resolved_from).await {
            Ok(inputs) => (members.prober.client(&inputs), None),
            Err(ReadError::Problem(problem)) => (Err(problem), None),
            Err(error) if error.ends_the_client() => {
                (Err(Problem::new(error.code(), error.to_string())), Some(error))
            }
            Err(error) => return Err(error),
        };
        let before = known.as_ref().and_then(|known| known.client.as_ref().ok());
        let client = client.map(|client| following(before, client));
        let resolved_at = error.is_none().then_some(invalidations);
        let connection = Connection { resolved_from, client, resolved_at };
        if members.connections.set(cluster, connection.clone(), &flavour.addresses(object)) {
            flavour.retargeted(cluster);
        }
        Ok((connection, error))
    }

    /// Whether the credential and the Secret of a connection are those that the caches show.
    async fn is_current(&self, from: &ResolvedFrom) -> Result<bool, ReadError> {
        let version = |key: &str| {
            let cache = &self.credentials.as_ref()?.cache;
            Some(cache.get(key)?.resource_version)
        };
        if let Some(used) = &from.credential
            && version(&used.key) != used.version
        {
            return Ok(false);
        }
        match &from.secret {
            Some(used) => Ok(self.secrets.version(&used.key).await? == used.version),
            None => Ok(true),
        }
    }

    /// Reads what the client is made of; `from` takes the versions that were read.
    async fn look_up(
        &self,
        object: &Object<R::Schema>,
        cluster: &MemberId,
        from: &mut ResolvedFrom,
    ) -> Result<Inputs, ReadError> {
        let flavour = &*self.flavour;
        let found = match &self.credentials {
            Some(credentials) => Some(credentials.reader.find(object).await?),
            None => None,
        };
        let credential = match found {
            None => None,
            Some(Found::Credential { credential, version, warning }) => {
                from.credential = Some(version);
                if let Some((reason, text)) = warning {
                    self.warn(cluster, reason, text);
                }
                Some(credential)
            }
            Some(Found::Nothing(text)) => {
                // When it comes it has another version than none.
                let missing = |key| ObjectVersion { key, version: None };
                from.credential = flavour.reference(object).map(missing);
                return Err(Problem::new(Code::SecretMissing, text).into());
            }
        };
        let Members { connections, plugins, .. } = flavour.members();
        let source = flavour.source(object, credential.as_ref());
        if let (Some(plugins), false) = (plugins, matches!(source, Ok(CredentialSource::Plugin(_))))
        {
            plugins.forget(&cluster.uid);
        }
        let (secret, plugin) = match source? {
            CredentialSource::Nothing => (None, None),
            CredentialSource::Secret { key, entry } => (Some((key, entry)), None),
            CredentialSource::Plugin(plugin) => (None, Some(plugin)),
        };
        connections.use_secret(cluster, secret.as_ref().map(|(key, _)| key));
        let secret = match secret {
            None => None,
            Some((key, entry)) => {
                let version = self.secrets.version(&key).await?;
                from.secret = Some(ObjectVersion { key: Arc::clone(&key), version });
                SecretData::read(&self.client, &key, entry.as_deref()).await?
            }
        };
        let inputs = flavour.inputs(object, credential, secret);
        let Some(plugin) = plugin else { return Ok(inputs?) };
        let Some(plugins) = plugins else {
            // Never without a credential: many members answer anybody.
            let text = format!("the exec plugin of access provider {} is not run", plugin.provider);
            return Err(Problem::new(Code::PluginFailed, text).into());
        };
        if inputs.is_err() {
            plugins.forget(&cluster.uid);
        }
        let (inputs, (token, pair)) = (inputs?, plugins.credential(cluster, plugin)?);
        Ok(Inputs { token, pair, ..inputs })
    }

    fn warn(&self, cluster: &MemberId, reason: &'static str, text: String) {
        let object = cluster.object_ref(self.flavour.resource());
        self.recorder.event(object, EventType::Warning, reason, text);
    }

    /// How many clusters came with this one in the first list; 0 for one that was created, or
    /// became live, later.
    pub(crate) fn together(&self, object: &Object<R::Schema>) -> usize {
        let first = self.note_first_list();
        if first.contains(&object.metadata.uid) { first.len() } else { 0 }
    }

    /// Takes the clusters that are listed now as those of the first list; later calls change nothing.
    pub(crate) fn note_first_list(&self) -> &HashSet<Arc<str>> {
        self.of_first_list.0.get_or_init(|| {
            self.objects.frozen(|all| {
                let live = |it: &&Arc<Object<R::Schema>>| {
                    self.flavour.supervision(it) != Supervision::LeftAlone
                };
                all.values().filter(live).map(|it| Arc::clone(&it.metadata.uid)).collect()
            })
        })
    }
}

/// The client to use from now on: the one before where the new one is made of the same things, since
/// the engine keeps that one as well; else the new one, with what the other knows of the addresses.
fn following(before: Option<&Arc<Client>>, new: Client) -> Arc<Client> {
    match before {
        Some(before) if before.fingerprint() == new.fingerprint() => Arc::clone(before),
        Some(before) => {
            new.learn_from(before);
            Arc::new(new)
        }
        None => Arc::new(new),
    }
}
