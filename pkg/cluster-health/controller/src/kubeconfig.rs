//! A context of a kubeconfig that a Secret holds, and the entry of a cluster as kubeconfigs have it. Only what is inside
//! the kubeconfig is used: the author of a Secret would have files, commands and passwords read and run here. Pure.

use health::Code;
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use probe::{Address, ClientPair, Inputs, Problem, WaivedChecks};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};

use crate::USER_AGENT;
use crate::api::secret;
use crate::secret_data::{client_pair, missing};

/// Token and client certificate.
pub(crate) type Credential = (Option<SecretString>, Option<ClientPair>);

/// A context of a kubeconfig: the user, and the cluster if the kubeconfig has it.
pub(crate) struct InContext {
    pub(crate) cluster: Option<Cluster>,
    user: AuthInfo,
}

/// The context of this name, by default the current one. `place` is the Secret and its key.
///
/// # Errors
/// The first thing that is missing or cannot be read.
pub(crate) fn read(
    kubeconfig: Option<&SecretSlice<u8>>,
    context: Option<&str>,
    place: &str,
) -> Result<InContext, Problem> {
    let text = kubeconfig.ok_or_else(|| missing(format!("{place} does not exist")))?;
    // The error of the parser may quote a credential.
    let text = std::str::from_utf8(text.expose_secret()).ok();
    let file = text.and_then(|text| Kubeconfig::from_yaml(text).ok());
    let file = file.ok_or_else(|| missing(format!("{place} is not a kubeconfig")))?;
    let context = context.or(file.current_context.as_deref()).unwrap_or_default();
    in_context(&file, context)
        .ok_or_else(|| missing(format!("{place} has no user for context {context:?}")))
}

fn in_context(file: &Kubeconfig, context: &str) -> Option<InContext> {
    let context = file.contexts.iter().find(|it| it.name == context)?.context.as_ref()?;
    let cluster = file.clusters.iter().find(|it| it.name == context.cluster);
    let cluster = cluster.and_then(|it| it.cluster.clone());
    let name = context.user.as_deref()?;
    let user = file.auth_infos.iter().find(|user| user.name == name)?.auth_info.clone()?;
    Some(InContext { cluster, user })
}

impl InContext {
    /// Token and client certificate of the user; at least one of them.
    ///
    /// # Errors
    /// The first thing that is missing or cannot be used.
    pub(crate) fn credential(&self, place: &str) -> Result<Credential, Problem> {
        let Self { user, .. } = self;
        let token = user.token.as_ref().map(secrecy::ExposeSecret::expose_secret);
        let token = token.filter(|token| !token.trim().is_empty()).map(SecretString::from);
        let incomplete = || {
            format!(
                "the user of {place} needs both client-certificate-data and client-key-data, in base64"
            )
        };
        let refused = || Problem::new(Code::ClientCertificate, incomplete());
        let decoded = |data: Option<&str>| {
            data.map(|data| secret::decode(data).ok_or_else(refused)).transpose()
        };
        let key = user.client_key_data.as_ref().map(SecretString::expose_secret);
        let certificate = decoded(user.client_certificate_data.as_deref())?;
        let pair = client_pair(certificate, decoded(key)?, incomplete)?;
        if token.is_none() && pair.is_none() {
            let text = format!(
                "the user of {place} has neither a token nor client-certificate-data; files, exec plugins, auth \
                 providers and passwords are not used"
            );
            return Err(Problem::new(Code::TokenEmpty, text));
        }
        Ok((token, pair))
    }

    /// The first thing of the user that would have us run, read or be somebody else; such a user is not the one that
    /// its token belongs to.
    pub(crate) fn first_refused(&self) -> Option<&'static str> {
        let AuthInfo { exec, auth_provider, token_file, username, password, .. } = &self.user;
        let AuthInfo { client_certificate, client_key, impersonate, .. } = &self.user;
        [
            (exec.is_some(), "exec"),
            (auth_provider.is_some(), "auth-provider"),
            (token_file.is_some(), "tokenFile"),
            (client_certificate.is_some(), "client-certificate"),
            (client_key.is_some(), "client-key"),
            (username.is_some() || password.is_some(), "username and password"),
            (impersonate.is_some() || self.user.impersonate_groups.is_some(), "impersonation"),
        ]
        .into_iter()
        .find_map(|(is_there, name)| is_there.then_some(name))
    }
}

