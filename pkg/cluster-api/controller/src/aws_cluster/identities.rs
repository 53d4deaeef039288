//! [`Identities`]: the credentials of each AWSCluster, from the identities that it names
//! (`rule:an-awscluster-stays-in-its-account`). AWSClusters with the same identities share them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws::{Account, Credentials, Role};
use futures::future::join_all;
use informer::{Delta, Informer, Subscription};
use kube_api::{Kind, Metadata};
use manager::Context;
use objects::{Object, ObjectClient, ObjectMeta, OwnerReference};
use parking_lot::Mutex;
use tokio::time::timeout;
use workqueue::WorkQueue;

use super::report::Denial;
use crate::api::aws_cluster::AwsCluster;
use crate::api::aws_identity::{AwsIdentity, IdentityKind};
use crate::api::secret::{Secret, text};
use crate::api::{NAMESPACES, SECRETS};
use crate::aws_identity::{ChainError, Known, Labels, Link, chain};

/// How long a reconcile waits for the first lists.
const FIRST_LIST: Duration = Duration::from_secs(10);
/// Upstream's keys of a Secret with access keys.
const ACCESS_KEY: &str = "AccessKeyID";
const SECRET_KEY: &str = "SecretAccessKey";
const SESSION_TOKEN: &str = "SessionToken";
/// The provider of the credentials, in messages of the SDK.
const PROVIDER: &str = "AWSClusterStaticIdentity";

/// UID, generation and, of keys, the version of the Secret, for each identity of a chain.
type Versions = Vec<(String, i64, String)>;

/// Kind and name of an identity, and the region whose STS gives the credentials: a region that does not answer stops
/// only its own clusters.
type Place = (IdentityKind, String, String);

/// The last credentials of each identity.
type Accounts = Arc<Mutex<HashMap<Place, (Versions, Account)>>>;

/// The identities of the API server, and their credentials.
pub(super) struct Identities {
    /// With the credentials of this program.
    pub(super) process: Account,
    context: Context,
    /// In their order, in which they are awaited.
    objects: BTreeMap<IdentityKind, Informer<Object<AwsIdentity>>>,
    /// Watched when the first identity selects namespaces by label.
    namespaces: OnceLock<(Informer<Metadata>, Subscription<Metadata>)>,
    secrets: ObjectClient<Secret>,
    accounts: Accounts,
    clusters: Informer<Object<AwsCluster>>,
    queue: WorkQueue<Arc<str>>,
    /// Whether a Secret gets its identity as an owner, with which `clusterctl move` finds it.
    owns_secrets: bool,
    _subscriptions: Vec<Subscription<Object<AwsIdentity>>>,
}

impl Identities {
    /// A change of an identity, or of the labels of a Namespace, wakes AWSClusters.
    pub(super) fn new(
        context: &Context,
        process: Account,
        clusters: &Informer<Object<AwsCluster>>,
        queue: &WorkQueue<Arc<str>>,
        owns_secrets: bool,
    ) -> Self {
        let accounts = Accounts::default();
        // They are read only: upstream's objects serve as well.
        let informers = context.informers.of_any_owner();
        let cache = |kind: IdentityKind| {
            let source = informers.source(Kind::Custom(kind.resource()));
            (kind, informers.get_from::<Object<AwsIdentity>>(source))
        };
        let objects: BTreeMap<_, _> = IdentityKind::ALL.into_iter().map(cache).collect();
        let subscribe = |(kind, cache): (&IdentityKind, &Informer<Object<AwsIdentity>>)| {
            let (kind, all, queue) = (*kind, clusters.clone(), queue.clone());
            let accounts = Arc::clone(&accounts);
            cache.subscribe(move |delta| {
                if let Delta::Deleted(object) = &delta {
                    let name = object.metadata.name();
                    accounts.lock().retain(|place, _| (place.0, &*place.1) != (kind, name));
                }
                if !matches!(delta, Delta::ListStarts | Delta::ListEnds) {
                    all.frozen(|all| all.keys().for_each(|key| queue.add(Arc::clone(key))));
                }
            })
        };
        let subscriptions = objects.iter().map(subscribe).collect();
        Self {
            process,
            context: context.clone(),
            objects,
            namespaces: OnceLock::new(),
            secrets: context.objects(SECRETS),
            accounts,
            clusters: clusters.clone(),
            queue: queue.clone(),
            owns_secrets,
            _subscriptions: subscriptions,
        }
    }

