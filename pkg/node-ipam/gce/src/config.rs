//! [`Config`]: what the file of `--cloud-config` says, as far as it counts here.

use std::fmt;
use std::path::Path;

use http::Uri;
use secrecy::SecretString;

use crate::gcfg::{self, SyntaxError};

/// Google's own address of the API.
const API: &str = "https://compute.googleapis.com/compute/v1/";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be opened or is not UTF-8.
    #[error("cannot read {path}: {cause}")]
    Unreadable {
        /// Path of the file.
        path: String,
        /// Why.
        cause: std::io::Error,
    },
    /// A line of it is broken.
    #[error("cannot read the file: {0}")]
    Syntax(#[from] SyntaxError),
    /// A value is not of its kind. The value is not shown.
    #[error("cannot use {key} of [global]: {rule}")]
    Value {
        /// The key.
        key: &'static str,
        /// The form that is allowed.
        rule: &'static str,
    },
}

/// How Google is called.
#[derive(Clone, Debug)]
pub struct Config {
    /// The project of all Nodes; the metadata server is asked where none is named.
    pub(crate) project: Option<String>,
    /// The secondary range of the subnetwork that aliases are made of; the primary one when empty.
    pub(crate) secondary_range: String,
    /// The API, with a slash at its end.
    pub(crate) api: String,
    pub(crate) tokens: TokensFrom,
}

/// Where tokens come from.
#[derive(Clone)]
pub(crate) enum TokensFrom {
    /// The metadata server, for the default service account of the VM that we run on.
    Metadata,
    /// `token-url = nil`: the file of GOOGLE_APPLICATION_CREDENTIALS, then that of gcloud, then the
    /// metadata server.
    Default,
    /// A server that gives a token for this body and a token of the metadata server.
    Alternate { url: Uri, body: SecretString },
}

impl fmt::Debug for TokensFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Metadata => "Metadata",
            Self::Default => "Default",
            Self::Alternate { .. } => "Alternate",
        })
    }
}

impl Default for Config {
    fn default() -> Self {
        let (api, tokens) = (API.to_owned(), TokensFrom::Metadata);
        Self { project: None, secondary_range: String::new(), api, tokens }
    }
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or says what cannot be.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path);
        let unreadable =
            |cause| ConfigError::Unreadable { path: path.display().to_string(), cause };
        Self::parse(&text.map_err(unreadable)?)
    }

    /// Reads the text of a file. Keys and sections that are not known are left alone: other
    /// programs read the same file. Of a key that is there twice the last one counts.
    ///
    /// # Errors
    /// A line is broken, or a value is not of its kind.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let entries = gcfg::parse(text)?;
        let value = |wanted: &str| {
            let mut global = entries.iter().rev().filter(|entry| entry.section == "global");
            let entry = global.find(|entry| entry.key == wanted)?;
            Some(entry.value.clone()).filter(|value| !value.is_empty())
        };
        let project = value("project-id");
        if project.as_deref().is_some_and(|project| !is_project(project)) {
            let rule = "it must be a project's id, such as my-project-123";
            return Err(ConfigError::Value { key: "project-id", rule });
        }
        Ok(Self {
            project,
            secondary_range: value("secondary-range-name").unwrap_or_default(),
            api: value("api-endpoint").map_or(Ok(API.to_owned()), endpoint)?,
            tokens: tokens_from(value("token-url"), value("token-body"))?,
        })
    }
}

/// Ids may have a domain in front: `example.com:my-project`.
pub(crate) fn is_project(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
}

fn endpoint(text: String) -> Result<String, ConfigError> {
    match absolute(&text) {
        Some(uri) if uri.query().is_none() => Ok(format!("{}/", text.trim_end_matches('/'))),
        _ => Err(ConfigError::Value { key: "api-endpoint", rule: "it must be an http(s) URL" }),
    }
}

fn tokens_from(url: Option<String>, body: Option<String>) -> Result<TokensFrom, ConfigError> {
    let Some(url) = url else { return Ok(TokensFrom::Metadata) };
    if url == "nil" {
        return Ok(TokensFrom::Default);
    }
    let rule = "it must be an http(s) URL, or nil";
    let url = absolute(&url).ok_or(ConfigError::Value { key: "token-url", rule })?;
    Ok(TokensFrom::Alternate { url, body: body.unwrap_or_default().into() })
}

fn absolute(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    (is_http && uri.host().is_some()).then_some(uri)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text)
    }

    #[test]
    fn an_empty_file_means_google_and_the_metadata_server() {
        for text in ["", "[global]", "[global]\nproject-id =\nunknown-key = 1\n[other]\nx = y"] {
            let config = parse(text).unwrap();
            assert_eq!(config.project, None);
            assert_eq!(config.api, API);
            assert!(matches!(config.tokens, TokensFrom::Metadata));
        }
    }

    #[test]
    fn every_key_that_counts_is_read() {
        let config = parse(
            "[global]\nproject-id = one\nproject-id = example.com:two\n\
             secondary-range-name = pods\napi-endpoint = http://127.0.0.1:1/compute/v1\n\
             token-url = https://tokens.example/x\ntoken-body = \"the body\"",
        )
        .unwrap();
        assert_eq!(config.project.as_deref(), Some("example.com:two"));
        assert_eq!(config.secondary_range, "pods");
        assert_eq!(config.api, "http://127.0.0.1:1/compute/v1/");
        let TokensFrom::Alternate { url, body } = &config.tokens else { panic!("{config:?}") };
        assert_eq!(
            (url.to_string().as_str(), body.expose_secret()),
            ("https://tokens.example/x", "the body")
        );
        assert!(!format!("{config:?}").contains("the body"));
        let default = parse("[global]\ntoken-url = nil").unwrap();
        assert!(matches!(default.tokens, TokensFrom::Default));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_key_and_without_its_value() {
        for (line, key) in [
            ("project-id = ../secret", "project-id"),
            ("api-endpoint = secret", "api-endpoint"),
            ("api-endpoint = ftp://secret/", "api-endpoint"),
            ("api-endpoint = http://secret/?a=b", "api-endpoint"),
            ("token-url = secret", "token-url"),
            ("x = \"secret", "line 2"),
        ] {
            let error = parse(&format!("[global]\n{line}")).unwrap_err().to_string();
            assert!(error.contains(key) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Config::read(Path::new("/nowhere/cloud.conf")).unwrap_err();
        assert!(error.to_string().starts_with("cannot read /nowhere/cloud.conf: "), "{error}");
    }
}
