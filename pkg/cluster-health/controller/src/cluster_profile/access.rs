//! How the cluster of a ClusterProfile is reached: by the first access provider that the profile has, and the Secret or
//! exec plugin of it. Nothing is executed here. Pure.

use health::Code;
use kube::config::Cluster;
use objects::Object;
use probe::{Address, Fields, Inputs, Problem};

use super::providers::{Kind, Provider, Providers};
use crate::api::cluster_profile::ClusterProfile;
use crate::api::is_name;
use crate::credential_policy::Reference;
use crate::engine::{CredentialSource, Plugin};
use crate::kubeconfig::{self, Credential};
use crate::secret_data::{SecretData, missing};

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
    pub(crate) source: CredentialSource,
    reference: Reference,
    /// The context of the kubeconfig.
    context: Option<&'a str>,
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
    let (namespace, name, entry) = match &provider.kind {
        Kind::Kubeconfig => {
            (text("namespace").unwrap_or(own), needed("name")?, Some(needed("key")?.to_owned()))
        }
        Kind::Token => (own, needed("clusterName")?, None),
        Kind::Plugin(..) if !providers.may_run => {
            let text = format!(
                "access provider {} runs an exec plugin; set --cluster-health-profile-exec to run it",
                provider.name
            );
            return Err(Problem::new(Code::PluginFailed, text));
        }
        Kind::Plugin(spec, is_told) => {
            let spec = spec.clone();
            let spec = if *is_told { spec.with_cluster(cluster) } else { spec };
            let plugin = Plugin { provider: provider.name.clone(), spec };
            let (source, reference) = (CredentialSource::Plugin(plugin), Reference::SameNamespace);
            return Ok(Way { cluster, source, reference, context: None });
        }
    };
    if !is_name(name) || !is_name(namespace) {
        return Err(missing(format!(
            "the access provider names a Secret {namespace}/{name}, which is not a valid name"
        )));
    }
    let reference =
        if namespace == own { Reference::SameNamespace } else { Reference::OtherNamespace };
    if reference == Reference::OtherNamespace && !allowed.iter().any(|it| it == namespace) {
        let text = format!(
            "Secret {namespace}/{name} is not in namespace {own} of the ClusterProfile; move it, or add its namespace to \
             --cluster-health-profile-secret-namespaces"
        );
        return Err(Problem::new(Code::CredentialRefused, text));
    }
    let key = format!("{namespace}/{name}").into();
    let source = CredentialSource::Secret { key, entry };
    Ok(Way { cluster, source, reference, context: text("context") })
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
        let (credential, renewed_in) = match &self.source {
            CredentialSource::Secret { key, entry } => {
                let credential = self.credential(secret, key, entry.as_deref())?;
                (credential, "the Secret of the access provider")
            }
            CredentialSource::Plugin(_) | CredentialSource::Nothing => {
                ((None, None), "the exec plugin of the access provider")
            }
        };
        let inputs = kubeconfig::inputs(self.cluster, credential, "the access provider")?;
        Ok(Inputs { fields: FIELDS, renewed_in, allow_plaintext, ..inputs })
    }

    fn credential(
        &self,
        secret: Option<&SecretData>,
        key: &str,
        entry: Option<&str>,
    ) -> Result<Credential, Problem> {
        let secret = SecretData::to_send(secret, self.reference, key)?;
        let Some(entry) = entry else { return Ok((Some(secret.needed_token(key)?), None)) };
        let place = format!("key {entry} of Secret {key}");
        kubeconfig::read(secret.entry.as_ref(), self.context, &place)?.credential(&place)
    }
}

#[cfg(test)]
mod tests;