    /// The account that an AWSCluster may use.
    pub(super) async fn account(&self, object: &Object<AwsCluster>) -> Result<Account, Denial> {
        // A kind that is not listed then is unknown, which the chain reports; one that may not be listed is not awaited.
        let lists = join_all(self.objects.values().map(Informer::synced_or_denied));
        let _listed = timeout(FIRST_LIST, lists).await;
        let mut chain = self.chain(object);
        if matches!(chain, Err(ChainError::Unknown(_)))
            && let Some((namespaces, _)) = self.namespaces.get()
        {
            let _listed = timeout(FIRST_LIST, namespaces.synced_or_denied()).await;
            chain = self.chain(object);
        }
        self.credentials(&chain.map_err(|error| denied(&error))?, &object.body.spec.region).await
    }

    /// Whether an AWSCluster may still use its identities, as far as the caches know.
    pub(super) fn permit(&self, object: &Object<AwsCluster>) -> bool {
        self.chain(object).is_ok()
    }

    fn chain(&self, object: &Object<AwsCluster>) -> Result<Vec<Link>, ChainError> {
        let namespace = object.metadata.namespace().unwrap_or_default();
        let reference = object.body.spec.identity_ref.as_ref();
        chain(reference, namespace, &KnownHere { identities: self, namespace })
    }

    /// The credentials at the end of a chain. Each identity keeps its credentials until it, a source
    /// of it or its Secret changes.
    async fn credentials(&self, chain: &[Link], region: &str) -> Result<Account, Denial> {
        let (mut account, mut versions) = (self.process.clone(), Versions::new());
        for link in chain {
            let (uid, generation) = link.object.as_ref().map_or((String::new(), 0), |object| {
                (object.metadata.uid.to_string(), object.metadata.generation)
            });
            let secret = match &link.object {
                Some(object) if link.kind == IdentityKind::Static => {
                    Some(self.secret(object).await?)
                }
                _ => None,
            };
            let version = secret.as_ref().map(|it| version(&it.metadata)).unwrap_or_default();
            versions.push((uid, generation, version));
            let place = (link.kind, link.name.clone(), region.to_owned());
            let mut accounts = self.accounts.lock();
            let known = accounts.get(&place).filter(|(of, _)| *of == versions);
            account = match (known, secret) {
                (Some((_, known)), _) => known.clone(),
                (_, Some(secret)) => self.process.with_keys(keys(link, &secret)?),
                (_, None) if link.kind == IdentityKind::Role => {
                    account.assuming(role(link), region)
                }
                (_, None) => account,
            };
            accounts.insert(place, (versions.clone(), account.clone()));
        }
        Ok(account)
    }

    /// The Secret of a static identity, in the namespace of this program.
    async fn secret(&self, identity: &Object<AwsIdentity>) -> Result<Arc<Object<Secret>>, Denial> {
        let (name, secret) = (identity.metadata.name(), &identity.body.spec.secret_ref);
        let key = format!("{}/{secret}", self.context.settings.lease.namespace);
        let fail = |cause: String| {
            self.accounts.lock().retain(|place, _| place.1 != name);
            Denial::of_credentials(format!("cannot use {PROVIDER} {name}: {cause}"))
        };
        let read = self.secrets.read(&key).await.map_err(|error| fail(error.to_string()))?;
        let secret = read.ok_or_else(|| fail(format!("there is no Secret {key}; create it")))?;
        let owner = owner(&identity.metadata);
        let is_owned = secret.metadata.owner_references.iter().any(|it| it.uid == owner.uid);
        if is_owned || !self.owns_secrets {
            return Ok(secret);
        }
        let owned = self.secrets.change(&secret, |_, draft| {
            let owners = &mut draft.metadata.owner_references;
            // One of this name and another UID was restored.
            owners.retain(|it| (&it.kind, &it.name) != (&owner.kind, &owner.name));
            owners.push(owner.clone());
        });
        owned.await.map(|written| written.object).map_err(|error| fail(error.to_string()))
    }

