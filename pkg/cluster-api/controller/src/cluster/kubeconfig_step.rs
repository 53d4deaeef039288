//! Kubeconfig: made once there is an endpoint, and renewed while its certificate lasts.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use events::EventType;
use objects::{Draft, Object};
use resilience::wall_now;

use super::reconcile::Clusters;
use super::report::{Report, StepError};
use crate::api::CLUSTER_NAME_LABEL;
use crate::api::cluster::{Cluster, dialect, endpoint};
use crate::api::secret::{Secret, SecretBody, text};
use crate::certificates::{Authority, new_authority, new_service_account_keys};
use crate::kubeconfig::{Basis, Contents, KubeconfigAction, judge};
use crate::ownership;

const READY: &str = "KubeconfigReady";
const AUTHORITY_LOST: &str = "AuthorityLost";
/// Between looks for a Secret of the CA that is awaited: one without our label is not watched.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const VALUE: &str = "value";

/// One Cluster whose kubeconfig is made.
struct Making<'a> {
    cluster: &'a Object<Cluster>,
    server: String,
    authority: Authority,
    authority_pem: &'a str,
    now: SystemTime,
}

impl Clusters {
    /// When to look again, if nothing tells.
    pub(super) async fn make_kubeconfig(
        &self,
        cluster: &Object<Cluster>,
        report: &mut Report,
    ) -> Result<Option<Duration>, StepError> {
        let Some(endpoint) = endpoint(cluster) else { return Ok(None) };
        if cluster.body.spec.control_plane_ref.is_some() {
            // What makes the control plane makes the kubeconfig.
            report.conditions.gone.push(READY);
            return Ok(None);
        }
        let server = format!("https://{endpoint}");
        let (basis, now) = (self.basis(cluster, &server), SystemTime::from(wall_now()));
        if basis.as_ref().is_some_and(|it| self.checked.holds(&cluster.metadata.key, it, now)) {
            return Ok(None);
        }
        let Some(secret) = self.authority(cluster).await? else {
            if self.has_used_authority(cluster).await? {
                self.report_lost_authority(cluster, report);
                return Ok(Some(LOOK_AGAIN));
            }
            let message = format!("Secret {}-ca not found", cluster.metadata.name());
            report.conditions.mark_false(READY, "WaitingForAuthority", message);
            return Ok(Some(LOOK_AGAIN));
        };
        let (public, private) = (text(&secret, CERTIFICATE), text(&secret, KEY));
        let (public, private) = (public.unwrap_or_default(), private.unwrap_or_default());
        let authority = match Authority::read(&public, &private, now) {
            Ok(authority) => authority,
            Err(error) => {
                let message = format!("Secret {}-ca: {error}", cluster.metadata.name());
                report.conditions.mark_false(READY, "InvalidAuthority", message);
                return Ok(Some(LOOK_AGAIN));
            }
        };
        let making = Making { cluster, server, authority, authority_pem: &public, now };
        let until = self.settle(&making, report).await?;
        if let (Some(until), Some(basis)) = (until, basis) {
            self.checked.note(&cluster.metadata.key, basis, until);
        }
        Ok(None)
    }

    /// `None` while the caches do not show both Secrets.
    fn basis(&self, cluster: &Object<Cluster>, server: &str) -> Option<Basis> {
        let version =
            |purpose: &str| Some(self.secrets.get(&secret_key(cluster, purpose))?.resource_version);
        let (authority, kubeconfig) = (version("ca")?, version("kubeconfig")?);
        Some(Basis { authority, kubeconfig, server: server.to_owned() })
    }

    /// The authority that is stored, or a new one where they are made.
    async fn authority(
        &self,
        cluster: &Object<Cluster>,
    ) -> Result<Option<Arc<Object<Secret>>>, StepError> {
        let key = secret_key(cluster, "ca");
        let stored = self.secret_client.read(&key).await?;
        if stored.is_some() || !self.generate_ca || self.has_used_authority(cluster).await? {
            return Ok(stored);
        }
        // The one that the kubeconfig needs goes last: when it is there, all are.
        for purpose in ["etcd", "proxy", "sa", "ca"] {
            let key = secret_key(cluster, purpose);
            if self.secret_client.read(&key).await?.is_some() {
                continue;
            }
            let made = match purpose {
                "sa" => new_service_account_keys()?,
                _ => new_authority(SystemTime::from(wall_now()))?,
            };
            let texts = [(CERTIFICATE, &*made.public), (KEY, &**made.private)];
            let draft = draft(cluster, SecretBody::of(texts));
            self.secret_client.create_if_absent(&key, &draft).await?;
        }
        Ok(self.secret_client.read(&key).await?)
    }

