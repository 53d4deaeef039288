//! [`Delegation`]: the guard of the secure port.

use std::sync::Arc;

use client::Caller;
use http::StatusCode;
use prometheus::Registry;
use ring::{hmac, rand};
use rustls::pki_types::UnixTime;
use serving::{Guard, Judgement, PeerCertificate, Reply, ShownChain, Visit, reply};
use tokio::time::Instant;

use crate::api_reviews::{ACCESS_REVIEWS, AccessReviews, Backend, TOKEN_REVIEWS, Tokens, bearer};
use crate::metrics::{BackendMetrics, GuardMetrics};
use crate::reviews::{Answer, Asking, BRIEF, LONGEST, Lives, ReviewAnswer, Reviews};
use crate::trust::{Finding, Trust};
use crate::user::{Subject, User};
use crate::{
    DelegationOptions, LookupError, MetricsReaders, OpenPaths, TrustError, is_master, is_metrics,
    is_read,
};

/// Answers of one kind that are remembered.
const REMEMBERED: usize = 8192;

/// The clients that create the reviews. Without one, tokens are refused, or what needs a right.
#[derive(Clone, Default)]
pub struct Reviewers {
    /// Reviews tokens, and looks up what the cluster publishes.
    pub authentication: Option<Caller>,
    /// Reviews access.
    pub authorization: Option<Caller>,
}

/// Judges requests by reviews of the API server.
pub struct Delegation {
    trust: Trust,
    tokens: Option<Tokens>,
    access: Option<AccessReviews>,
    open_paths: OpenPaths,
    metrics_readers: MetricsReaders,
    metrics: GuardMetrics,
}

/// Credentials without a user.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// The credentials are bad.
    Bad,
    /// No reviewer can judge the credentials now.
    Unjudged,
}

impl Delegation {
    /// Reads the files that the options name; nothing is asked yet. [`Self::follow`] does the rest.
    pub async fn load(
        options: &DelegationOptions,
        reviewers: &Reviewers,
        registry: &Registry,
    ) -> Result<Self, DelegationError> {
        let trust = Trust::load(options, reviewers.authentication.clone()).await?;
        let hash = hmac::Key::generate(hmac::HMAC_SHA256, &rand::SystemRandom::new());
        let hash = hash.map_err(|_| DelegationError::NoRandomNumbers)?;
        let stale = options.outage_grace;
        let lives = Lives { granted: options.token_ttl, refused: options.token_ttl, stale };
        let metrics = BackendMetrics::new(registry, "authn", "authentication")?;
        let tokens = reviewers.authentication.clone().map(|caller| {
            let backend = Backend::new(TOKEN_REVIEWS, caller, metrics);
            Tokens::new(backend, Reviews::new(lives, REMEMBERED), hash.clone())
        });
        let lives = Lives { granted: options.allowed_ttl, refused: options.denied_ttl, stale };
        let metrics = BackendMetrics::new(registry, "authz", "authorization")?;
        let access = reviewers.authorization.clone().map(|caller| {
            let backend = Backend::new(ACCESS_REVIEWS, caller, metrics);
            AccessReviews::new(backend, Reviews::new(lives, REMEMBERED), hash)
        });
        Ok(Self {
            trust,
            tokens,
            access,
            open_paths: OpenPaths::new(&options.always_allow_paths),
            metrics_readers: MetricsReaders::new(&options.metrics_readers),
            metrics: GuardMetrics::new(registry)?,
        })
    }

    /// Keeps the CAs fresh. Ends only when the API server refuses the first look at what
    /// it publishes, and that is not to be tolerated.
    pub async fn follow(&self) -> LookupError {
        self.trust.follow().await
    }

    async fn decide(&self, visit: Visit<'_>) -> Result<(), Reply> {
        let is_open = self.open_paths.cover(visit.path);
        let asking = Asking {
            since: Instant::now(),
            patience: if is_open { BRIEF } else { LONGEST },
            // rule:readers-outlive-an-outage
            stale_will_do: is_read(visit.method) && is_metrics(visit.path),
        };
        let identified = self.authenticate(visit, asking).await;
        if is_open && !matches!(identified, Err(Unknown::Bad)) {
            self.metrics.authorization("allowed");
            return Ok(());
        }
        match identified {
            Ok(user) => self.authorize(&user, visit, asking).await,
            // rule:credentials-never-become-anonymous
            Err(Unknown::Bad | Unknown::Unjudged) => Err(reply::unauthorized()),
        }
    }

