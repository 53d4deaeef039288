//! How the cluster of a ClusterProfile is reached: by the first access provider that the profile has, and the Secret or
//! exec plugin of it. Nothing is executed here. Pure.

use client::PluginSpec;
use health::Code;
use objects::Object;
use probe::{Address, Fields, Inputs, Problem, WaivedChecks};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::providers::{CredentialSource, Provider, Providers};
use crate::USER_AGENT;
use crate::api::cluster_profile::{Cluster, ClusterProfile};
use crate::api::{is_name, secret};
use crate::credential_policy::Reference;
use crate::kubeconfig_user::{self, Credential};
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
    provider: &'a Provider,
    cluster: &'a Cluster,
    /// The extension with the configuration of the provider.
    config: Option<&'a Value>,
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

fn chosen<'a>(
    object: &'a Object<ClusterProfile>,
    providers: &'a Providers,
) -> Result<(&'a Provider, &'a Cluster), Problem> {
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
    let text = cluster.server.trim();
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
    providers: &'a Providers,
) -> Result<Way<'a>, Problem> {
    let (provider, cluster) = chosen(object, providers)?;
    let config = cluster.extensions.iter().find(|it| it.name == CONFIG);
    let config = config.map(|it| &it.extension);
    let text = |field: &str| config?.get(field)?.as_str().filter(|text| !text.is_empty());
    let needed = |field: &str| {
        let of = format!("{field} of the extension {CONFIG} of the access provider is missing");
        text(field).ok_or_else(|| missing(of))
    };
    let (name, entry) = match &provider.source {
        CredentialSource::Kubeconfig => (needed("name")?, Some(needed("key")?.to_owned())),
        CredentialSource::Token => (needed("clusterName")?, None),
        CredentialSource::Plugin(..) if !providers.may_run => {
            let text = format!(
                "access provider {} runs an exec plugin; set --cluster-health-profile-exec to run it",
                provider.name
            );
            return Err(Problem::new(Code::PluginFailed, text));
        }
        CredentialSource::Plugin(..) => {
            let reference = Reference::SameNamespace;
            let (secret, entry, context) = (None, None, None);
            return Ok(Way { provider, cluster, config, secret, reference, entry, context });
        }
    };
    let is_kubeconfig = entry.is_some();
    let own = object.metadata.namespace().unwrap_or_default();
    let namespace = text("namespace").filter(|_| is_kubeconfig).unwrap_or(own);
    if !is_name(name) || !is_name(namespace) {
        return Err(missing(format!(
            "the access provider names a Secret {namespace}/{name}, which is not a valid name"
        )));
    }
    if namespace != own && !allowed.iter().any(|it| it == namespace) {
        let text = format!(
            "Secret {namespace}/{name} is not in namespace {own} of the ClusterProfile; move it, or add its namespace to \
             --cluster-health-profile-secret-namespaces"
        );
        return Err(Problem::new(Code::CredentialRefused, text));
    }
    let context = text("context").filter(|_| is_kubeconfig);
    let reference =
        if namespace == own { Reference::SameNamespace } else { Reference::OtherNamespace };
    let secret = Some(format!("{namespace}/{name}"));
    Ok(Way { provider, cluster, config, secret, reference, entry, context })
}

impl Way<'_> {
    /// The name of the provider.
    pub(super) fn provider(&self) -> &str {
        &self.provider.name
    }

    /// The plugin that prints the credential, with what it is told; `None` for a provider that is built in.
    pub(super) fn plugin(&self) -> Option<PluginSpec> {
        let CredentialSource::Plugin(spec, is_told) = &self.provider.source else { return None };
        let Cluster { server, proxy_url, tls_server_name, .. } = self.cluster;
        let told = || {
            json!({
                "server": server,
                "tls-server-name": tls_server_name,
                "insecure-skip-tls-verify": self.cluster.insecure_skip_tls_verify,
                "certificate-authority-data": self.cluster.certificate_authority_data,
                "proxy-url": proxy_url,
                "config": self.config,
            })
        };
        Some(PluginSpec { cluster: is_told.then(told), ..spec.clone() })
    }

    /// The credential that is in a Secret.
    ///
    /// # Errors
    /// The first thing that is missing or cannot be used, by its field or key.
    pub(crate) fn credential(&self, secret: Option<&SecretData>) -> Result<Credential, Problem> {
        let key = self.secret.as_deref().unwrap_or_default();
        let secret = SecretData::to_send(secret, self.reference, key)?;
        let Some(entry) = &self.entry else { return Ok((Some(secret.needed_token(key)?), None)) };
        let place = format!("key {entry} of Secret {key}");
        kubeconfig_user::read(secret.entry.as_ref(), self.context, &place)?.credential(&place)
    }

    /// The inputs of the client of the cluster with this credential.
    ///
    /// # Errors
    /// The first field that cannot be used.
    pub(crate) fn inputs(
        &self,
        (token, pair): Credential,
        allow_plaintext: bool,
    ) -> Result<Inputs, Problem> {
        let cluster = self.cluster;
        let server = cluster.server.trim();
        if server.is_empty() {
            let text = "cluster.server of the access provider is empty";
            return Err(Problem::new(Code::BadEndpoint, text));
        }
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let everything = cluster.insecure_skip_tls_verify;
        Ok(Inputs {
            addresses: vec![Address::parse(server)?],
            ca: self.ca()?,
            server_name: text(&cluster.tls_server_name),
            token,
            pair,
            impersonate: None,
            proxy: text(&cluster.proxy_url).map(SecretString::from),
            tls: WaivedChecks { everything, ..WaivedChecks::default() },
            fields: FIELDS,
            renewed_in: match self.secret {
                Some(_) => "the Secret of the access provider",
                None => "the exec plugin of the access provider",
            },
            allow_plaintext,
            user_agent: USER_AGENT.to_owned(),
        })
    }

    fn ca(&self) -> Result<Vec<u8>, Problem> {
        let data = self.cluster.certificate_authority_data.trim();
        if data.is_empty() && !self.cluster.certificate_authority.is_empty() {
            let text = "certificate-authority of the access provider is a file, which is not read; \
                use certificate-authority-data";
            return Err(Problem::new(Code::CaParse, text));
        }
        let decoded = secret::decode(data).map(|ca| ca.expose_secret().to_vec());
        let text = "certificate-authority-data of the access provider is not base64";
        decoded.ok_or_else(|| Problem::new(Code::CaParse, text))
    }
}

/// A hash of the fields that the connection depends on.
pub(crate) fn access(object: &Object<ClusterProfile>) -> u64 {
    let status = &object.status;
    let text = |providers| serde_json::to_value(providers).as_ref().map(Value::to_string).ok();
    health::hash(&format!(
        "{:?} {}",
        text(&status.access_providers),
        status.credential_providers.is_empty()
    ))
}

#[cfg(test)]
mod tests;
