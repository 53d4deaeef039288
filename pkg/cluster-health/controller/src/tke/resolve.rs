//! [`TkeResolver`]: the credential of a Cluster, and the client that is made of it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use events::{EventType, ObjectRef, Recorder};
use health::Code;
use informer::Informer;
use jiff::Timestamp;
use kube_api::Metadata;
use objects::Object;
use probe::{Address, Problem};
use tokio::time::Instant;
use workqueue::{Retry, WorkQueue};

use super::access::addresses;
use super::choice::Choice;
use super::cluster_states::{Connection, ObjectVersion, ResolvedFrom};
use super::fetch::{Fetch, FetchError};
use super::flavour::Tke;
use super::inputs::inputs;
use super::prober::MemberProber;
use super::status::is_imported;
use super::status::{lacks_nodes, seed};
use super::watch::{Secrets, Work};
use crate::api::tke::{CLUSTERS, Cluster, ClusterCredential, Phase};
use crate::credential_policy::{Target as Whose, is_for, may_read};
use crate::engine::{
    self, ClusterProber, HeldBack, Misconfigured, Registry, Resolve, Resolved, Supervision,
};

/// How long an imported cluster may wait for its credential before it is called malformed: who
/// makes the two objects makes one of them first.
const CREDENTIAL_GRACE: Duration = Duration::from_secs(60);

/// What was found for a Cluster.
enum Found {
    Credential(Box<ClusterCredential>),
    /// Which one was looked for, and why none was found.
    Nothing(String),
}

/// Reads ClusterCredentials and their Secrets.
pub(super) struct TkeResolver {
    pub(super) flavour: Arc<Tke>,
    pub(super) registry: Registry,
    pub(super) fetch: Fetch,
    pub(super) secrets: Secrets,
    pub(super) credentials: Informer<Metadata>,
    pub(super) recorder: Recorder,
    pub(super) queue: WorkQueue<Work>,
}

impl Resolve for TkeResolver {
    type Model = Tke;

    async fn resolve(
        &self,
        id: &engine::Cluster,
        cluster: &Arc<Object<Cluster>>,
        supervision: Supervision,
    ) -> Result<Resolved, Retry> {
        let (connection, mistake) = if supervision == Supervision::Probed {
            match self.connection(cluster, id).await {
                Ok(found) => found,
                Err(error) if self.registry.knows(id) => return Err(error.into()),
                // rule:a-cluster-is-known-before-its-credential
                Err(error) => {
                    (no_connection(Problem::new(Code::OwnLimit, error.to_string())), Some(error))
                }
            }
        } else {
            (no_connection(Problem::new(Code::BadEndpoint, "the cluster is locked")), None)
        };
        let held_back = self.held_back(cluster, id, &connection);
        let was_held_back = self.flavour.states.with(id, |entry| {
            let before = entry.was_held_back;
            entry.was_held_back |= held_back.is_some();
            before
        });
        // rule:a-restart-changes-nothing: the first probe comes before the first list.
        if held_back.is_none()
            && !self.registry.knows(id)
            && lacks_nodes(seed(cluster, Timestamp::now()).as_ref())
        {
            self.flavour.states.with(id, |entry| entry.facts.enough_nodes = Some(false));
        }
        let known = connection.resolved_from.addresses.as_deref().unwrap_or_default();
        Ok(Resolved {
            addresses: known.iter().map(|address| address.to_string().into()).collect(),
            inputs: hash(&connection),
            prober: self.prober(id.clone(), connection.client),
            held_back,
            was_held_back,
            retry: mistake.map(Retry::from),
        })
    }
}

impl TkeResolver {
    fn prober(
        &self,
        cluster: engine::Cluster,
        client: Result<Arc<probe::Client>, Problem>,
    ) -> Box<dyn FnOnce() -> Arc<dyn ClusterProber> + Send> {
        let flavour = &self.flavour;
        let (prober, states) = (Arc::clone(&flavour.prober), Arc::clone(&flavour.states));
        let options = Arc::clone(&flavour.options);
        Box::new(move || match client {
            Ok(client) => Arc::new(MemberProber { prober, client, states, cluster, options }),
            Err(problem) => {
                let detail = problem.to_string().into();
                Arc::new(Misconfigured { code: problem.code(), detail })
            }
        })
    }

