//! [`Tokens`]: the token of all calls. One call at a time requests the next one, a minute before the
//! end of the last; the others wait for its result.

use std::time::Duration;

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, Uri};
use http_body_util::Full;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::Instant;
use transport::sensitive_header;

use super::metadata::{Answer, Channel};
use crate::config::TokensFrom;
use crate::credentials::{Credentials, CredentialsError};
use crate::error::GceError;
use crate::metadata::Metadata;
use crate::metrics::Metrics;

const LIMIT: Duration = Duration::from_secs(30);
/// A token is renewed so long before its end, or half-way where it lives no longer than this.
const MARGIN: Duration = Duration::from_secs(60);
/// Longest time that a token is cached, whatever its `expires_in`: Google's live for an hour.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Callers that waited while a token request failed get its error, without a request of their own.
const FAILED_FOR: Duration = Duration::from_secs(2);

/// Gives out one token as long as it is good.
pub(crate) struct Tokens {
    source: Source,
    held: Mutex<Held>,
    metrics: Metrics,
}

/// Result of the last token request.
#[derive(Default)]
enum Held {
    #[default]
    Nothing,
    Token {
        bearer: HeaderValue,
        until: Instant,
    },
    Failed {
        error: GceError,
        until: Instant,
    },
}

enum Source {
    Metadata(Metadata),
    File { credentials: Credentials, channel: Channel },
    Alternate { metadata: Metadata, channel: Channel, url: Uri, body: SecretString },
}

/// A token, and for how long it is good.
struct Token {
    text: SecretString,
    lasts: Duration,
}

impl Token {
    fn new(text: String, seconds: u64) -> Self {
        Self { text: text.into(), lasts: Duration::from_secs(seconds).min(LONGEST) }
    }
}

impl Tokens {
    /// Nothing is asked for yet.
    ///
    /// # Errors
    /// The credentials that are meant cannot be used.
    pub(crate) fn from(
        from: &TokensFrom,
        env: &dyn Fn(&str) -> Option<String>,
        metrics: Metrics,
    ) -> Result<Self, ClientError> {
        let source = match from {
            TokensFrom::Metadata => Source::Metadata(Metadata::find(env)?),
            TokensFrom::Default => match Credentials::find(env)? {
                None => Source::Metadata(Metadata::find(env)?),
                Some(credentials) => {
                    let channel = Channel::to(credentials.token_uri(), env)?;
                    Source::File { credentials, channel }
                }
            },
            TokensFrom::Alternate { url, body } => {
                let channel = Channel::to(url, env)?;
                let (metadata, url, body) = (Metadata::find(env)?, url.clone(), body.clone());
                Source::Alternate { metadata, channel, url, body }
            }
        };
        Ok(Self { source, held: Mutex::default(), metrics })
    }

    /// The value of `Authorization`. Who comes while a token is asked for waits for that one.
    pub(crate) async fn bearer(&self) -> Result<HeaderValue, GceError> {
        let mut held = self.held.lock().await;
        let now = Instant::now();
        match &*held {
            Held::Token { bearer, until } if now < *until => return Ok(bearer.clone()),
            Held::Failed { error, until } if now < *until => return Err(error.clone()),
            _ => {}
        }
        let token = self.source.token().await.and_then(|token| Ok((bearer(&token)?, token.lasts)));
        self.metrics.asked_for_token(token.is_ok());
        match token {
            Ok((bearer, lasts)) => {
                let until = now + lasts.saturating_sub(MARGIN).max(lasts.min(MARGIN) / 2);
                *held = Held::Token { bearer: bearer.clone(), until };
                Ok(bearer)
            }
            Err(error) => {
                let until = Instant::now() + FAILED_FOR;
                *held = Held::Failed { error: error.clone(), until };
                Err(error)
            }
        }
    }

