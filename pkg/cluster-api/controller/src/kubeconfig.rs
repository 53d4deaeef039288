//! The administrator's kubeconfig of a cluster: its content, when it is renewed, and [`Checked`],
//! which remembers those that were valid. Pure.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::Kubeconfig;
use parking_lot::Mutex;
use zeroize::Zeroizing;

use crate::api::Dialect;
use crate::certificates::{Authority, Identity, renew_at};

pub(crate) struct Contents<'a> {
    pub(crate) cluster: &'a str,
    /// Tells the name of the user.
    pub(crate) dialect: Dialect,
    pub(crate) server: &'a str,
    /// The authority's certificate, in PEM.
    pub(crate) authority: &'a str,
    pub(crate) administrator: &'a Identity,
}

impl Contents<'_> {
    pub(crate) fn render(&self) -> Zeroizing<String> {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let user = match self.dialect {
            Dialect::V1Alpha2 => "kubernetes-admin".to_owned(),
            Dialect::V1Beta2 => format!("{}-admin", self.cluster),
        };
        let context = quoted(&format!("{user}@{}", self.cluster));
        let (cluster, user, server) = (quoted(self.cluster), quoted(&user), quoted(self.server));
        let authority = STANDARD.encode(self.authority);
        let certificate = STANDARD.encode(&self.administrator.public);
        let key = Zeroizing::new(STANDARD.encode(&*self.administrator.private));
        Zeroizing::new(format!(
            "apiVersion: v1
kind: Config
clusters:
- name: {cluster}
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {context}
  context:
    cluster: {cluster}
    user: {user}
current-context: {context}
preferences: {{}}
",
            key = &*key,
        ))
    }
}

/// The decision about an existing kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KubeconfigAction {
    /// Valid until then.
    Keep(SystemTime),
    /// Write it again, for this reason.
    Rewrite(&'static str),
    /// Leave it to its owner, for this reason (`rule:only-our-kubeconfig-is-renewed`).
    Leave(&'static str),
}

/// Judges the kubeconfig of a Cluster.
pub(crate) fn judge(
    text: &str,
    server: &str,
    authority: &Authority,
    now: SystemTime,
) -> KubeconfigAction {
    let Some(file) = File::read(text) else {
        return KubeconfigAction::Leave("it cannot be parsed");
    };
    let Some(until) = file.certificate.and_then(|it| authority.signed_until(&it)) else {
        return KubeconfigAction::Leave("its certificate is not signed by the CA of the cluster");
    };
    if file.server != server {
        return KubeconfigAction::Rewrite(
            "the endpoint of the cluster is another one than in the kubeconfig",
        );
    }
    let due = renew_at(until);
    if due <= now {
        KubeconfigAction::Rewrite(
            "more than half of the lifetime of its client certificate is over",
        )
    } else {
        KubeconfigAction::Keep(due)
    }
}

/// The parts of the current context.
struct File {
    server: String,
    certificate: Option<String>,
}

impl File {
    fn read(text: &str) -> Option<Self> {
        let Kubeconfig { clusters, auth_infos, contexts, current_context, .. } =
            Kubeconfig::from_yaml(text).ok()?;
        let named = contexts.into_iter().find(|it| Some(&it.name) == current_context.as_ref())?;
        let context = named.context?;
        let cluster = clusters.into_iter().find(|it| it.name == context.cluster)?.cluster?;
        let user = auth_infos.into_iter().find(|it| Some(&it.name) == context.user.as_ref())?;
        let certificate =
            user.auth_info?.client_certificate_data.and_then(|it| STANDARD.decode(it).ok());
        let certificate = certificate.and_then(|it| String::from_utf8(it).ok());
        Some(Self { server: cluster.server?, certificate })
    }
}

/// By Cluster.
#[derive(Default)]
pub(super) struct Checked(Mutex<HashMap<Arc<str>, Order>>);

struct Order {
    basis: Basis,
    until: SystemTime,
}

/// Inputs that a kubeconfig was checked against.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Basis {
    /// Version of the authority's Secret.
    pub(super) authority: u64,
    /// Version of the kubeconfig's Secret.
    pub(super) kubeconfig: u64,
    pub(super) server: String,
}

impl Checked {
    /// Remembers that a kubeconfig is valid until then, as long as the basis is the same.
    pub(super) fn note(&self, cluster: &Arc<str>, basis: Basis, until: SystemTime) {
        self.0.lock().insert(Arc::clone(cluster), Order { basis, until });
    }