/// The inputs of the client of the cluster that has this entry, by this credential. `place` is the object or the Secret
/// that has the entry.
///
/// # Errors
/// The first field that cannot be used.
pub(crate) fn inputs(
    server: &Cluster,
    (token, pair): Credential,
    place: &str,
) -> Result<Inputs, Problem> {
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let address = server.server.as_deref().unwrap_or_default().trim();
    if address.is_empty() {
        return Err(Problem::new(
            Code::BadEndpoint,
            format!("{place} has no server; set cluster.server"),
        ));
    }
    let data = server.certificate_authority_data.as_deref().unwrap_or_default().trim();
    if data.is_empty() && text(&server.certificate_authority).is_some() {
        return Err(file_of_ca(place));
    }
    let ca = secret::decode(data).ok_or_else(|| {
        Problem::new(Code::CaParse, format!("certificate-authority-data of {place} is not base64"))
    })?;
    let everything = server.insecure_skip_tls_verify.unwrap_or_default();
    Ok(Inputs {
        addresses: vec![Address::parse(address)?],
        ca: ca.expose_secret().to_vec(),
        server_name: text(&server.tls_server_name),
        token,
        pair,
        proxy: text(&server.proxy_url).map(SecretString::from),
        tls: WaivedChecks { everything, ..WaivedChecks::default() },
        user_agent: USER_AGENT.to_owned(),
        ..Inputs::default()
    })
}

/// The problem of an entry that names a file.
pub(crate) fn file_of_ca(place: &str) -> Problem {
    let text = format!(
        "certificate-authority of {place} is a file, which is not read; use certificate-authority-data"
    );
    Problem::new(Code::CaParse, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECONFIG: &str = "
current-context: one
contexts:
- {name: one, context: {cluster: c, user: token}}
- {name: two, context: {cluster: c, user: pair}}
- {name: three, context: {cluster: c, user: half}}
- {name: four, context: {cluster: c, user: plugin}}
- {name: five, context: {cluster: c, user: nobody}}
users:
- {name: token, user: {token: planted}}
- {name: pair, user: {client-certificate-data: YQ==, client-key-data: YWI=}}
- {name: half, user: {client-certificate-data: YQ==}}
- {name: plugin, user: {exec: {command: planted, apiVersion: client.authentication.k8s.io/v1}}}
";

    fn in_context(context: &str, text: &str) -> Result<Credential, Problem> {
        let (text, context) =
            (text.as_bytes().to_vec().into(), Some(context).filter(|it| !it.is_empty()));
        let place = "key value of Secret ns/s";
        read(Some(&text), context, place)?.credential(place)
    }

    #[test]
    fn the_user_of_a_context_has_a_token_or_a_client_certificate_inside_the_kubeconfig() {
        for context in ["", "one"] {
            let (token, pair) = in_context(context, KUBECONFIG).unwrap();
            assert_eq!(token.unwrap().expose_secret(), "planted");
            assert!(pair.is_none());
        }
        let (token, pair) = in_context("two", KUBECONFIG).unwrap();
        let pair = pair.unwrap();
        assert!(token.is_none() && pair.certificate == b"a" && pair.key.expose_secret() == b"ab");
        for (context, text, code) in [
            ("three", KUBECONFIG, Code::ClientCertificate),
            ("four", KUBECONFIG, Code::TokenEmpty),
            ("five", KUBECONFIG, Code::SecretMissing),
            ("six", KUBECONFIG, Code::SecretMissing),
            ("one", "users: [{name: planted", Code::SecretMissing),
            ("one", "", Code::SecretMissing),
        ] {
            let problem = in_context(context, text).unwrap_err();
            assert_eq!(problem.code(), code, "{context}: {problem}");
            assert!(!problem.to_string().contains("planted"), "{problem}");
        }
    }
}