    async fn authenticate(&self, visit: Visit<'_>, asking: Asking) -> Result<Arc<User>, Unknown> {
        let outcome = self.identify(visit, asking).await;
        self.metrics.authentication(match outcome {
            Ok(_) => "success",
            Err(Unknown::Bad) => "failure",
            Err(Unknown::Unjudged) => "error",
        });
        outcome
    }

    async fn identify(&self, visit: Visit<'_>, asking: Asking) -> Result<Arc<User>, Unknown> {
        let certificate = self.by_certificate(visit).await;
        if let Finding::Of(user) = certificate {
            return Ok(Arc::new(user));
        }
        if let Some(token) = bearer(visit.headers) {
            // rule:credentials-never-become-anonymous
            return self.by_token(token.map_err(|_| Unknown::Bad)?, asking).await;
        }
        match certificate {
            Finding::Bad => Err(Unknown::Bad),
            _ => Ok(Arc::new(User::anonymous())),
        }
    }

    async fn by_certificate(&self, visit: Visit<'_>) -> Finding {
        match &visit.peer.certificate {
            PeerCertificate::Shown(chain) | PeerCertificate::Trusted(chain) => {
                let finding = self.trust.user(chain, visit.headers).await;
                if let Finding::Of(_) = finding {
                    self.observe_end(chain);
                }
                finding
            }
            PeerCertificate::Untrusted => Finding::Bad,
            PeerCertificate::Absent => Finding::NoUser,
        }
    }

    fn observe_end(&self, chain: &ShownChain) {
        let Some(subject) = chain.certificates().first().and_then(Subject::of) else { return };
        let now = UnixTime::now().as_secs();
        #[expect(clippy::cast_precision_loss, reason = "seconds of some years")]
        self.metrics.certificate_life(subject.ends as f64 - now as f64);
    }

    async fn by_token(&self, token: &str, asking: Asking) -> Result<Arc<User>, Unknown> {
        let Some(tokens) = &self.tokens else { return Err(Unknown::Unjudged) };
        match tokens.ask(token, asking).await {
            Answer::Known(ReviewAnswer::Granted(user)) => Ok(user),
            Answer::Known(ReviewAnswer::Refused) => Err(Unknown::Bad),
            Answer::Stale(user) => {
                self.metrics.stale("authn");
                Ok(user)
            }
            Answer::Unknown => Err(Unknown::Unjudged),
        }
    }

    async fn authorize(&self, user: &User, visit: Visit<'_>, asking: Asking) -> Result<(), Reply> {
        let Visit { method, path, .. } = visit;
        let reads_metrics = is_read(method) && is_metrics(path);
        let needs_no_review =
            is_master(user) || reads_metrics && self.metrics_readers.include(user);
        let answer = match &self.access {
            _ if needs_no_review => Answer::Known(ReviewAnswer::Granted(())),
            Some(access) => access.ask(user, method, path, asking).await,
            // Without a reviewer no right can be granted.
            None => Answer::Known(ReviewAnswer::Refused),
        };
        let (result, verdict) = match answer {
            Answer::Known(ReviewAnswer::Granted(())) => ("allowed", Ok(())),
            Answer::Known(ReviewAnswer::Refused) => {
                ("denied", Err(reply::forbidden(&user.name, method, path)))
            }
            Answer::Stale(()) => {
                self.metrics.stale("authz");
                ("allowed", Ok(()))
            }
            Answer::Unknown => ("error", Err(no_answer())),
        };
        self.metrics.authorization(result);
        verdict
    }
}

fn no_answer() -> Reply {
    let message =
        "the API server cannot be asked now whether you may read this path; try again later";
    reply::failure(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
}

impl Guard for Delegation {
    fn judge<'a>(&'a self, visit: Visit<'a>) -> Judgement<'a> {
        Box::pin(self.decide(visit))
    }
}

/// Ends the start of the process.
#[derive(Debug, thiserror::Error)]
pub enum DelegationError {
    /// A file of CAs cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A metric of one of these names is registered already.
    #[error("cannot register the metrics of authentication and authorization: {0}")]
    Metrics(#[from] prometheus::Error),
    /// Tokens are kept as hashes under a random key.
    #[error("cannot draw random numbers from the system")]
    NoRandomNumbers,
}

#[cfg(test)]
pub(crate) mod tests;
