//! The metadata server, and the two other places that give out tokens.

use http::Request;
use serde_json::json;

use crate::cloud::PROJECT;
use crate::reply::{Reply, error, ok};

/// Valid tokens: those of the present generation.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    generation: u32,
    given: usize,
}

impl Tokens {
    /// No token that was given so far is good any more.
    pub(crate) fn expire(&mut self) {
        self.generation += 1;
    }

    pub(crate) fn given(&self) -> usize {
        self.given
    }

    /// Whether a request has a good one.
    pub(crate) fn admit<B>(&self, request: &Request<B>) -> bool {
        let given = request.headers().get("authorization").and_then(|value| value.to_str().ok());
        given.is_some_and(|given| given == format!("Bearer {}", self.present()))
    }

    fn present(&self) -> String {
        format!("hidden-token-{}", self.generation)
    }

    /// Answers requests about tokens and the VM that we run on; none for all others.
    pub(crate) fn answer(&mut self, request: &Request<String>) -> Option<Reply> {
        let path = request.uri().path();
        if let Some(path) = path.strip_prefix("/computeMetadata/v1/") {
            if request.headers().get("metadata-flavor").is_none_or(|flavor| flavor != "Google") {
                return Some(error(403, "forbidden", "Metadata-Flavor is missing"));
            }
            return Some(match path {
                "project/project-id" => Reply::new(PROJECT.into()),
                "instance/service-accounts/default/token" => self.oauth(),
                _ => error(404, "notFound", path),
            });
        }
        match path {
            "/token" => {
                let form: Vec<_> = form_urlencoded::parse(request.body().as_bytes()).collect();
                let value = |name: &str| {
                    form.iter().find(|(key, _)| key == name).map(|(_, value)| value.to_string())
                };
                let grant = value("grant_type").unwrap_or_default();
                let proof = match grant.as_str() {
                    "urn:ietf:params:oauth:grant-type:jwt-bearer" => value("assertion"),
                    "refresh_token" => value("refresh_token"),
                    _ => None,
                };
                Some(match proof.filter(|proof| !proof.is_empty()) {
                    Some(_) => self.oauth(),
                    None => error(400, "invalid_grant", "no proof"),
                })
            }
            "/alternate" if !self.admit(request) => Some(error(401, "authError", "no token")),
            "/alternate" if request.body() != "the body" => Some(error(400, "invalid", "no body")),
            "/alternate" => {
                self.given += 1;
                let token = self.present();
                Some(ok(&json!({"accessToken": token, "expireTime": "2100-01-01T00:00:00Z"})))
            }
            _ => None,
        }
    }

    fn oauth(&mut self) -> Reply {
        self.given += 1;
        ok(&json!({"access_token": self.present(), "expires_in": 3599, "token_type": "Bearer"}))
    }
}
