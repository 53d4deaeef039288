//! From a Cluster to what the engine is told of it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use events::{EventType, ObjectRef};
use health::Code;
use jiff::Timestamp;
use objects::Object;
use probe::{Address, Problem};
use tokio::time::Instant;
use workqueue::{Next, Retry};

use super::access::addresses;
use super::book::{Basis, Seen, Way, identity};
use super::choice::Choice;
use super::fetch::FetchError;
use super::inputs::inputs;
use super::prober::MemberProber;
use super::status::{ends_told, fingerprint_of, lacks_nodes, seed};
use super::supervision::{Supervision, is_imported};
use super::watching::{Watching, Work};
use crate::api::tke::{CLUSTERS, Cluster, ClusterCredential, Phase};
use crate::credential_policy::{Target as Whose, is_for, may_read};
use crate::engine::{self, ClusterProber, Misconfigured, Target};

/// How long an imported cluster may wait for its credential before it is called malformed: who
/// makes the two objects makes one of them first.
const CREDENTIAL_GRACE: Duration = Duration::from_secs(60);

/// What was found for a Cluster.
enum Found {
    Credential(Box<ClusterCredential>),
    /// Which one was looked for, and why none was found.
    Nothing(String),
}

impl Watching {
    /// Tells the engine of a Cluster, or that there is nothing to do about it.
    pub(super) async fn tell(
        &self,
        cluster: &Object<Cluster>,
        together: usize,
    ) -> Result<Next, Retry> {
        let id = identity(cluster);
        let told = match Supervision::of(cluster) {
            Supervision::LeftAlone => {
                self.registry.remove(&id);
                return Ok(Next::Done);
            }
            Supervision::Locked => {
                // Nothing is looked up.
                let way = no_way(Problem::new(Code::BadEndpoint, "the cluster is locked"));
                Ok(self.take_in(cluster, &id, way, true, together))
            }
            Supervision::Probed => match self.way(cluster, &id).await {
                Ok((way, mistake)) => {
                    let next = self.take_in(cluster, &id, way, false, together);
                    mistake.map_or(Ok(next), |error| Err(error.into()))
                }
                Err(error) => {
                    // rule:a-cluster-is-known-before-its-credential
                    if !self.registry.knows(&id) {
                        let way = no_way(Problem::new(Code::OwnLimit, error.to_string()));
                        self.take_in(cluster, &id, way, false, together);
                    }
                    Err(error.into())
                }
            },
        };
        // Its deletion may have been told meanwhile, and then was before its arrival
        // (`rule:nothing-outlives-its-object`).
        let is_there = |object: Arc<Object<Cluster>>| object.metadata.uid == id.uid;
        if !self.clusters.get(&id.key).is_some_and(is_there) {
            self.registry.remove(&id);
        }
        told
    }

    fn take_in(
        &self,
        cluster: &Object<Cluster>,
        id: &engine::Cluster,
        way: Way,
        locked: bool,
        together: usize,
    ) -> Next {
        if let (Some(wait), Err(problem)) = (self.still_waits(cluster, id, &way), &way.client) {
            self.flavour.book.with(id, |entry| entry.has_waited = true);
            self.registry.hold_back(id, problem.code(), &problem.to_string());
            return Next::After(wait);
        }
        // One whose credential came late is probed at once and not in its turn of the first list
        // (`rule:changed-inputs-are-probed-within-a-second`).
        let has_waited = self.flavour.book.with(id, |entry| entry.has_waited);
        let together = if has_waited { 0 } else { together };
        let target = self.target(cluster, id.clone(), way, locked, together);
        // rule:a-restart-changes-nothing: the first probe comes before the first list.
        if !self.registry.knows(id) && lacks_nodes(target.published.as_ref()) {
            self.flavour.book.with(id, |entry| entry.facts.enough_nodes = Some(false));
        }
        self.registry.upsert(target);
        Next::Done
    }

    fn target(
        &self,
        cluster: &Object<Cluster>,
        id: engine::Cluster,
        way: Way,
        paused: bool,
        together: usize,
    ) -> Target {
        let known = way.basis.addresses.as_deref().unwrap_or_default();
        Target {
            addresses: known.iter().map(|address| address.to_string().into()).collect(),
            inputs: hash(&way),
            policy: self.flavour.options.policy,
            paused,
            published: seed(cluster, Timestamp::now()),
            written: Some(fingerprint_of(cluster, None, self.flavour.schema())),
            ends_told: ends_told(cluster),
            together,
            prober: self.prober(id.clone(), way.client),
            cluster: id,
        }
    }

    fn prober(
        &self,
        cluster: engine::Cluster,
        client: Result<Arc<probe::Client>, Problem>,
    ) -> Box<dyn FnOnce() -> Arc<dyn ClusterProber> + Send> {
        let flavour = &self.flavour;
        let (prober, book) = (Arc::clone(&flavour.prober), Arc::clone(&flavour.book));
        let options = Arc::clone(&flavour.options);
        Box::new(move || match client {
            Ok(client) => Arc::new(MemberProber { prober, client, book, cluster, options }),
            Err(problem) => {
                let detail = problem.to_string().into();
                Arc::new(Misconfigured { code: problem.code(), detail })
            }
        })
    }

    /// How long an imported cluster that is new may go on without a credential.
    fn still_waits(
        &self,
        cluster: &Object<Cluster>,
        id: &engine::Cluster,
        way: &Way,
    ) -> Option<Duration> {
        let missing = matches!(&way.client, Err(problem) if problem.code() == Code::SecretMissing);
        let new = is_imported(cluster) && cluster.status.phase == Phase::Initializing;
        let first_seen = self.flavour.book.with(id, |entry| entry.first_seen);
        let left = CREDENTIAL_GRACE.saturating_sub(Instant::now().duration_since(first_seen));
        (missing && new && !left.is_zero()).then_some(left)
    }

