//! [`Keeper`]: keeps the webhook registered at the API server, a round at a time: an authority that all
//! replicas share, a serving certificate of each, the bundle by which the API server checks them, and
//! the failure policy. The listener is of `serving`.
//!
//! | file | holds |
//! |---|---|
//! | `authority.rs` | one authority: made, read, signs. No I/O |
//! | `authorities.rs` | [`Authorities`](authorities::Authorities): the one in use, the one to come and the one that was. No I/O |
//! | `secret_form.rs` | those as the data of a Secret. No I/O |
//! | `registration.rs` | the fields of a registration. No I/O |

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use objects::{Dynamic, Object, ObjectClient};
use tracing::{info, warn};

use authorities::Authorities;
use registration::{has_bundle, is_injected, mend, names};

mod authorities;
mod authority;
mod registration;
mod secret_form;

pub(crate) use authorities::Lives;
pub use authority::{Authority, AuthorityError, Leaf};
pub(crate) use registration::FailurePolicy;

/// Changes of the Secret in one round, those by others among them.
const CHANGES: u32 = 5;
/// The name of a certificate while no registration exists.
const UNREGISTERED_NAME: &str = "localhost";

/// Settings of the keeper.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Name of the registrations: a ValidatingWebhookConfiguration, a MutatingWebhookConfiguration, or both.
    pub(crate) registration: String,
    /// Namespace and name of the Secret; `None` where the operator gives a certificate.
    pub(crate) secret: Option<String>,
    /// Written into the registration.
    pub(crate) failure_policy: FailurePolicy,
    /// How long things last.
    pub(crate) lives: Lives,
}

/// Result of a round.
pub(crate) struct Round {
    /// Whether a registration exists: without one, no API server calls the webhook.
    pub(crate) is_registered: bool,
    /// To be shown from now on, if there is anything new.
    pub(crate) leaf: Option<Leaf>,
}

/// Why a round failed. The next round starts over.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    /// The API server.
    #[error(transparent)]
    Objects(#[from] objects::Error),
    /// A certificate could not be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The role of the process has no right to create Secrets, which would let it mint tokens of any account.
    #[error(
        "cannot store the CA of the webhook: Secret {0} not found; apply \
         config/rbac/validation-webhook.yaml"
    )]
    NoSecret(String),
    /// Others write the Secret all the time.
    #[error("cannot store the CA of the webhook: other writers change the Secret all the time")]
    Busy,
}

/// Keeps the certificate and registration of one webhook in order, together with other replicas.
pub(crate) struct Keeper {
    secrets: ObjectClient<Dynamic>,
    registrations: Vec<ObjectClient<Dynamic>>,
    wanted: Wanted,
    /// Last content of the Secret: an emptied Secret is filled with it again.
    known: Option<Authorities>,
    shown: Option<Shown>,
    injection_logged: bool,
}

/// The certificate that is in use.
struct Shown {
    authority: String,
    names: Vec<String>,
    renew: SystemTime,
}

type Stored = Arc<Object<Dynamic>>;

impl Keeper {
    /// Through these clients: of the kind Secret, and of each kind of registration.
    pub(crate) fn new(
        secrets: ObjectClient<Dynamic>,
        registrations: Vec<ObjectClient<Dynamic>>,
        wanted: Wanted,
    ) -> Self {
        let (known, shown, injection_logged) = (None, None, false);
        Self { secrets, registrations, wanted, known, shown, injection_logged }
    }

    /// Does what there is to do now. After an error what was done before stays.
    pub(crate) async fn round(&mut self, now: SystemTime) -> Result<Round, KeepError> {
        for _ in 0..CHANGES {
            // rule:known-before-used
            let registrations = self.registrations().await?;
            let is_registered = !registrations.is_empty();
            let Some(secret) = self.wanted.secret.clone() else {
                self.write(&registrations, None).await?;
                return Ok(Round { is_registered, leaf: None });
            };
            let (stored, authorities) = self.authorities(&secret, now).await?;
            let bundle = authorities.bundle();
            let is_published = self.write(&registrations, Some(&bundle)).await?;
            if let Some(after) = authorities.step(now, &self.wanted.lives, is_published)? {
                self.replace(&stored, &after).await?;
                continue;
            }
            let names: BTreeSet<String> =
                registrations.iter().flat_map(|(_, it)| names(&it.body)).collect();
            let leaf = self.leaf(&authorities, names, is_published, now)?;
            return Ok(Round { is_registered, leaf });
        }
        Err(KeepError::Busy)
    }

