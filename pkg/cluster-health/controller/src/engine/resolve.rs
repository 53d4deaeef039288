//! The pure part of a flavour: [`ObjectModel`], the state of a cluster by its object, and
//! [`Resolve`], how the cluster is reached. `pipeline.rs` does the I/O that they ask for.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use health::{Policy, Published};
use jiff::Timestamp;
use objects::{Object, Schema};
use probe::{Inputs, Probed, Problem};

use super::connections::{Connections, ObjectVersion};
use super::credential_plugins::{CredentialPlugins, Plugin};
use super::flavour::{AnnouncedEnds, Flavour, MemberId};
use super::object_cache::Objects;
use crate::secret_data::{ReadError, SecretData};

/// The objects of a flavour: what it says of one without I/O.
pub(crate) trait ObjectModel: Flavour {
    /// The kind of its objects.
    type Schema: Schema<Status: PartialEq>;

    /// The objects and connections of its clusters.
    fn members(&self) -> Members<'_, Self::Schema>;

    /// Whether the cluster is probed.
    fn supervision(&self, _object: &Object<Self::Schema>) -> Supervision {
        Supervision::Probed
    }

    /// Whether a change of the object may change its [`Target`].
    fn is_work(&self, _old: &Object<Self::Schema>, _new: &Object<Self::Schema>) -> bool {
        true
    }

    /// A hash of the fields that the connection depends on: while they are the same, and the
    /// credential with its Secret is, nothing is read again.
    fn access(&self, object: &Object<Self::Schema>) -> u64;

    /// The policy of the cluster.
    fn policy(&self, object: &Object<Self::Schema>) -> Policy;

    /// The health that its status shows: a new owner of the cluster continues from there
    /// (`rule:a-restart-changes-nothing`).
    fn seed(&self, object: &Object<Self::Schema>, now: Timestamp) -> Seed;

    /// The record of its availability that its status keeps; a new owner of the cluster goes on from there.
    fn record<'a>(&self, _object: &'a Object<Self::Schema>) -> Option<&'a str> {
        None
    }

    /// The fingerprint of what its status shows; `None` when it does not show all that is
    /// published.
    fn shown(&self, object: &Object<Self::Schema>) -> Option<u64>;

    /// Whether a cluster that is left alone still shows fields of ours, or will when a write `is_under_way`; an empty
    /// [`StatusWrite::Shared`] takes them away.
    ///
    /// [`StatusWrite::Shared`]: super::StatusWrite::Shared
    fn is_to_be_withdrawn(&self, _object: &Object<Self::Schema>, _is_under_way: bool) -> bool {
        false
    }
}

/// How the clusters of a flavour are reached: by their objects, by credential objects where the
/// flavour has such a kind, and by Secrets.
pub(crate) trait Resolve: ObjectModel + Sized {
    /// A credential object, as a ClusterCredential; `()` for a flavour without such a kind.
    type Credential: Send;

    /// Whether a probe also reads a namespace with the credential.
    const AUTHENTICATED_READ: bool = false;

    /// The addresses for [`super::Target::addresses`]; empty when they cannot be used.
    fn addresses(&self, object: &Object<Self::Schema>) -> Vec<Box<str>>;

    /// The name of the credential object that the object names.
    fn reference(&self, _object: &Object<Self::Schema>) -> Option<Arc<str>> {
        None
    }

    /// What is read or run for the credential.
    ///
    /// # Errors
    /// The credential may not be used, or the object has a mistake for which no Secret is read.
    fn source(
        &self,
        object: &Object<Self::Schema>,
        credential: Option<&Self::Credential>,
    ) -> Result<CredentialSource, Problem>;

    /// The inputs of the client of the cluster, without the credential that an exec plugin prints.
    ///
    /// # Errors
    /// The first thing that is missing or cannot be used, by its field or key.
    fn inputs(
        &self,
        object: &Object<Self::Schema>,
        credential: Option<Self::Credential>,
        secret: Option<SecretData>,
    ) -> Result<Inputs, Problem>;

    /// How long a cluster that is new to this process may be held back for this problem, counted
    /// from when it was first seen.
    fn grace(&self, _object: &Object<Self::Schema>, _problem: &Problem) -> Option<Duration> {
        None
    }

    /// The cluster is about to become known to the engine.
    fn arrives(&self, _cluster: &MemberId, _object: &Object<Self::Schema>) {}

    /// The connection leads to another cluster now: facts about the one before go.
    fn retargeted(&self, _cluster: &MemberId) {}

    /// Judges a probe by the other facts that the flavour has.
    fn judge(&self, _cluster: &MemberId, probed: Probed) -> health::Report {
        probed.report
    }
}

/// Reads the credential objects of a flavour from the management API.
pub(crate) trait ReadCredentials<S: Schema, C>: Send + Sync + 'static {
    /// The credential of the cluster of `object`.
    fn find<'a>(&'a self, object: &'a Object<S>) -> BoxFuture<'a, Result<Found<C>, ReadError>>;

    /// The key of the cluster that the credential of this name is for; `None` when it is gone.
    fn owner<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Arc<str>>, ReadError>>;
}

/// The credential object of a cluster, or why it was not found.
pub(crate) enum Found<C> {
    Credential {
        credential: C,
        version: ObjectVersion,
        /// Reason and text of an event about a likely mistake.
        warning: Option<(&'static str, String)>,
    },
    /// The credential that was looked for, and why it was not found.
    Nothing(String),
}

/// What is read or run for the credential of a cluster.
pub(crate) enum CredentialSource {
    /// Nothing: the credential object has it, or the cluster needs none.
    Nothing,
    /// The Secret with this `namespace/name`, with the value of `entry` in addition to those that every flavour uses.
    Secret {
        key: Arc<str>,
        entry: Option<String>,
    },
    Plugin(Plugin),
}

impl CredentialSource {
    /// The Secret with this key, if there is one.
    pub(crate) fn secret(key: Option<String>) -> Self {
        key.map_or(Self::Nothing, |key| Self::Secret { key: key.into(), entry: None })
    }
}

/// The objects and connections of a flavour in one run.
pub(crate) struct Members<'a, S: Schema> {
    pub(crate) objects: &'a Objects<S>,
    pub(crate) connections: &'a Connections,
    pub(crate) prober: &'a probe::Prober,
    /// `None` for a flavour whose credentials no exec plugin prints.
    pub(crate) plugins: Option<&'a Arc<CredentialPlugins>>,
}

/// Whether a cluster is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supervision {
    /// The cluster is probed, and its health is published.
    Probed,
    /// The cluster is not probed, and its status says that it is locked.
    Locked,
    /// The cluster is not probed, and nothing is written: another actor sets it up, deletes it or has put it
    /// aside.
    LeftAlone,
}

/// The state that the status of a cluster shows before this process has probed it.
pub(crate) struct Seed {
    pub(crate) published: Option<Published>,
    pub(crate) announced_ends: AnnouncedEnds,
}

impl Seed {
    /// The state of a status that has no room for announced ends.
    pub(crate) fn without_ends(published: Option<Published>) -> Self {
        let announced_ends =
            if published.is_some() { AnnouncedEnds::Unknown } else { AnnouncedEnds::Nothing };
        Self { published, announced_ends }
    }
}

/// A hash that is the same in one process only.
pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    let mut hash = DefaultHasher::new();
    value.hash(&mut hash);
    hash.finish()
}

/// UID and key of an object.
pub(crate) fn identity<S: Schema>(object: &Object<S>) -> MemberId {
    let (uid, key) = (Arc::clone(&object.metadata.uid), Arc::clone(&object.metadata.key));
    MemberId { uid, key }
}
