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
    /// By name, and by the account that they are for.
    regions: Mutex<HashMap<(String, Option<String>), Region>>,
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
        let (callers, regions) = (Callers::default(), Mutex::default());
        Self(Arc::new(Inner { options, config, http, metrics, has_no_home, callers, regions }))
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

    /// The APIs of a region in whichever account the credentials belong to. All who ask for one
    /// region share its rates.
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
        let mut regions = inner.regions.lock();
        let make = || {
            let account = account.map(|account| (account, inner.callers.clone()));
            let (options, http) = (&inner.options, inner.http.clone());
            let region = aws_config::Region::new(name.to_owned());
            let mut config = inner.config.to_builder().region(region.clone());
            if inner.has_no_home {
                let chain = DefaultChain::new(http.clone(), region);
                config = config.credentials_provider(SharedCredentialsProvider::new(chain));
            }
            Region::new(name, &config.build(), http, options, inner.metrics.clone(), account)
        };
        let place = (name.to_owned(), account.map(str::to_owned));
        regions.entry(place).or_insert_with(make).clone()
    }
}