    fn labels(&self, namespace: &str) -> Result<Option<Labels>, String> {
        let (cache, _) = self.namespaces.get_or_init(|| self.watch_namespaces());
        if !cache.is_synced() {
            let why = cache.denied().unwrap_or_else(|| "they are being listed".to_owned());
            return Err(format!("Namespaces: {why}"));
        }
        Ok(cache.get(namespace).map(|found| found.labels.clone()))
    }

    fn watch_namespaces(&self) -> (Informer<Metadata>, Subscription<Metadata>) {
        let informers = &self.context.informers;
        let cache = informers.get_from::<Metadata>(informers.source(Kind::BuiltIn(NAMESPACES)));
        let (all, queue) = (self.clusters.clone(), self.queue.clone());
        let subscription = cache.subscribe(move |delta| {
            let (Delta::Added(namespace)
            | Delta::Deleted(namespace)
            | Delta::Updated { new: namespace, .. }) = delta
            else {
                return;
            };
            let of_it = format!("{}/", namespace.key);
            all.frozen(|all| {
                let keys = all.keys().filter(|key| key.starts_with(&of_it));
                keys.for_each(|key| queue.add(Arc::clone(key)));
            });
        });
        (cache, subscription)
    }
}

/// What is known about identities for AWSClusters of a namespace.
struct KnownHere<'a> {
    identities: &'a Identities,
    namespace: &'a str,
}

impl Known for KnownHere<'_> {
    fn identity(
        &self,
        kind: IdentityKind,
        name: &str,
    ) -> Result<Option<Arc<Object<AwsIdentity>>>, String> {
        let Some(cache) = self.identities.objects.get(&kind) else { return Ok(None) };
        if !cache.is_synced() && !cache.is_dormant() {
            let why = cache.denied().unwrap_or_else(|| "it is being listed".to_owned());
            return Err(format!("{} {name}: {why}", kind.as_str()));
        }
        Ok(cache.get(name))
    }

    fn labels(&self) -> Result<Option<Labels>, String> {
        self.identities.labels(self.namespace)
    }
}

fn denied(error: &ChainError) -> Denial {
    let (reason, message) = (error.reason(), error.to_string());
    Denial { reason, message, is_about_usage: error.is_about_usage() }
}

fn version(secret: &ObjectMeta) -> String {
    format!("{}/{}", secret.uid, secret.resource_version)
}

fn owner(identity: &ObjectMeta) -> OwnerReference {
    let kind = IdentityKind::Static.resource();
    OwnerReference {
        api_version: kind.api_version(),
        kind: kind.kind.into_owned(),
        name: identity.name().to_owned(),
        uid: identity.uid.to_string(),
        controller: None,
        block_owner_deletion: None,
    }
}

/// The keys in a Secret. The SDK wipes its copy when it is dropped.
fn keys(link: &Link, secret: &Object<Secret>) -> Result<Credentials, Denial> {
    let value = |key: &str| text(secret, key).map(|text| text.trim().to_owned());
    let required = |key: &str| {
        value(key).filter(|text| !text.is_empty()).ok_or_else(|| {
            let (name, secret) = (&link.name, &secret.metadata.key);
            let message = format!("cannot use {PROVIDER} {name}: Secret {secret} has no {key}");
            Denial::of_credentials(message)
        })
    };
    let token = value(SESSION_TOKEN).filter(|text| !text.is_empty());
    Ok(Credentials::new(required(ACCESS_KEY)?, required(SECRET_KEY)?, token, None, PROVIDER))
}

fn role(link: &Link) -> Role {
    let spec = link.object.as_ref().map(|object| object.body.spec.clone()).unwrap_or_default();
    let set = |text: String| Some(text).filter(|text| !text.is_empty());
    Role {
        arn: spec.role_arn,
        session_name: link.session_name(),
        seconds: link.seconds(),
        inline_policy: set(spec.inline_policy),
        policy_arns: spec.policy_arns,
        external_id: set(spec.external_id),
    }
}

#[cfg(test)]
mod tests;