    /// A new imported cluster is held back while it has no credential, for so long.
    fn held_back(
        &self,
        cluster: &Object<Cluster>,
        id: &engine::Cluster,
        connection: &Connection,
    ) -> Option<HeldBack> {
        let problem =
            connection.client.as_ref().err().filter(|it| it.code() == Code::SecretMissing)?;
        let new = is_imported(cluster) && cluster.status.phase == Phase::Initializing;
        let first_seen = self.flavour.states.with(id, |entry| entry.first_seen);
        let left = CREDENTIAL_GRACE.saturating_sub(Instant::now().duration_since(first_seen));
        let (code, why) = (problem.code(), problem.to_string());
        (new && !left.is_zero()).then_some(HeldBack { code, why, left })
    }

    /// The connection to a Cluster: the known one while the objects that it was resolved from are the
    /// same. An error whose end no watch announces, as a missing right, is returned with it and tried
    /// again.
    pub(super) async fn connection(
        &self,
        cluster: &Object<Cluster>,
        id: &engine::Cluster,
    ) -> Result<(Connection, Option<FetchError>), FetchError> {
        let (known, invalidations) =
            self.flavour.states.with(id, |entry| entry.begin_resolve(reference(cluster)));
        if let Some(connection) = &known
            && connection.resolved_at == Some(invalidations)
            && connection.resolved_from
                == self.resolved_from_now(cluster, &connection.resolved_from).await?
        {
            return Ok((connection.clone(), None));
        }
        let (mut connection, mistake) = self.new_connection(cluster).await?;
        if let (Some(Connection { client: Ok(before), .. }), Ok(client)) =
            (&known, &mut connection.client)
        {
            *client = following(before, client);
        }
        connection.resolved_at = mistake.is_none().then_some(invalidations);
        self.flavour.states.with(id, |entry| entry.set_connection(connection.clone()));
        self.look_again_if_old(id, &connection.resolved_from).await?;
        Ok((connection, mistake))
    }

    /// A change of the Secret before the connection was known did not lead to this Cluster
    /// (`rule:what-changes-while-it-is-read-is-read-again`).
    async fn look_again_if_old(
        &self,
        id: &engine::Cluster,
        resolved_from: &ResolvedFrom,
    ) -> Result<(), FetchError> {
        if let Some(seen) = &resolved_from.secret
            && self.seen_secret(Arc::clone(&seen.key)).await? != *seen
        {
            self.queue.add(Work::Cluster(Arc::clone(&id.key)));
        }
        Ok(())
    }

    /// The objects that a known connection would be resolved from now.
    async fn resolved_from_now(
        &self,
        cluster: &Object<Cluster>,
        before: &ResolvedFrom,
    ) -> Result<ResolvedFrom, FetchError> {
        let secret = match &before.secret {
            Some(seen) => Some(self.seen_secret(Arc::clone(&seen.key)).await?),
            None => None,
        };
        Ok(ResolvedFrom {
            addresses: addresses(cluster),
            tenant: tenant(cluster),
            reference: reference(cluster),
            credential: before.credential.as_ref().map(|seen| self.seen(Arc::clone(&seen.key))),
            secret,
        })
    }

    fn seen(&self, key: Arc<str>) -> ObjectVersion {
        let version = self.credentials.get(&key).map(|credential| credential.resource_version);
        ObjectVersion { key, version }
    }

    async fn seen_secret(&self, key: Arc<str>) -> Result<ObjectVersion, FetchError> {
        Ok(ObjectVersion { version: self.secrets.version(&key).await?, key })
    }

    async fn new_connection(
        &self,
        cluster: &Object<Cluster>,
    ) -> Result<(Connection, Option<FetchError>), FetchError> {
        let (addresses, reference) = (addresses(cluster), reference(cluster));
        let tenant = tenant(cluster);
        let mut resolved_from =
            ResolvedFrom { addresses, tenant, reference, credential: None, secret: None };
        let (client, mistake) = match self.look_up(cluster, &mut resolved_from).await {
            Ok(client) => (client, None),
            // rule:a-lost-credential-ends-its-client
            Err(error) if error.ends_the_client() => {
                (Err(Problem::new(error.code(), error.to_string())), Some(error))
            }
            Err(error) => return Err(error),
        };
        Ok((Connection { resolved_from, client, resolved_at: None }, mistake))
    }