    pub(super) fn holds(&self, cluster: &str, basis: &Basis, now: SystemTime) -> bool {
        let known = self.0.lock();
        known.get(cluster).is_some_and(|order| order.basis == *basis && now < order.until)
    }

    pub(super) fn forget(&self, cluster: &str) {
        self.0.lock().remove(cluster);
    }
}

#[cfg(test)]
mod checked_tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_kubeconfig_is_looked_at_again_when_a_secret_or_the_url_changed_or_its_time_has_come() {
        let (checked, cluster, now) = (Checked::default(), Arc::from("ns/c"), SystemTime::now());
        let basis = |authority, kubeconfig, server: &str| Basis {
            authority,
            kubeconfig,
            server: server.to_owned(),
        };
        checked.note(&cluster, basis(1, 2, "s"), now + Duration::from_secs(10));
        assert!(checked.holds(&cluster, &basis(1, 2, "s"), now));
        for other in [basis(9, 2, "s"), basis(1, 9, "s"), basis(1, 2, "t")] {
            assert!(!checked.holds(&cluster, &other, now));
        }
        assert!(!checked.holds(&cluster, &basis(1, 2, "s"), now + Duration::from_secs(10)));
        checked.forget(&cluster);
        assert!(!checked.holds(&cluster, &basis(1, 2, "s"), now));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::certificates::new_authority;

    const SERVER: &str = "https://h.example.org:6443";
    const YEAR: Duration = Duration::from_secs(365 * 86400);

    struct Scene {
        now: SystemTime,
        public: String,
        authority: Authority,
    }

    fn scene() -> Scene {
        let now = SystemTime::now();
        let made = new_authority(now).unwrap();
        let authority = Authority::read(&made.public, &made.private, now).unwrap();
        Scene { now, public: made.public, authority }
    }

    fn rendered(scene: &Scene, dialect: Dialect, server: &str) -> Zeroizing<String> {
        let administrator = scene.authority.administrator(scene.now).unwrap();
        let contents = Contents {
            cluster: "one.two",
            dialect,
            server,
            authority: &scene.public,
            administrator: &administrator,
        };
        contents.render()
    }

    #[test]
    fn the_user_is_named_as_the_dialect_names_it() {
        let scene = scene();
        for (dialect, context) in [
            (Dialect::V1Alpha2, "kubernetes-admin@one.two"),
            (Dialect::V1Beta2, "one.two-admin@one.two"),
        ] {
            let text = rendered(&scene, dialect, SERVER);
            let config = Kubeconfig::from_yaml(&text).unwrap();
            assert_eq!(config.current_context.as_deref(), Some(context));
            assert_eq!(File::read(&text).unwrap().server, SERVER);
        }
    }

    /// rule:only-our-kubeconfig-is-renewed
    #[test]
    fn a_kubeconfig_is_renewed_at_half_of_its_life_and_for_another_endpoint_and_left_when_it_is_foreign()
     {
        let scene = scene();
        let text = rendered(&scene, Dialect::V1Beta2, SERVER);
        let judged = |text: &str, server: &str, after: Duration| {
            judge(text, server, &scene.authority, scene.now + after)
        };
        let before = Duration::from_secs(365 * 43200 - 60);
        assert!(matches!(judged(&text, SERVER, before), KubeconfigAction::Keep(_)));
        assert_eq!(
            judged(&text, SERVER, YEAR / 2),
            KubeconfigAction::Rewrite(
                "more than half of the lifetime of its client certificate is over"
            )
        );
        let moved = judged(&text, "https://other:6443", Duration::ZERO);
        assert_eq!(
            moved,
            KubeconfigAction::Rewrite(
                "the endpoint of the cluster is another one than in the kubeconfig"
            )
        );
        let other = self::scene();
        let foreign = rendered(&other, Dialect::V1Beta2, SERVER);
        assert!(matches!(judged(&foreign, SERVER, YEAR), KubeconfigAction::Leave(_)));
        assert_eq!(
            judged("users: 7", SERVER, YEAR),
            KubeconfigAction::Leave("it cannot be parsed")
        );
        let token = text.replace("client-certificate-data", "token");
        assert!(matches!(judged(&token, SERVER, YEAR), KubeconfigAction::Leave(_)));
    }
}
