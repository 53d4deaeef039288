//! [`AssumedRole`]: the credentials of a role that another identity assumes at STS. They are renewed
//! before they end, and a refusal is not repeated at once by each cluster that uses the role.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future::ProvideCredentials as Provided;
use aws_credential_types::provider::{self, ProvideCredentials};
use aws_sdk_sts::types::PolicyDescriptorType;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::call::AwsError;
use crate::region::Region;

/// Credentials are renewed this long before their end.
const RENEWED_EARLY: Duration = Duration::from_secs(300);
/// Credentials that could not be renewed are used until this long before their end.
const LAST_USE: Duration = Duration::from_secs(30);
/// The pause after the first refusal.
const PAUSE: Duration = Duration::from_secs(60);
/// The longest pause: it doubles with each refusal.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
const OPERATION: &str = "AssumeRole";

/// A role, and the session that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Its ARN.
    pub arn: String,
    /// The name of the session, which CloudTrail shows.
    pub session_name: String,
    /// How long a session lasts; at least 900.
    pub seconds: i32,
    /// A policy that limits the session.
    pub inline_policy: Option<String>,
    /// ARNs of policies that limit the session.
    pub policy_arns: Vec<String>,
    /// What the trust policy of the role may ask for.
    pub external_id: Option<String>,
}

/// Gives the credentials of a role.
#[derive(Debug)]
pub(super) struct AssumedRole {
    role: Role,
    /// The STS that is asked, with the credentials of the identity that assumes the role.
    region: Region,
    /// How long STS is waited for: less than the request that needs the credentials may take, so that those of before
    /// are used while STS is silent.
    limit: Duration,
    session: Mutex<Session>,
}

impl AssumedRole {
    pub(super) fn new(role: Role, region: Region, limit: Duration) -> Self {
        Self { role, region, limit, session: Mutex::default() }
    }

    async fn credentials(&self) -> provider::Result {
        // One question at a time.
        let mut session = self.session.lock().await;
        let lifetime = Duration::from_secs(self.role.seconds.unsigned_abs().into());
        let found = session.credentials(lifetime, self.limit, || self.ask()).await;
        found.map_err(|error| {
            let (role, error) = (self.role.arn.clone(), Box::new(error));
            CredentialsError::provider_error(AwsError::NotAssumed { role, error })
        })
    }

    async fn ask(&self) -> Result<Credentials, AwsError> {
        let role = &self.role;
        let policies = role.policy_arns.iter();
        let policies = policies.map(|arn| PolicyDescriptorType::builder().arn(arn).build());
        let policies: Vec<_> = policies.collect();
        let asked = self.region.sts().assume_role();
        let asked = asked.role_arn(&role.arn).role_session_name(&role.session_name);
        let asked = asked.duration_seconds(role.seconds).set_policy(role.inline_policy.clone());
        let asked = asked.set_external_id(role.external_id.clone());
        let asked = asked.set_policy_arns(Some(policies).filter(|arns| !arns.is_empty()));
        let sent = Instant::now();
        let answer = asked.send().await.map_err(AwsError::from);
        let labels = self.region.sts_labels(OPERATION);
        let outcome = answer.as_ref().map(drop);
        if !outcome.is_err_and(AwsError::is_not_sent) {
            self.region.metrics().request(labels, sent.elapsed(), outcome);
        }
        let keys = answer?.credentials.ok_or_else(|| AwsError::without("credentials"))?;
        // Their end is measured from the request: the local clock may be wrong.
        let token = Some(keys.session_token);
        Ok(Credentials::new(keys.access_key_id, keys.secret_access_key, token, None, OPERATION))
    }
}

impl ProvideCredentials for AssumedRole {
    fn provide_credentials<'a>(&'a self) -> Provided<'a>
    where
        Self: 'a,
    {
        Provided::new(self.credentials())
    }
}

/// The session of a role, and the last refusal.
#[derive(Debug, Default)]
struct Session {
    current: Option<Current>,
    refusal: Option<Refusal>,
}

#[derive(Debug)]
struct Current {
    credentials: Credentials,
    ends: Instant,
}

#[derive(Debug)]
struct Refusal {
    error: AwsError,
    pause: Duration,
    again: Instant,
}