    /// The way to a Cluster; the known one as long as what it rests on is the same. With the
    /// mistake for which there is none, when that may be mended where nobody tells us, as a missing
    /// right is: it is tried again.
    async fn way(
        &self,
        cluster: &Object<Cluster>,
        id: &engine::Cluster,
    ) -> Result<(Way, Option<FetchError>), FetchError> {
        let (known, doubts) = self.flavour.book.with(id, |entry| entry.seek(reference(cluster)));
        if let Some(way) = &known
            && way.settles == Some(doubts)
            && way.basis == self.basis_now(cluster, &way.basis).await?
        {
            return Ok((way.clone(), None));
        }
        let (mut way, mistake) = self.new_way(cluster).await?;
        if let (Some(Way { client: Ok(before), .. }), Ok(client)) = (&known, &mut way.client) {
            *client = following(before, client);
        }
        way.settles = mistake.is_none().then_some(doubts);
        self.flavour.book.with(id, |entry| entry.lead(way.clone()));
        self.look_again_if_old(id, &way.basis).await?;
        Ok((way, mistake))
    }

    /// Who heard of a change of the Secret before the way was known did not know that this Cluster
    /// uses it (`rule:what-changes-while-it-is-read-is-read-again`).
    async fn look_again_if_old(
        &self,
        id: &engine::Cluster,
        basis: &Basis,
    ) -> Result<(), FetchError> {
        if let Some(seen) = &basis.secret
            && self.seen_secret(Arc::clone(&seen.key)).await? != *seen
        {
            self.queue.add(Work::Cluster(Arc::clone(&id.key)));
        }
        Ok(())
    }

    /// What a known way would rest on now.
    async fn basis_now(
        &self,
        cluster: &Object<Cluster>,
        before: &Basis,
    ) -> Result<Basis, FetchError> {
        let secret = match &before.secret {
            Some(seen) => Some(self.seen_secret(Arc::clone(&seen.key)).await?),
            None => None,
        };
        Ok(Basis {
            addresses: addresses(cluster),
            tenant: tenant(cluster),
            reference: reference(cluster),
            credential: before.credential.as_ref().map(|seen| self.seen(Arc::clone(&seen.key))),
            secret,
        })
    }

    fn seen(&self, key: Arc<str>) -> Seen {
        let version = self.credentials.get(&key).map(|credential| credential.resource_version);
        Seen { key, version }
    }

    async fn seen_secret(&self, key: Arc<str>) -> Result<Seen, FetchError> {
        Ok(Seen { version: self.secrets.version(&key).await?, key })
    }

    async fn new_way(
        &self,
        cluster: &Object<Cluster>,
    ) -> Result<(Way, Option<FetchError>), FetchError> {
        let (addresses, reference) = (addresses(cluster), reference(cluster));
        let tenant = tenant(cluster);
        let mut basis = Basis { addresses, tenant, reference, credential: None, secret: None };
        let (client, mistake) = match self.look_up(cluster, &mut basis).await {
            Ok(client) => (client, None),
            // rule:a-lost-credential-ends-its-client
            Err(error) if error.ends_the_client() => {
                (Err(Problem::new(error.code(), error.to_string())), Some(error))
            }
            Err(error) => return Err(error),
        };
        Ok((Way { basis, client, settles: None }, mistake))
    }

    /// The client, made of what is read now; `basis` learns what that is.
    async fn look_up(
        &self,
        cluster: &Object<Cluster>,
        basis: &mut Basis,
    ) -> Result<Result<Arc<probe::Client>, Problem>, FetchError> {
        let credential = match self.find(cluster, basis).await? {
            Found::Credential(credential) => credential,
            Found::Nothing(text) => {
                // When it comes it is another one than none.
                basis.credential = basis.reference.clone().map(|key| Seen { key, version: None });
                return Ok(Err(Problem::new(Code::SecretMissing, text)));
            }
        };
        let read = &credential.metadata;
        basis.credential =
            Some(Seen { key: Arc::from(&*read.name), version: read.resource_version });
        if let Err(refusal) = is_for(&credential, whose(cluster)) {
            return Ok(Err(refusal.problem(&format!("ClusterCredential {}", read.name))));
        }
        match basis.addresses.clone() {
            Ok(addresses) => self.client(addresses, *credential, basis).await,
            Err(problem) => Ok(Err(problem)),
        }
    }

    async fn find(&self, cluster: &Object<Cluster>, basis: &Basis) -> Result<Found, FetchError> {
        let nothing = match &basis.reference {
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
        basis: &mut Basis,
    ) -> Result<Result<Arc<probe::Client>, Problem>, FetchError> {
        let secret = match credential.secret_ref.clone() {
            None => None,
            Some(of) => {
                if let Err(problem) = may_read(&of, self.secrets.namespace.as_deref()) {
                    return Ok(Err(problem));
                }
                let key = Arc::from(format!("{}/{}", of.namespace, of.name));
                basis.secret = Some(self.seen_secret(key).await?);
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

/// Of a cluster that is not probed.
fn no_way(problem: Problem) -> Way {
    let addresses = Err(problem.clone());
    let basis =
        Basis { addresses, tenant: "".into(), reference: None, credential: None, secret: None };
    Way { basis, client: Err(problem), settles: None }
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

fn hash(way: &Way) -> u64 {
    let mut hash = DefaultHasher::new();
    match &way.client {
        Ok(client) => client.fingerprint().hash(&mut hash),
        Err(problem) => (problem.code(), problem.to_string()).hash(&mut hash),
    }
    hash.finish()
}

#[cfg(test)]
mod tests;
