//! A context of a kubeconfig that a Secret holds. Only what is inside the kubeconfig is used: the author of a
//! Secret would have files, commands and passwords read and run here. Pure.

use health::Code;
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use probe::{ClientPair, Problem};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};

use crate::api::secret;

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
    let missing = |text: String| Problem::new(Code::SecretMissing, text);
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
        let pair = pair(user).ok_or_else(|| {
            let text = format!(
                "the user of {place} needs both client-certificate-data and client-key-data, in base64"
            );
            Problem::new(Code::ClientCertificate, text)
        })?;
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

/// The client certificate, if there is one; outside, `None` for half of one.
#[expect(clippy::option_option, reason = "no certificate is no mistake")]
fn pair(user: &AuthInfo) -> Option<Option<ClientPair>> {
    match (&user.client_certificate_data, &user.client_key_data) {
        (None, None) => Some(None),
        (Some(certificate), Some(key)) => {
            let certificate = secret::decode(certificate)?.expose_secret().to_vec();
            Some(Some(ClientPair { certificate, key: secret::decode(key.expose_secret())? }))
        }
        _ => None,
    }
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
