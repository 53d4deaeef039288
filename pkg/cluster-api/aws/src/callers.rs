//! [`Callers`]: which account the credentials belong to, as STS says. [`AccountGuard`] lets a
//! request pass only when its credentials belong to the account that it is meant for
//! (`rule:a-request-reaches-one-account`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpConnector as _, HttpConnectorFuture, SharedHttpClient,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::call::AwsError;
use crate::connections::interposed;

/// For so long an answer of STS is believed although another account was expected.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// Maximum of keys whose account is known: each session of a role has another one. STS is asked
/// again for a key that was dropped.
const KEYS: usize = 64;

/// How a header names the key that a request is signed with.
const CREDENTIAL: &str = "Credential=";

/// Why a request was held back.
#[derive(Debug, thiserror::Error)]
enum Held {
    #[error("the credentials belong to account {found}, but the cluster is in account {wanted}")]
    WrongAccount { found: String, wanted: String },
    #[error("cannot find the account of the credentials")]
    Unknown,
}

/// The account of the credentials of the process, as STS answers. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The account of each access key. A key belongs to one account.
    accounts: Mutex<HashMap<String, String>>,
    latest: Mutex<Option<(String, Instant)>>,
    /// One question at a time.
    asking: tokio::sync::Mutex<()>,
}

impl Callers {
    /// The account of the credentials. An answer that was expected is believed until a request is
    /// signed with another key, any other for half a minute.
    pub(crate) async fn account(
        &self,
        sts: &aws_sdk_sts::Client,
        http: &SharedHttpClient,
        expected: Option<&str>,
    ) -> Result<String, AwsError> {
        let _turn = self.0.asking.lock().await;
        let latest = self.0.latest.lock().clone();
        match latest {
            Some((account, at)) if expected == Some(&account) || at.elapsed() < ASK_AGAIN => {
                Ok(account)
            }
            _ => self.ask(sts, http).await,
        }
    }

    /// The account of an access key; STS is asked when it is a new one.
    async fn account_of(
        &self,
        key: &str,
        sts: &aws_sdk_sts::Client,
        http: &SharedHttpClient,
    ) -> Option<String> {
        if let Some(account) = self.known(key) {
            return Some(account);
        }
        let _turn = self.0.asking.lock().await;
        if self.known(key).is_none()
            && let Err(error) = self.ask(sts, http).await
        {
            tracing::debug!(%error, "STS did not return the account of the credentials");
        }
        self.known(key)
    }

    fn known(&self, key: &str) -> Option<String> {
        self.0.accounts.lock().get(key).cloned()
    }

    async fn ask(
        &self,
        sts: &aws_sdk_sts::Client,
        http: &SharedHttpClient,
    ) -> Result<String, AwsError> {
        let key = Arc::<Mutex<Option<String>>>::default();
        let noted = Arc::clone(&key);
        let signer = interposed(http.clone(), move |request, connector| {
            *noted.lock() = access_key(&request).map(str::to_owned);
            connector.call(request)
        });
        let config = sts.config().to_builder().http_client(signer);
        let sts = aws_sdk_sts::Client::from_conf(config.build());
        let identity = sts.get_caller_identity().send().await?;
        let account = identity.account.ok_or_else(|| AwsError::without("account"))?;
        let key = key.lock().take();
        self.note(key.as_deref(), &account);
        Ok(account)
    }

    /// Takes in what STS has said.
    pub(crate) fn note(&self, key: Option<&str>, account: &str) {
        if let Some(key) = key {
            let mut accounts = self.0.accounts.lock();
            if accounts.len() >= KEYS {
                accounts.clear();
            }
            accounts.insert(key.to_owned(), account.to_owned());
        }
        *self.0.latest.lock() = Some((account.to_owned(), Instant::now()));
    }

    /// The account that STS named last.
    pub(crate) fn latest(&self) -> Option<String> {
        self.0.latest.lock().as_ref().map(|(account, _)| account.clone())
    }
}

/// The access key that a request is signed with.
fn access_key(request: &HttpRequest) -> Option<&str> {
    let header = request.headers().get("authorization")?;
    let (_, after) = header.split_once(CREDENTIAL)?;
    after.split('/').next().filter(|key| !key.is_empty())
}

/// Lets requests pass whose credentials belong to one account.
#[derive(Clone, Debug)]
pub(crate) struct AccountGuard {
    pub(crate) account: Arc<str>,
    pub(crate) callers: Callers,
    pub(crate) sts: aws_sdk_sts::Client,
    pub(crate) http: SharedHttpClient,
}

impl AccountGuard {
    /// Puts the guard before a client.
    pub(crate) fn before(&self, client: SharedHttpClient) -> SharedHttpClient {
        let guard = self.clone();
        interposed(client, move |request, connector| {
            let guard = guard.clone();
            HttpConnectorFuture::new(async move {
                let checked = guard.check(access_key(&request)).await;
                checked.map_err(|held| ConnectorError::user(held.into()))?;
                connector.call(request).await
            })
        })
    }

    async fn check(&self, key: Option<&str>) -> Result<(), Held> {
        let found = match key {
            Some(key) => self.callers.account_of(key, &self.sts, &self.http).await,
            None => None,
        };
        match found {
            Some(found) if *found == *self.account => Ok(()),
            Some(found) => {
                Err(Held::WrongAccount { found, wanted: self.account.as_ref().to_owned() })
            }
            None => Err(Held::Unknown),
        }
    }
}