    /// The client, made of what is read now; `basis` learns what that is.
    async fn look_up(
        &self,
        cluster: &Object<Cluster>,
        resolved_from: &mut ResolvedFrom,
    ) -> Result<Result<Arc<probe::Client>, Problem>, FetchError> {
        let credential = match self.find(cluster, resolved_from).await? {
            Found::Credential(credential) => credential,
            Found::Nothing(text) => {
                // When it comes it is another one than none.
                resolved_from.credential =
                    resolved_from.reference.clone().map(|key| ObjectVersion { key, version: None });
                return Ok(Err(Problem::new(Code::SecretMissing, text)));
            }
        };
        let read = &credential.metadata;
        resolved_from.credential =
            Some(ObjectVersion { key: Arc::from(&*read.name), version: read.resource_version });
        if let Err(refusal) = is_for(&credential, whose(cluster)) {
            return Ok(Err(refusal.problem(&format!("ClusterCredential {}", read.name))));
        }
        match resolved_from.addresses.clone() {
            Ok(addresses) => self.client(addresses, *credential, resolved_from).await,
            Err(problem) => Ok(Err(problem)),
        }
    }

    async fn find(
        &self,
        cluster: &Object<Cluster>,
        resolved_from: &ResolvedFrom,
    ) -> Result<Found, FetchError> {
        let nothing = match &resolved_from.reference {
            Some(reference) => match self.fetch.credential(reference).await? {
                Some(credential) => return Ok(Found::Credential(Box::new(credential))),
                None => format!("there is no ClusterCredential {reference}"),
            },
            None => match self.fetch.credential_of(whose(cluster)).await? {
                Choice::Credential { credential, others } => {
                    if others > 0 {
                        let used = &credential.metadata.name;
                        let text = format!(
                            "{} ClusterCredentials are for this cluster; the newest, {used}, is used",
                            others + 1
                        );
                        self.warn(cluster, "SeveralCredentials", text);
                    }
                    return Ok(Found::Credential(credential));
                }
                none => none.nothing_for(cluster.metadata.name()),
            },
        };
        Ok(Found::Nothing(nothing))
    }

    async fn client(
        &self,
        addresses: Vec<Address>,
        credential: ClusterCredential,
        resolved_from: &mut ResolvedFrom,
    ) -> Result<Result<Arc<probe::Client>, Problem>, FetchError> {
        let secret = match credential.secret_ref.clone() {
            None => None,
            Some(of) => {
                if let Err(problem) = may_read(&of, self.secrets.namespace.as_deref()) {
                    return Ok(Err(problem));
                }
                let key = Arc::from(format!("{}/{}", of.namespace, of.name));
                resolved_from.secret = Some(self.seen_secret(key).await?);
                self.fetch.secret(&of).await?
            }
        };
        let insecure = self.flavour.options.insecure_without_ca;
        let made = inputs(addresses, credential, secret, insecure);
        Ok(made.and_then(|inputs| self.flavour.prober.client(&inputs)).map(Arc::new))
    }

    fn warn(&self, cluster: &Object<Cluster>, reason: &'static str, text: String) {
        let (metadata, kind) = (&cluster.metadata, CLUSTERS);
        let object =
            ObjectRef::new(&kind.api_version(), &kind.kind, "", metadata.name(), &metadata.uid);
        self.recorder.event(object, EventType::Warning, reason, text);
    }
}

/// The ClusterCredential that a Cluster names.
fn reference(cluster: &Object<Cluster>) -> Option<Arc<str>> {
    let reference = cluster.body.spec.cluster_credential_ref.as_ref()?;
    (!reference.name.is_empty()).then(|| Arc::from(&*reference.name))
}

/// Whom a credential has to be for.
fn whose(cluster: &Object<Cluster>) -> Whose<'_> {
    Whose { name: cluster.metadata.name(), tenant: &cluster.body.spec.tenant_id }
}

fn tenant(cluster: &Object<Cluster>) -> Arc<str> {
    Arc::from(&*cluster.body.spec.tenant_id)
}

/// The connection of a cluster that cannot be probed.
fn no_connection(problem: Problem) -> Connection {
    let addresses = Err(problem.clone());
    let resolved_from = ResolvedFrom {
        addresses,
        tenant: "".into(),
        reference: None,
        credential: None,
        secret: None,
    };
    Connection { resolved_from, client: Err(problem), resolved_at: None }
}

/// The client to use from now on: the one before, where the new one is made of the same things,
/// since the engine keeps that one as well; else the new one, with what the other learnt of the
/// addresses.
fn following(before: &Arc<probe::Client>, new: &Arc<probe::Client>) -> Arc<probe::Client> {
    if before.fingerprint() == new.fingerprint() {
        return Arc::clone(before);
    }
    new.learn_from(before);
    Arc::clone(new)
}

fn hash(connection: &Connection) -> u64 {
    let mut hash = DefaultHasher::new();
    match &connection.client {
        Ok(client) => client.fingerprint().hash(&mut hash),
        Err(problem) => (problem.code(), problem.to_string()).hash(&mut hash),
    }
    hash.finish()
}

#[cfg(test)]
mod tests;
