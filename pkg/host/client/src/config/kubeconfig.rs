//! Reads a kubeconfig into [`Settings`]. kube's types do the parsing; what the fields mean, and
//! which of them win, is client-go's.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderName, HeaderValue, Uri};
use kube::config::{AuthInfo, Cluster, ExecConfig, ExecInteractiveMode, Kubeconfig};
use rustls::pki_types::ServerName;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use transport::{Proxy, sensitive_header};
use zeroize::Zeroizing;

use crate::config::settings::{
    AddressError, Material, PluginSpec, Settings, TrustSource, User, server, shown,
};
use crate::error::KubeconfigError;
use crate::identity::PluginError;

/// Reads `text`, whose paths are relative to `folder`; `master` replaces the server.
pub(crate) fn parse(
    text: &str,
    folder: &Path,
    master: Option<Uri>,
) -> Result<Settings, KubeconfigError> {
    let file = Kubeconfig::from_yaml(text).map_err(|error| KubeconfigError::not_yaml(&error))?;
    settings(&file, folder, master)
}

/// Settings of the current context of `file`; `master` replaces the server.
pub(crate) fn settings(
    file: &Kubeconfig,
    folder: &Path,
    master: Option<Uri>,
) -> Result<Settings, KubeconfigError> {
    let (cluster, user) = current(file)?;
    let reader = Reader { folder };
    let mut settings = Settings {
        server: Uri::default(),
        trust: reader.trust(cluster)?,
        server_name: server_name(cluster)?,
        proxy: proxy(cluster)?,
        user: reader.user(user, cluster)?,
    };
    settings.server = match (master, cluster.server.as_deref()) {
        (Some(master), _) => master,
        (None, None | Some("")) => return Err(invalid("its cluster has no server")),
        (None, Some(address)) => server(address, settings.tls_is_configured())
            .map_err(|problem| unusable_server(&shown(address), problem))?,
    };
    Ok(settings)
}

/// The cluster and the user of the current context.
fn current(file: &Kubeconfig) -> Result<(&Cluster, &AuthInfo), KubeconfigError> {
    let missing = |kind, name: &str| invalid(format!("it has no {kind} {name:?}"));
    let name = file.current_context.as_deref().filter(|name| !name.is_empty());
    // An empty file looks like this too.
    let no_context = "it has no current-context; set one with kubectl config use-context";
    let name = name.ok_or_else(|| invalid(no_context))?;
    let context = file.contexts.iter().find(|named| named.name == name);
    let context =
        context.and_then(|named| named.context.as_ref()).ok_or_else(|| missing("context", name))?;
    let name = &context.cluster;
    let cluster = file.clusters.iter().find(|named| &named.name == name);
    let cluster =
        cluster.and_then(|named| named.cluster.as_ref()).ok_or_else(|| missing("cluster", name))?;
    let name = context.user.as_deref().unwrap_or_default();
    let user = file.auth_infos.iter().find(|named| named.name == name);
    let user =
        user.and_then(|named| named.auth_info.as_ref()).ok_or_else(|| missing("user", name))?;
    Ok((cluster, user))
}

struct Reader<'a> {
    folder: &'a Path,
}