    /// Whether something was signed by an authority of this Cluster: another one would not be trusted
    /// (`rule:a-lost-authority-is-not-replaced`).
    async fn has_used_authority(&self, cluster: &Object<Cluster>) -> Result<bool, StepError> {
        let kubeconfig = secret_key(cluster, "kubeconfig");
        let mut conditions = cluster.status.conditions.iter();
        let was_made =
            conditions.any(|it| it.kind == READY && (it.holds() || it.reason == AUTHORITY_LOST));
        Ok(was_made || self.secret_client.read(&kubeconfig).await?.is_some())
    }

    fn report_lost_authority(&self, cluster: &Object<Cluster>, report: &mut Report) {
        let name = cluster.metadata.name();
        let message = format!(
            "Secret {name}-ca does not exist any more, and the control plane trusts only \
             certificates of this CA: restore the Secret from a backup"
        );
        let mut conditions = cluster.status.conditions.iter();
        if !conditions.any(|it| it.kind == READY && it.reason == AUTHORITY_LOST) {
            self.event(cluster, EventType::Warning, AUTHORITY_LOST, &message);
        }
        report.conditions.mark_false(READY, AUTHORITY_LOST, message);
    }

    /// Makes the kubeconfig what it should be; until when it is that, where that is known.
    async fn settle(
        &self,
        making: &Making<'_>,
        report: &mut Report,
    ) -> Result<Option<SystemTime>, StepError> {
        let key = secret_key(making.cluster, "kubeconfig");
        let Some(stored) = self.secret_client.read(&key).await? else {
            let value = making.render()?;
            let draft = draft(making.cluster, SecretBody::of([(VALUE, &value)]));
            self.secret_client.create_if_absent(&key, &draft).await?;
            let name = making.cluster.metadata.name();
            let message = format!("the kubeconfig is in Secret {name}-kubeconfig");
            self.event(making.cluster, EventType::Normal, "KubeconfigCreated", &message);
            report.conditions.mark_true(READY, "Created", "");
            return Ok(None);
        };
        let value = text(&stored, VALUE).unwrap_or_default();
        let action = judge(&value, &making.server, &making.authority, making.now);
        let ours = ownership::is_owned_by(&stored.metadata, making.cluster);
        match action {
            KubeconfigAction::Keep(until) => {
                report.conditions.mark_true(READY, "Created", "");
                Ok(Some(until))
            }
            KubeconfigAction::Rewrite(reason) if ours => {
                self.rewrite(making, &stored).await?;
                self.event(making.cluster, EventType::Normal, "KubeconfigRenewed", reason);
                report.conditions.mark_true(READY, "Created", "");
                Ok(None)
            }
            KubeconfigAction::Rewrite(reason) => {
                let message = format!(
                    "{reason}, but the Cluster does not own the Secret: renew it, or delete it so that it is made again"
                );
                report.conditions.mark_true(READY, "Foreign", message);
                Ok(None)
            }
            KubeconfigAction::Leave(reason) => {
                report.conditions.mark_true(
                    READY,
                    "Foreign",
                    format!("the Secret is not changed: {reason}"),
                );
                Ok(None)
            }
        }
    }

    async fn rewrite(
        &self,
        making: &Making<'_>,
        stored: &Arc<Object<Secret>>,
    ) -> Result<(), StepError> {
        let value = making.render()?;
        let rewritten = self.secret_client.change(stored, |_, draft| draft.body.put(VALUE, &value));
        rewritten.await?;
        Ok(())
    }
}

impl Making<'_> {
    fn render(&self) -> Result<zeroize::Zeroizing<String>, StepError> {
        let administrator = self.authority.administrator(self.now)?;
        let contents = Contents {
            cluster: self.cluster.metadata.name(),
            dialect: dialect(self.cluster),
            server: &self.server,
            authority: self.authority_pem,
            administrator: &administrator,
        };
        Ok(contents.render())
    }
}

/// Key of a Secret of a Cluster.
fn secret_key(cluster: &Object<Cluster>, purpose: &str) -> String {
    format!("{}-{purpose}", cluster.metadata.key)
}

/// A Secret that goes with its Cluster.
fn draft(cluster: &Object<Cluster>, body: SecretBody) -> Draft<Secret> {
    let mut draft = Draft::new(body);
    let name = cluster.metadata.name().to_owned();
    draft.metadata.labels.insert(CLUSTER_NAME_LABEL.to_owned(), name);
    draft.metadata.owner_references.push(ownership::reference_to(cluster));
    draft
}
