//! [`Account`]: the credentials of one AWS account and what is shared by all clusters in it:
//! connections, rates, metrics.

use std::collections::HashMap;
use std::sync::Arc;

use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::{AppName, BehaviorVersion, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::retry::{ReconnectMode, RetryConfig};
use aws_smithy_types::timeout::TimeoutConfig;
use parking_lot::Mutex;

use crate::call_error::CallError;
use crate::callers::Callers;
use crate::connections::Connections;
use crate::credentials::{DefaultChain, home_region};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::region::Region;

/// One account. Clones are the same.
#[derive(Clone, Debug)]
pub struct Account(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: Options,
    config: SdkConfig,
    http: SharedHttpClient,
    metrics: Metrics,
    /// Credentials are asked for in the region of each cluster.
    has_no_home: bool,
    callers: Callers,
    /// By name, by the account whose rates they use, and whether no other account may be reached.
    regions: Mutex<HashMap<(String, String, bool), Region>>,
    /// By the name of a region and the account.
    limits: Mutex<HashMap<(String, String), Arc<Limits>>>,
}

impl Account {
    /// Reads environment and profile. Nothing is called yet: credentials are found when they are
    /// first needed.
    pub async fn load(options: Options, metrics: Metrics) -> Self {
        let http = SharedHttpClient::new(Connections::default());
        let home = home_region().await;
        let has_no_home = home.is_none() && options.credentials.is_none();
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(options.request_timeout / 3)
            .operation_attempt_timeout(options.request_timeout)
            .operation_timeout(options.request_timeout)
            .build();
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http.clone())
            .timeout_config(timeouts)
            // The timeouts cover an answer as a whole, and a second opinion about slow ones is one
            // too many.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            // One attempt is one request (`rule:one-attempt-is-one-request`). Our own connections
            // close themselves; the SDK would complain that it cannot.
            .retry_config(
                RetryConfig::disabled().with_reconnect_mode(ReconnectMode::ReuseAllConnections),
            );
        if let Ok(name) = AppName::new("infra-controller-manager") {
            loader = loader.app_name(name);
        }
        if let Some(endpoint) = &options.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        loader = match (&options.credentials, home) {
            (Some(credentials), _) => {
                loader.credentials_provider(SharedCredentialsProvider::new(credentials.clone()))
            }
            (None, Some(home)) => {
                let chain = DefaultChain::new(http.clone(), home.clone());
                loader.region(home).credentials_provider(SharedCredentialsProvider::new(chain))
            }
            (None, None) => loader.no_credentials(),
        };
        let config = loader.load().await;
        let (callers, regions, limits) = (Callers::default(), Mutex::default(), Mutex::default());
        Self(Arc::new(Inner {
            options,
            config,
            http,
            metrics,
            has_no_home,
            callers,
            regions,
            limits,
        }))
    }

    /// The account that the credentials belong to, as STS in this region says. An answer other than
    /// `expected` is asked for again after half a minute.
    ///
    /// # Errors
    /// STS has refused the call, or not answered it.
    pub async fn caller(&self, region: &str, expected: Option<&str>) -> Result<String, CallError> {
        let region = self.region(region);
        self.0.callers.account(region.sts(), &self.0.http, expected).await
    }

    /// The APIs of a region in whichever account the credentials belong to. The rates are those of the
    /// account that STS named last (`rule:a-throttle-slows-everybody`).
    pub fn region(&self, name: &str) -> Region {
        self.region_in(name, None)
    }

    /// The APIs of a region in this account: no request leaves whose credentials belong to another
    /// (`rule:a-request-reaches-one-account`).
    pub fn region_of(&self, name: &str, account: &str) -> Region {
        self.region_in(name, Some(account))
    }

    fn region_in(&self, name: &str, account: Option<&str>) -> Region {
        let inner = &self.0;
        let payer =
            account.map(str::to_owned).or_else(|| inner.callers.latest()).unwrap_or_default();
        let mut regions = inner.regions.lock();
        let make = || {
            let account = account.map(|account| (account, inner.callers.clone()));
            let mut limits = inner.limits.lock();
            let limits = limits.entry((name.to_owned(), payer.clone()));
            let limits = limits.or_insert_with(|| Arc::new(Limits::new(inner.options.rates)));
            let limits = Arc::clone(limits);
            let (options, http) = (&inner.options, inner.http.clone());
            let region = aws_config::Region::new(name.to_owned());
            let mut config = inner.config.to_builder().region(region.clone());
            if inner.has_no_home {
                let chain = DefaultChain::new(http.clone(), region);
                config = config.credentials_provider(SharedCredentialsProvider::new(chain));
            }
            let metrics = inner.metrics.clone();
            Region::new(name, &config.build(), http, options, metrics, account, limits)
        };
        let place = (name.to_owned(), payer.clone(), account.is_some());
        regions.entry(place).or_insert_with(make).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use aws_credential_types::Credentials;
    use prometheus::Registry;

    use super::*;
    use crate::limits::Rates;

    /// rule:a-throttle-slows-everybody
    #[tokio::test]
    async fn a_region_of_an_account_has_one_set_of_rates_whether_the_account_is_checked_or_not() {
        let options = Options {
            controller: "test",
            endpoint: None,
            region_endpoints: BTreeMap::new(),
            credentials: Some(Credentials::new("key", "secret", None, None, "test")),
            request_timeout: Duration::from_secs(1),
            rates: Rates::default(),
        };
        let account = Account::load(options, Metrics::new(&Registry::new()).unwrap()).await;
        account.0.callers.note(None, "1");
        let same = |one: &Region, other: &Region| std::ptr::eq(one.limits(), other.limits());
        let checked = account.region_of("us-east-2", "1");
        assert!(same(&checked, &account.region("us-east-2")));
        assert!(!same(&checked, &account.region("us-west-2")));
        assert!(!same(&checked, &account.region_of("us-east-2", "2")));
    }
}
