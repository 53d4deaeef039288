//! How the cluster of Cluster API's Cluster is reached: by the kubeconfig in a Secret of its namespace. Pure.

use health::Code;
use objects::Object;
use probe::{Fields, Inputs, Problem};

use crate::api::cluster_api::{Cluster, secret_name};
use crate::api::is_name;
use crate::credential_policy::Reference;
use crate::kubeconfig;
use crate::secret_data::{CLUSTER_API_SECRET, SecretData, missing};

/// Where the user of a member mends what is refused.
const FIELDS: Fields = Fields {
    ca: "certificate-authority-data of the kubeconfig",
    other_name: ", or set tls-server-name in the kubeconfig",
};
/// The key that has the kubeconfig.
pub(crate) const KEY: &str = "value";

/// The Secret with the kubeconfig, as `namespace/name`: in the namespace of the Cluster
/// (`rule:secret-of-the-same-namespace`).
///
/// # Errors
/// An annotation names what can be no Secret.
pub(crate) fn secret_key(cluster: &Object<Cluster>) -> Result<String, Problem> {
    let (name, namespace) =
        (secret_name(cluster), cluster.metadata.namespace().unwrap_or_default());
    if !is_name(&name) {
        return Err(missing(format!(
            "the annotation infra-controller-manager/probe-secret has {name:?}, which is not the name of a Secret"
        )));
    }
    Ok(format!("{namespace}/{name}"))
}

/// Where the Cluster says that it is reached; empty as long as it does not.
pub(crate) fn addresses(cluster: &Object<Cluster>) -> Vec<Box<str>> {
    let endpoint = &cluster.body.spec.control_plane_endpoint;
    if endpoint.host.is_empty() {
        return Vec::new();
    }
    vec![format!("{}:{}", endpoint.host, endpoint.port).into()]
}

