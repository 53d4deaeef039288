//! How the cluster of a ClusterProfile is reached: by the first access provider that the profile has, and the Secret or
//! exec plugin of it. Nothing is executed here. Pure.

use health::Code;
use kube::config::Cluster;
use objects::Object;
use probe::{Address, Fields, Inputs, Problem};
use serde_json::Value;

use super::providers::{CredentialSource, Provider, Providers};
use crate::api::cluster_profile::ClusterProfile;
use crate::api::is_name;
use crate::credential_policy::Reference;
use crate::engine::Plugin;
use crate::kubeconfig::{self, Credential};
use crate::secret_data::SecretData;

/// Where the user of a member mends what is refused.
const FIELDS: Fields = Fields {
    ca: "certificate-authority-data of the access provider",
    other_name: ", or set tls-server-name of the access provider",
};
/// The extension of a cluster that has the configuration of its provider.
const CONFIG: &str = "client.authentication.k8s.io/exec";

/// The way to a cluster that its profile names.
pub(crate) struct Way<'a> {
    cluster: &'a Cluster,
    /// `None` for a provider that is built in.
    pub(super) plugin: Option<Plugin>,
    /// The Secret as `namespace/name`; `None` with a plugin.
    pub(crate) secret: Option<String>,
    reference: Reference,
    /// The key that has the kubeconfig.
    pub(crate) entry: Option<String>,
    context: Option<&'a str>,
}

fn missing(text: impl Into<String>) -> Problem {
    Problem::new(Code::SecretMissing, text)
}

fn chosen<'a, 'b>(
    object: &'a Object<ClusterProfile>,
    providers: &'b Providers,
) -> Result<(&'b Provider, &'a Cluster), Problem> {
    let offered = &object.status.access_providers;
    let first = providers.all.iter().find_map(|provider| {
        let offer = offered.iter().find(|it| it.name == provider.name)?;
        Some((provider, &offer.cluster))
    });
    first.ok_or_else(|| {
        missing(match (offered.is_empty(), object.status.credential_providers.is_empty()) {
            (true, true) => "status.accessProviders is empty".to_owned(),
            (true, false) => "status.credentialProviders is deprecated and not used; the cluster manager has to write \
                 status.accessProviders".to_owned(),
            (false, _) => {
                format!("status.accessProviders has no provider {}", providers.names())
            }
        })
    })
}

/// Where the cluster is reached, in one spelling for all that mean the same; empty without a provider.
pub(crate) fn addresses(object: &Object<ClusterProfile>, providers: &Providers) -> Vec<Box<str>> {
    let Ok((_, cluster)) = chosen(object, providers) else { return Vec::new() };
    let text = cluster.server.as_deref().unwrap_or_default().trim();
    vec![Address::parse(text).map_or_else(|_| text.into(), |address| address.to_string().into())]
}

/// The way that the profile names; Secrets of other namespaces than its own are only in `allowed`
/// (`rule:secret-of-the-same-namespace`).
///
/// # Errors
/// No provider, one that may not be run, or the first thing that is missing in its configuration.
pub(crate) fn way<'a>(
    object: &'a Object<ClusterProfile>,
    allowed: &[String],
    providers: &Providers,
) -> Result<Way<'a>, Problem> {
    let (provider, cluster) = chosen(object, providers)?;
    let config = cluster.extensions.iter().flatten().find(|it| it.name == CONFIG);
    let text = |field: &str| config?.extension.get(field)?.as_str().filter(|it| !it.is_empty());
    let needed = |field: &str| {
        let of = format!("{field} of the extension {CONFIG} of the access provider is missing");
        text(field).ok_or_else(|| missing(of))
    };
    let own = object.metadata.namespace().unwrap_or_default();
    let reference = Reference::SameNamespace;
    let mut way =
        Way { cluster, plugin: None, secret: None, reference, entry: None, context: None };
    let (namespace, name) = match &provider.source {
        CredentialSource::Kubeconfig => {
            way.entry = Some(needed("key")?.to_owned());
            way.context = text("context");
            (text("namespace").unwrap_or(own), needed("name")?)
        }
        CredentialSource::Token => (own, needed("clusterName")?),
        CredentialSource::Plugin(..) if !providers.may_run => {
            let text = format!(
                "access provider {} runs an exec plugin; set --cluster-health-profile-exec to run it",
                provider.name
            );
            return Err(Problem::new(Code::PluginFailed, text));
        }
        CredentialSource::Plugin(spec, is_told) => {
            let spec = spec.clone();
            let spec = if *is_told { spec.with_cluster(cluster) } else { spec };
            way.plugin = Some(Plugin { provider: provider.name.clone(), spec });
            return Ok(way);
        }
    };
    if !is_name(name) || !is_name(namespace) {
        return Err(missing(format!(
            "the access provider names a Secret {namespace}/{name}, which is not a valid name"
        )));
    }
    if namespace != own {
        way.reference = Reference::OtherNamespace;
        if !allowed.iter().any(|it| it == namespace) {
            let text = format!(
                "Secret {namespace}/{name} is not in namespace {own} of the ClusterProfile; move it, or add its \
                 namespace to --cluster-health-profile-secret-namespaces"
            );
            return Err(Problem::new(Code::CredentialRefused, text));
        }
    }
    way.secret = Some(format!("{namespace}/{name}"));
    Ok(way)
}

impl Way<'_> {
    /// The inputs of the client of the cluster, without a credential when a plugin prints it.
    ///
    /// # Errors
    /// The first field or key that is missing or cannot be used.
    pub(crate) fn inputs(
        &self,
        secret: Option<&SecretData>,
        allow_plaintext: bool,
    ) -> Result<Inputs, Problem> {
        let (credential, renewed_in) = match &self.secret {
            Some(key) => (self.credential(key, secret)?, "the Secret of the access provider"),
            None => ((None, None), "the exec plugin of the access provider"),
        };
        let inputs = kubeconfig::inputs(self.cluster, credential, "the access provider")?;
        Ok(Inputs { fields: FIELDS, renewed_in, allow_plaintext, ..inputs })
    }

    fn credential(&self, key: &str, secret: Option<&SecretData>) -> Result<Credential, Problem> {
        let secret = SecretData::to_send(secret, self.reference, key)?;
        let Some(entry) = &self.entry else { return Ok((Some(secret.needed_token(key)?), None)) };
        let place = format!("key {entry} of Secret {key}");
        kubeconfig::read(secret.entry.as_ref(), self.context, &place)?.credential(&place)
    }
}

/// A hash of the fields that the connection depends on.
pub(crate) fn access(object: &Object<ClusterProfile>) -> u64 {
    let status = &object.status;
    let providers = serde_json::to_value(&status.access_providers);
    let providers = providers.as_ref().map(Value::to_string).ok();
    health::hash(&format!("{providers:?} {}", status.credential_providers.is_empty()))
}

#[cfg(test)]
mod tests;