    /// Google does not take this one any more. Nothing changes when there is another by now.
    pub(crate) async fn forget(&self, refused: &HeaderValue) {
        let mut held = self.held.lock().await;
        if matches!(&*held, Held::Token { bearer, .. } if bearer == refused) {
            *held = Held::Nothing;
        }
    }
}

/// Why there can be no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The credentials that are meant cannot be used.
    #[error("cannot call Google Compute Engine: {0}")]
    Credentials(#[from] CredentialsError),
    /// An address, a proxy or a header cannot be used.
    #[error("cannot call Google Compute Engine: {0}")]
    Call(#[from] GceError),
}

fn bearer(token: &Token) -> Result<HeaderValue, GceError> {
    let value = sensitive_header(&["Bearer ", token.text.expose_secret()]);
    value.ok_or_else(|| {
        GceError::not_sent("the token contains characters that no HTTP header may contain")
    })
}

impl Source {
    async fn token(&self) -> Result<Token, GceError> {
        match self {
            Self::Metadata(metadata) => of_oauth(&metadata.token().await?),
            Self::File { credentials, channel } => {
                let (uri, form) = (credentials.token_uri().clone(), credentials.form()?);
                let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
                let request = Request::post(uri).header(CONTENT_TYPE, kind);
                let request = request.body(Full::from(Bytes::from(form)));
                of_oauth(&channel.ask(request.map_err(GceError::not_sent)?, LIMIT).await?)
            }
            Self::Alternate { metadata, channel, url, body } => {
                let own = bearer(&of_oauth(&metadata.token().await?)?)?;
                let body = Bytes::from(body.expose_secret().to_owned());
                let request = Request::post(url.clone())
                    .header(AUTHORIZATION, own)
                    .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
                    .body(Full::from(body));
                of_alternate(&channel.ask(request.map_err(GceError::not_sent)?, LIMIT).await?)
            }
        }
    }
}

impl Credentials {
    fn token_uri(&self) -> &Uri {
        match self {
            Self::ServiceAccount { token_uri, .. } | Self::User { token_uri, .. } => token_uri,
        }
    }

    /// Input of a token request.
    fn form(&self) -> Result<String, GceError> {
        let mut form = Serializer::new(String::new());
        match self {
            Self::ServiceAccount { email, signer, token_uri } => {
                let audience = token_uri.to_string();
                let now = Timestamp::now().as_second();
                let assertion = signer.sign(email, &audience, now).map_err(GceError::not_sent)?;
                form.append_pair("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
                form.append_pair("assertion", &assertion);
            }
            Self::User { client_id, secret, refresh_token, .. } => {
                form.append_pair("grant_type", "refresh_token");
                form.append_pair("client_id", client_id);
                form.append_pair("client_secret", secret.expose_secret());
                form.append_pair("refresh_token", refresh_token.expose_secret());
            }
        }
        Ok(form.finish())
    }
}

#[derive(Deserialize)]
struct OAuthToken {
    access_token: String,
    expires_in: u64,
}

fn of_oauth(answer: &Answer) -> Result<Token, GceError> {
    let OAuthToken { access_token, expires_in } = read(answer)?;
    Ok(Token::new(access_token, expires_in))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AlternateToken {
    access_token: String,
    expire_time: String,
}

fn of_alternate(answer: &Answer) -> Result<Token, GceError> {
    let AlternateToken { access_token, expire_time } = read(answer)?;
    let expire_time: Timestamp = expire_time.parse().map_err(|_| {
        GceError::not_sent("the token server sent no token: its expireTime is not a time")
    })?;
    let seconds = expire_time.as_second().saturating_sub(Timestamp::now().as_second());
    Ok(Token::new(access_token, u64::try_from(seconds).unwrap_or_default()))
}

/// Error without the body and serde's message, which may hold the token.
fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, GceError> {
    let read = answer.status.is_success().then(|| serde_json::from_slice(&answer.body).ok());
    read.flatten().ok_or_else(|| {
        GceError::not_sent(format!("the token server sent no token: it answered {}", answer.status))
    })
}

#[cfg(test)]
mod tests;