    /// The authorities of the Secret; an empty Secret is filled.
    async fn authorities(
        &mut self,
        key: &str,
        now: SystemTime,
    ) -> Result<(Stored, Authorities), KeepError> {
        let absent = || KeepError::NoSecret(key.to_owned());
        let stored = self.secrets.read(key).await?.ok_or_else(absent)?;
        match secret_form::read(&stored.body) {
            Ok(authorities) => {
                self.known = Some(authorities.clone());
                Ok((stored, authorities))
            }
            Err(err) => {
                if !secret_form::is_empty(&stored.body) {
                    warn!(secret = key, %err, "The Secret has no usable CA of the webhook; replacing it");
                }
                let new = match self.known.take() {
                    Some(known) => known,
                    None => Authorities::make(now, &self.wanted.lives)?,
                };
                self.replace(&stored, &new).await?;
                let stored = self.secrets.read(key).await?.unwrap_or(stored);
                let authorities = secret_form::read(&stored.body)?;
                Ok((stored, authorities))
            }
        }
    }

    /// In the version that was read, or not at all.
    async fn replace(&self, stored: &Stored, with: &Authorities) -> Result<(), KeepError> {
        let version = stored.metadata.resource_version;
        let written = self.secrets.change(stored, |object, draft| {
            if object.metadata.resource_version == version {
                draft.body = secret_form::body(with);
            }
        });
        written.await?;
        Ok(())
    }

    /// The existing registrations, each with the index of its client. A kind that may not be read is left out, so that a role
    /// of an older release leaves the other one in order.
    async fn registrations(&self) -> Result<Vec<(usize, Stored)>, KeepError> {
        let mut found = Vec::new();
        let mut refused = None;
        for (place, client) in self.registrations.iter().enumerate() {
            match client.read(&self.wanted.registration).await {
                Ok(registration) => found.extend(registration.map(|it| (place, it))),
                Err(err) if err.is_forbidden() => refused = Some(err),
                Err(err) => return Err(err.into()),
            }
        }
        match refused {
            Some(err) if found.is_empty() => Err(err.into()),
            _ => Ok(found),
        }
    }

    /// Writes the registrations, each in the version that was read or not at all; whether they all have the
    /// bundle then.
    async fn write(
        &mut self,
        registrations: &[(usize, Stored)],
        bundle: Option<&str>,
    ) -> Result<bool, KeepError> {
        let mut all_have_it = true;
        for (place, stored) in registrations {
            all_have_it &= self.write_one(*place, stored, bundle).await?;
        }
        Ok(all_have_it)
    }

    async fn write_one(
        &mut self,
        place: usize,
        stored: &Stored,
        bundle: Option<&str>,
    ) -> Result<bool, KeepError> {
        let Some(client) = self.registrations.get(place) else { return Ok(true) };
        let annotations = stored.metadata.annotations.keys().map(String::as_str);
        let is_injected = is_injected(annotations);
        if is_injected && bundle.is_some() && !std::mem::replace(&mut self.injection_logged, true) {
            warn!(
                registration = self.wanted.registration,
                "The webhook configuration has the annotation of cert-manager, which sets \
                 caBundle: use the certificate of cert-manager with --webhook-cert-dir, or \
                 remove the annotation"
            );
        }
        let bundle = bundle.filter(|_| !is_injected);
        let (version, policy) = (stored.metadata.resource_version, self.wanted.failure_policy);
        let written = client.change(stored, |object, draft| {
            if object.metadata.resource_version == version {
                mend(&mut draft.body, bundle, policy);
            }
        });
        let written = written.await?;
        if written.changed {
            info!(registration = self.wanted.registration, "Webhook configuration updated");
        }
        Ok(bundle.is_none_or(|bundle| has_bundle(&written.object.body, bundle)))
    }

    /// A new certificate, where one is due. Nothing is shown that API servers do not know yet, but
    /// for the first, without which nothing could be shown at all.
    fn leaf(
        &mut self,
        authorities: &Authorities,
        names: BTreeSet<String>,
        is_published: bool,
        now: SystemTime,
    ) -> Result<Option<Leaf>, KeepError> {
        let mut names: Vec<String> = names.into_iter().collect();
        if names.is_empty() {
            names.push(UNREGISTERED_NAME.to_owned());
        }
        let current = &authorities.current;
        let is_good = |shown: &Shown| {
            shown.authority == current.certificate && shown.names == names && now < shown.renew
        };
        if self.shown.as_ref().is_some_and(|shown| is_good(shown) || !is_published) {
            return Ok(None);
        }
        let leaf = current.sign(&names, now, self.wanted.lives.leaf)?;
        let life = leaf.until.duration_since(now).unwrap_or_default();
        let renew = Lives::renewal(leaf.until, life);
        info!(?names, "Serving certificate of the webhook created");
        self.shown = Some(Shown { authority: current.certificate.clone(), names, renew });
        Ok(Some(leaf))
    }
}
