//! How a member is reached, from its object and its Secret; and [`inputs_of`] one member that is looked
//! up once.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use health::Code;
use objects::Object;
use probe::{Address, ClientPair, Fields, Inputs, Problem, TlsOptions};
use secrecy::ExposeSecret as _;
use serde_json::Value;

use super::access;
use crate::USER_AGENT;
use crate::api::is_name;
use crate::api::kubefed::{KUBEFED_CLUSTERS, KubeFedCluster, KubeFedClusterSpec};
use crate::credential_policy::{Lookup, Reference, may_ask, may_send};
use crate::secret_data::SecretData;
use crate::stored_objects::{StoredError, StoredObjects};

/// Where the user of a member mends what is refused.
const FIELDS: Fields = Fields {
    ca: "spec.caBundle, or ca.crt of the Secret",
    other_name: ", or put SubjectName into spec.disabledTLSValidations",
};

/// Key of the Secret of a member: in the namespace of its object
/// (`rule:secret-of-the-same-namespace`).
pub(crate) fn secret_key(cluster: &Object<KubeFedCluster>) -> Option<String> {
    let name = &*cluster.body.spec.secret_ref.name;
    let namespace = cluster.metadata.namespace()?;
    is_name(name).then(|| format!("{namespace}/{name}"))
}

/// Where the member is reached, in one spelling for all that mean the same.
pub(crate) fn endpoint(cluster: &Object<KubeFedCluster>) -> String {
    let text = cluster.body.spec.api_endpoint.trim();
    Address::parse(text).map_or_else(|_| text.to_owned(), |address| address.to_string())
}

/// What a client of the member is made of.
///
/// # Errors
/// The first thing that is missing or cannot be used, by its field or key.
pub(crate) fn inputs(
    cluster: &Object<KubeFedCluster>,
    secret: Option<&SecretData>,
    allow_plaintext: bool,
) -> Result<Inputs, Problem> {
    let spec = &cluster.body.spec;
    if spec.api_endpoint.trim().is_empty() {
        return Err(Problem::new(Code::BadEndpoint, "spec.apiEndpoint is empty"));
    }
    let address = Address::parse(spec.api_endpoint.trim())?;
    let name = &spec.secret_ref.name;
    let missing = |why: String| Problem::new(Code::SecretMissing, why);
    if secret_key(cluster).is_none() {
        return Err(missing("spec.secretRef.name is empty or is not the name of a Secret".into()));
    }
    let secret = secret.ok_or_else(|| missing(format!("there is no Secret {name}")))?;
    may_send(Reference::SameNamespace, secret.facts)
        .map_err(|refusal| refusal.problem(&format!("Secret {name}")))?;
    if secret.token.is_none() {
        return Err(missing(format!("Secret {name} has no key token")));
    }
    let token = secret.token().ok_or_else(|| {
        let text = format!("key token of Secret {name} is empty or not text");
        Problem::new(Code::TokenEmpty, text)
    })?;
    Ok(Inputs {
        addresses: vec![address],
        ca: ca(spec, secret)?,
        token: Some(token),
        pair: pair(name, secret)?,
        impersonate: None,
        proxy: (!spec.proxy_url.is_empty()).then(|| spec.proxy_url.as_str().into()),
        tls: TlsOptions::from_names(spec.disabled_tls_validations.iter().map(String::as_str)),
        fields: FIELDS,
        renewed_in: "the Secret of spec.secretRef",
        allow_plaintext,
        user_agent: USER_AGENT.to_owned(),
    })
}

/// The bundle of the object, or else that of the Secret.
fn ca(spec: &KubeFedClusterSpec, secret: &SecretData) -> Result<Vec<u8>, Problem> {
    if spec.ca_bundle.is_empty() {
        return Ok(secret.ca.as_ref().map(|ca| ca.expose_secret().to_vec()).unwrap_or_default());
    }
    let decoded = STANDARD.decode(spec.ca_bundle.trim());
    decoded.map_err(|_| Problem::new(Code::CaParse, "spec.caBundle is not base64"))
}

fn pair(name: &str, secret: &SecretData) -> Result<Option<ClientPair>, Problem> {
    match (&secret.certificate, &secret.key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            let certificate = certificate.expose_secret().to_vec();
            Ok(Some(ClientPair { certificate, key: key.clone() }))
        }
        _ => {
            let text = format!("Secret {name} has only one of the keys tls.crt and tls.key");
            Err(Problem::new(Code::ClientCertificate, text))
        }
    }
}

#[cfg(test)]
mod tests;

/// What a client of the KubeFedCluster of this name is made of.
///
/// # Errors
/// An object could not be read; or, inside, it was, and cannot be used.
pub(crate) async fn inputs_of(
    objects: &StoredObjects,
    name: &str,
    lookup: &Lookup,
) -> Result<Result<Inputs, Problem>, StoredError> {
    if let Err(refusal) = may_ask(lookup.asker) {
        return Ok(Err(refusal.problem("the Secret of the KubeFedCluster")));
    }
    let namespace = lookup.secret_namespace.as_deref().unwrap_or_default();
    let key = format!("{namespace}/{name}");
    let mut whole = objects.whole(&KUBEFED_CLUSTERS, &key).await?;
    if let Some(metadata) = whole.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    let cluster = Object::<KubeFedCluster>::read(whole).map_err(|error| {
        let (kind, why) = (KUBEFED_CLUSTERS.kind.to_string(), error.to_string());
        StoredError::Form { kind, key, why }
    })?;
    let secret = match access::secret_key(&cluster) {
        Some(key) => objects.secret(&key).await?,
        None => None,
    };
    Ok(access::inputs(&cluster, secret.as_ref(), false))
}