/// The inputs of the client, all from the kubeconfig.
///
/// # Errors
/// The first thing that is missing or cannot be used.
pub(crate) fn inputs(
    cluster: &Object<Cluster>,
    secret: Option<&SecretData>,
    allow_plaintext: bool,
) -> Result<Inputs, Problem> {
    let key = secret_key(cluster)?;
    let refused = |text: String| Problem::new(Code::CredentialRefused, text);
    // A Secret that an annotation names must not become a kubeconfig because of its key alone. No label helps then.
    if secret.is_some_and(|it| !it.is_of_cluster_api) {
        return Err(refused(format!(
            "Secret {key} is not used: it is not of type {CLUSTER_API_SECRET}"
        )));
    }
    let secret = SecretData::to_send(secret, Reference::SameNamespace, &key)?;
    let place = format!("key {KEY} of Secret {key}");
    let context = kubeconfig::read(secret.entry.as_ref(), None, &place)?;
    if let Some(what) = context.first_refused() {
        return Err(refused(format!(
            "the user of {place} has {what}, which is not used; it needs a token or a client certificate inside the \
             kubeconfig"
        )));
    }
    let credential = context.credential(&place)?;
    let Some(server) = context.cluster else {
        return Err(missing(format!("{place} has no cluster for its current context")));
    };
    if server.certificate_authority.is_some() {
        return Err(kubeconfig::file_of_ca(&place));
    }
    Ok(Inputs {
        fields: FIELDS,
        renewed_in: "the Secret with the kubeconfig",
        allow_plaintext,
        ..kubeconfig::inputs(&server, credential, &place)?
    })
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use secrecy::ExposeSecret as _;
    use serde_json::{Value, json};

    use super::super::ClusterApi;
    use super::super::testing::{cluster, kubeconfig};
    use super::*;
    use crate::shared_flavour::SharedFlavour as _;

    fn data(kubeconfig: &str, kind: &str) -> SecretData {
        let secret = json!({"type": kind, "data": {KEY: STANDARD.encode(kubeconfig)}});
        SecretData::decode_with(secret.to_string().as_bytes(), Some(KEY)).unwrap()
    }

    fn code(kubeconfig: &str) -> Code {
        let (cluster, secret) = (cluster(|_| ()), data(kubeconfig, CLUSTER_API_SECRET));
        let problem = inputs(&cluster, Some(&secret), false).unwrap_err();
        assert!(!problem.to_string().contains("planted"), "{problem}");
        problem.code()
    }

    #[test]
    fn everything_comes_from_the_kubeconfig_in_the_secret() {
        let cluster = cluster(|_| ());
        assert_eq!(secret_key(&cluster).unwrap(), "ns/a-kubeconfig");
        let text = kubeconfig("{token: planted}", "");
        let made = inputs(&cluster, Some(&data(&text, CLUSTER_API_SECRET)), false).unwrap();
        assert_eq!(made.addresses[0].to_string(), "https://10.0.0.1:6443");
        assert_eq!(made.token.unwrap().expose_secret(), "planted");
        assert!(made.pair.is_none() && made.proxy.is_none() && !made.tls.everything);
        let more =
            ", tls-server-name: x, proxy-url: \"http://p:1\", insecure-skip-tls-verify: true";
        let text = kubeconfig("{client-certificate-data: YQ==, client-key-data: YWI=}", more);
        let made = inputs(&cluster, Some(&data(&text, CLUSTER_API_SECRET)), false).unwrap();
        assert_eq!(made.server_name.as_deref(), Some("x"));
        assert!(made.pair.is_some() && made.proxy.is_some() && made.tls.everything);
    }

    /// `rule:secret-of-the-same-namespace`
    #[test]
    fn another_secret_of_the_same_namespace_may_be_named_and_has_to_have_the_type() {
        let annotated = |name: &str| {
            let annotations = json!({"infra-controller-manager/probe-secret": name});
            cluster(|it: &mut Value| it["metadata"]["annotations"] = annotations)
        };
        let named = annotated("probe");
        assert_eq!(secret_key(&named).unwrap(), "ns/probe");
        assert_ne!(ClusterApi::access_of(&named), ClusterApi::access_of(&cluster(|_| ())));
        for name in ["other/probe", "..", ""] {
            let problem = secret_key(&annotated(name)).unwrap_err();
            assert_eq!(problem.code(), Code::SecretMissing, "{problem}");
        }
        let secret = data(&kubeconfig("{token: planted}", ""), "Opaque");
        let problem = inputs(&named, Some(&secret), false).unwrap_err();
        assert_eq!(problem.code(), Code::CredentialRefused, "{problem}");
        assert_eq!(inputs(&named, None, false).unwrap_err().code(), Code::SecretMissing);
    }

    #[test]
    fn a_user_that_would_run_read_or_be_something_else_is_refused() {
        for user in [
            "{token: planted, exec: {command: planted, apiVersion: client.authentication.k8s.io/v1}}",
            "{token: planted, auth-provider: {name: x, config: {}}}",
            "{token: planted, tokenFile: /planted}",
            "{token: planted, client-certificate: /planted}",
            "{token: planted, client-key: /planted}",
            "{token: planted, username: planted}",
            "{token: planted, password: planted}",
            "{token: planted, as: root}",
            "{token: planted, as-groups: [planted]}",
        ] {
            assert_eq!(code(&kubeconfig(user, "")), Code::CredentialRefused, "{user}");
        }
        assert_eq!(code(&kubeconfig("{}", "")), Code::TokenEmpty);
        let token = "{token: planted}";
        let file = ", certificate-authority: /planted";
        assert_eq!(code(&kubeconfig(token, file)), Code::CaParse);
        let no_base64 = ", certificate-authority-data: \"%planted\"";
        assert_eq!(code(&kubeconfig(token, no_base64)), Code::CaParse);
        let elsewhere = kubeconfig(token, "").replace("cluster: c,", "cluster: d,");
        assert_eq!(code(&elsewhere), Code::SecretMissing);
        assert_eq!(code("planted: ["), Code::SecretMissing);
    }
}