impl Reader<'_> {
    /// The data of one field, or the file of another; data wins.
    fn material(
        &self,
        data: (&'static str, Option<&str>),
        file: (&'static str, Option<&str>),
    ) -> Result<Option<Material>, KubeconfigError> {
        if let (field, Some(text)) = data
            && !text.is_empty()
        {
            let mut compact = Zeroizing::new(String::with_capacity(text.len()));
            compact.extend(text.split_ascii_whitespace());
            let bytes = BASE64_STANDARD.decode(compact.as_bytes());
            let bytes = bytes.map_err(|_| invalid(format!("its {field} is not base64")))?;
            return Ok(Some(Material::Data(field, Arc::new(Zeroizing::new(bytes)))));
        }
        match file {
            (field, Some(path)) if !path.is_empty() => {
                Ok(Some(Material::File(field, self.folder.join(path))))
            }
            _ => Ok(None),
        }
    }

    fn trust(&self, cluster: &Cluster) -> Result<TrustSource, KubeconfigError> {
        let bundle = self.material(
            ("certificate-authority-data", cluster.certificate_authority_data.as_deref()),
            ("certificate-authority", cluster.certificate_authority.as_deref()),
        )?;
        match (cluster.insecure_skip_tls_verify.unwrap_or_default(), bundle) {
            (true, Some(_)) => Err(invalid(
                "it has both insecure-skip-tls-verify and certificate-authority; remove one of them",
            )),
            (true, None) => Ok(TrustSource::Nothing),
            (false, Some(bundle)) => Ok(TrustSource::Bundle(bundle)),
            (false, None) => Ok(TrustSource::System),
        }
    }

    fn user(&self, user: &AuthInfo, cluster: &Cluster) -> Result<User, KubeconfigError> {
        if let Some(provider) = &user.auth_provider {
            let name = &provider.name;
            let gone = "no longer exists; use the exec plugin that replaces it";
            return Err(invalid(format!("its auth-provider {name:?} {gone}")));
        }
        let key_data = user.client_key_data.as_ref().map(SecretString::expose_secret);
        let chain = self.material(
            ("client-certificate-data", user.client_certificate_data.as_deref()),
            ("client-certificate", user.client_certificate.as_deref()),
        )?;
        let key = self
            .material(("client-key-data", key_data), ("client-key", user.client_key.as_deref()))?;
        let certificate = match (chain, key) {
            (Some(chain), Some(key)) => Some((chain, key)),
            (None, None) => None,
            (Some(_), None) => return Err(invalid("it has client-certificate without client-key")),
            (None, Some(_)) => return Err(invalid("it has client-key without client-certificate")),
        };
        let token_file = user.token_file.as_deref().filter(|path| !path.is_empty());
        Ok(User {
            certificate,
            authorization: authorization(user)?,
            token_file: token_file.map(|path| self.folder.join(path)),
            impersonation: impersonation(user)?,
            plugin: user.exec.as_ref().map(|exec| self.plugin(exec, cluster)).transpose()?,
        })
    }

    fn plugin(&self, exec: &ExecConfig, cluster: &Cluster) -> Result<PluginSpec, KubeconfigError> {
        let spec = PluginSpec::new(exec, self.folder)?;
        Ok(if exec.provide_cluster_info { spec.with_cluster(cluster) } else { spec })
    }
}

impl PluginSpec {
    /// The plugin of an `exec` configuration; paths are relative to `folder`. It gets no description of a cluster.
    ///
    /// # Errors
    /// The configuration cannot work; no value of a variable is quoted.
    pub fn new(exec: &ExecConfig, folder: &Path) -> Result<Self, PluginError> {
        let command = exec.command.as_deref().filter(|command| !command.is_empty());
        let unusable = PluginError::Unusable;
        let command = command.ok_or_else(|| unusable("it has no command".to_owned()))?;
        if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
            let why = "must be run interactively (interactiveMode: Always), but there is no terminal; \
                       set Never or IfAvailable";
            return Err(unusable(format!("{command:?} {why}")));
        }
        let api_version = exec.api_version.as_deref().unwrap_or_default();
        if !matches!(
            api_version,
            "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1"
        ) {
            let advice = "is not known; use client.authentication.k8s.io/v1 or v1beta1";
            return Err(unusable(format!("its apiVersion {api_version:?} {advice}")));
        }
        let env = exec.env.iter().flatten().map(|variable| {
            let text = |field: &str| variable.get(field).cloned().unwrap_or_default();
            (text("name"), text("value"))
        });
        let env: Vec<_> = env.collect();
        let is_invalid = |(name, _): &(String, _)| name.is_empty() || name.contains(['=', '\0']);
        if let Some(nth) = env.iter().position(is_invalid) {
            let nth = nth + 1;
            return Err(unusable(format!(
                "variable {nth} of its env has no name, or one with = or NUL; correct it"
            )));
        }
        Ok(Self {
            // A bare name is looked up in PATH, as client-go does.
            command: if command.contains('/') { folder.join(command) } else { command.into() },
            args: exec.args.clone().unwrap_or_default(),
            env,
            api_version: api_version.to_owned(),
            cluster: None,
        })
    }

    /// The plugin, which gets the description of this cluster, as `provideClusterInfo` asks for.
    #[must_use]
    pub fn with_cluster(self, cluster: &Cluster) -> Self {
        Self { cluster: Some(cluster_info(cluster)), ..self }
    }
}