impl Session {
    async fn credentials(
        &mut self,
        lifetime: Duration,
        limit: Duration,
        ask: impl AsyncFnOnce() -> Result<Credentials, AwsError>,
    ) -> Result<Credentials, AwsError> {
        let now = Instant::now();
        if let Some(found) = self.usable(now + RENEWED_EARLY) {
            return Ok(found);
        }
        if let Some(refusal) = self.refusal.as_ref().filter(|refusal| now < refusal.again) {
            return self.usable(now + LAST_USE).ok_or_else(|| refusal.error.clone());
        }
        let silent = |_| {
            let reason = format!("no answer of STS within {limit:?}");
            Err(AwsError::Unanswered { reason })
        };
        match timeout(limit, ask()).await.unwrap_or_else(silent) {
            Ok(credentials) => {
                let ends = now + lifetime;
                self.current = Some(Current { credentials: credentials.clone(), ends });
                self.refusal = None;
                Ok(credentials)
            }
            Err(error) => {
                let pause = self.refusal.as_ref().map_or(PAUSE, |last| last.pause * 2);
                let pause = pause.min(LONGEST_PAUSE);
                let again = Instant::now() + pause;
                self.refusal = Some(Refusal { error: error.clone(), pause, again });
                self.usable(Instant::now() + LAST_USE).ok_or(error)
            }
        }
    }

    fn usable(&self, until: Instant) -> Option<Credentials> {
        let current = self.current.as_ref().filter(|current| until < current.ends);
        current.map(|current| current.credentials.clone())
    }
}

#[cfg(test)]
mod tests {
    use aws_network::Refused;
    use tokio::time::advance;

    use super::*;

    const LIFETIME: Duration = Duration::from_secs(900);
    const LIMIT: Duration = Duration::from_secs(5);

    fn keys(name: &str) -> Credentials {
        Credentials::new(name, "s", None, None, "test")
    }

    async fn key(session: &mut Session, answer: Option<&str>) -> Result<String, AwsError> {
        let refused = AwsError::Refused(Refused::with_code("AccessDenied"));
        let answer = answer.map(keys).ok_or(refused);
        let found = session.credentials(LIFETIME, LIMIT, async || answer).await;
        found.map(|found| found.access_key_id().to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_renewed_five_minutes_before_its_end() {
        let mut session = Session::default();
        assert_eq!(key(&mut session, Some("a")).await.unwrap(), "a");
        advance(Duration::from_secs(599)).await;
        assert_eq!(key(&mut session, Some("b")).await.unwrap(), "a");
        advance(Duration::from_secs(1)).await;
        assert_eq!(key(&mut session, Some("b")).await.unwrap(), "b");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_repeated_after_one_minute_and_then_after_up_to_five() {
        let mut session = Session::default();
        assert!(key(&mut session, None).await.is_err());
        for pause in [60, 120, 240, 300, 300] {
            advance(Duration::from_secs(pause - 1)).await;
            assert!(key(&mut session, Some("early")).await.is_err(), "{pause}");
            advance(Duration::from_secs(1)).await;
            assert!(key(&mut session, None).await.is_err(), "{pause}");
        }
        advance(LONGEST_PAUSE).await;
        assert_eq!(key(&mut session, Some("a")).await.unwrap(), "a");
    }

    #[tokio::test(start_paused = true)]
    async fn credentials_that_cannot_be_renewed_are_used_until_shortly_before_their_end() {
        let mut session = Session::default();
        assert_eq!(key(&mut session, Some("a")).await.unwrap(), "a");
        advance(Duration::from_secs(600)).await;
        assert_eq!(key(&mut session, None).await.unwrap(), "a");
        assert_eq!(key(&mut session, Some("early")).await.unwrap(), "a");
        advance(Duration::from_secs(270)).await;
        assert!(key(&mut session, None).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn while_sts_is_silent_the_credentials_of_before_are_used_in_time() {
        let mut session = Session::default();
        assert_eq!(key(&mut session, Some("a")).await.unwrap(), "a");
        advance(Duration::from_secs(600)).await;
        let begun = Instant::now();
        let found = session.credentials(LIFETIME, LIMIT, async || std::future::pending().await);
        assert_eq!(found.await.unwrap().access_key_id(), "a");
        assert_eq!(begun.elapsed(), LIMIT);
        assert_eq!(key(&mut session, Some("early")).await.unwrap(), "a", "without another wait");
    }
}