/// The description of the cluster that a plugin gets.
fn cluster_info(cluster: &Cluster) -> serde_json::Value {
    let extension = cluster.extensions.iter().flatten();
    let config = extension
        .filter(|named| named.name == "client.authentication.k8s.io/exec")
        .map(|named| named.extension.clone())
        .next();
    json!({
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify.unwrap_or_default(),
        "certificate-authority-data": cluster.certificate_authority_data,
        "proxy-url": cluster.proxy_url,
        "config": config,
    })
}

fn server_name(cluster: &Cluster) -> Result<Option<ServerName<'static>>, KubeconfigError> {
    let Some(name) = cluster.tls_server_name.as_deref().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let parsed = ServerName::try_from(name.to_owned());
    let problem = || format!("its tls-server-name {name:?} is not a host name or address");
    parsed.map(Some).map_err(|_| invalid(problem()))
}

fn proxy(cluster: &Cluster) -> Result<Option<Proxy>, KubeconfigError> {
    let address = cluster.proxy_url.as_deref().filter(|address| !address.is_empty());
    Ok(address.map(Proxy::parse).transpose()?)
}

fn authorization(user: &AuthInfo) -> Result<Option<HeaderValue>, KubeconfigError> {
    let token = user.token.as_ref().map(SecretString::expose_secret);
    if let Some(token) = token.filter(|token| !token.is_empty()) {
        return bearer("token", token).map(Some);
    }
    let Some(name) = user.username.as_deref().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let password = user.password.as_ref().map(SecretString::expose_secret).unwrap_or_default();
    let login = Zeroizing::new([name, ":", password].concat());
    let login = Zeroizing::new(BASE64_STANDARD.encode(login.as_bytes()));
    secret("username", &["Basic ", &login]).map(Some)
}

/// The header for a bearer token, which nothing shows and which is overwritten when it is dropped.
pub(crate) fn bearer(field: &'static str, token: &str) -> Result<HeaderValue, KubeconfigError> {
    secret(field, &["Bearer ", token.trim()])
}

fn secret(field: &'static str, parts: &[&str]) -> Result<HeaderValue, KubeconfigError> {
    sensitive_header(parts).ok_or_else(|| no_header(field))
}

fn impersonation(user: &AuthInfo) -> Result<Vec<(HeaderName, HeaderValue)>, KubeconfigError> {
    let mut headers = Vec::new();
    let mut add = |name: &str, value: &str| {
        let name = HeaderName::try_from(name).map_err(|_| no_header("as-user-extra"))?;
        let value = HeaderValue::from_str(value).map_err(|_| no_header("as"))?;
        headers.push((name, value));
        Ok::<_, KubeconfigError>(())
    };
    for (name, value) in
        [("impersonate-user", &user.impersonate), ("impersonate-uid", &user.impersonate_uid)]
    {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            add(name, value)?;
        }
    }
    for group in user.impersonate_groups.iter().flatten() {
        add("impersonate-group", group)?;
    }
    for (key, values) in user.impersonate_user_extra.iter().flatten() {
        for value in values {
            add(&format!("impersonate-extra-{}", key.to_ascii_lowercase()), value)?;
        }
    }
    Ok(headers)
}

fn invalid(problem: impl Into<String>) -> KubeconfigError {
    KubeconfigError::Invalid(problem.into())
}

fn no_header(field: &str) -> KubeconfigError {
    invalid(format!("its {field} holds characters that no HTTP header may hold"))
}

/// `address` is as it may be shown, without a user.
pub(crate) fn unusable_server(address: &str, problem: AddressError) -> KubeconfigError {
    invalid(format!("its server {address:?} cannot be used: {problem}"))
}

#[cfg(test)]
mod tests;
