//! [`Account`]: the credentials of one AWS account, from the usual places ([`DefaultChain`]), as
//! keys, or of an assumed role, and what all clusters in the account share: connections, rates,
//! metrics.

mod assumed_role;

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, OnceLock};

use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::identity::IdentityCache;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::{AppName, BehaviorVersion, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future::ProvideCredentials as Provided;
use aws_credential_types::provider::{self, ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::retry::{ReconnectMode, RetryConfig};
use aws_smithy_types::timeout::TimeoutConfig;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::call::AwsError;
use crate::callers::Callers;
use crate::connections::Connections;
use crate::gate::simulated;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::region::{Options, Region};

use assumed_role::AssumedRole;

pub use assumed_role::Role;

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
    /// How many roles are assumed one after the other for its credentials.
    roles: u32,
    callers: Callers,
    /// By name, by the account whose rates they use, and whether no other account may be reached.
    regions: Mutex<HashMap<(String, String, bool), Region>>,
    /// Shared by all credentials.
    limits: AllLimits,
}

/// By the name of a region and the account.
type AllLimits = Arc<Mutex<HashMap<(String, String), Arc<Limits>>>>;

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
            // The SDK repeats nothing (`rule:a-call-is-not-doubled`). Our own connections
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
        // Also `None`: otherwise the SDK asks the metadata service for a region, and logs a debug dump
        // on a machine without that service. Each cluster has its own region.
        loader = loader.region(home.clone());
        loader = match (&options.credentials, home) {
            (Some(credentials), _) => {
                loader.credentials_provider(SharedCredentialsProvider::new(credentials.clone()))
            }
            (None, Some(home)) => {
                let chain = DefaultChain::new(http.clone(), home);
                loader.credentials_provider(SharedCredentialsProvider::new(chain))
            }
            (None, None) => loader.no_credentials(),
        };
        let config = loader.load().await;
        let (callers, regions, limits) = (Callers::default(), Mutex::default(), Arc::default());
        Self(Arc::new(Inner {
            options,
            config,
            http,
            metrics,
            has_no_home,
            roles: 0,
            callers,
            regions,
            limits,
        }))
    }

    /// The account of these keys. Rates are those of the account, whoever has credentials for it.
    #[must_use]
    pub fn with_keys(&self, keys: Credentials) -> Self {
        self.with_provider(SharedCredentialsProvider::new(keys), 0)
    }

    /// The account of a role, which the credentials of this one assume at the STS of this region.
    #[must_use]
    pub fn assuming(&self, role: Role, region: &str) -> Self {
        let (roles, whole) = (self.0.roles + 1, self.0.options.request_timeout);
        // Half of it for the first, and more for each that has to wait for another one.
        let limit = whole * roles / (roles + 1);
        let provider = AssumedRole::new(role, self.region(region), limit);
        self.with_provider(SharedCredentialsProvider::new(provider), roles)
    }

    fn with_provider(&self, provider: SharedCredentialsProvider, roles: u32) -> Self {
        let inner = &self.0;
        let config = inner.config.to_builder().credentials_provider(provider);
        // The provider has them in memory, and renews them earlier than the SDK would.
        let config = config.identity_cache(IdentityCache::no_cache()).build();
        Self(Arc::new(Inner {
            options: inner.options.clone(),
            config,
            http: inner.http.clone(),
            metrics: inner.metrics.clone(),
            has_no_home: false,
            roles,
            callers: Callers::default(),
            regions: Mutex::default(),
            limits: Arc::clone(&inner.limits),
        }))
    }

    /// The account that the credentials belong to, as STS in this region says. An answer other than
    /// `expected` is asked for again after half a minute.
    pub async fn caller(&self, region: &str, expected: Option<&str>) -> Result<String, AwsError> {
        if let Some(cloud) = simulated() {
            return cloud.caller().await;
        }
        let region = self.region(region);
        self.0.callers.account(region.sts(), &self.0.http, expected).await
    }

    /// The APIs of a region in whichever account the credentials belong to. The rates are those of
    /// the account that STS named last (`rule:a-throttle-slows-everybody`).
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
        let key = (name.to_owned(), payer.clone(), account.is_some());
        regions.entry(key).or_insert_with(make).clone()
    }
}

/// The region where credentials are asked for, as the environment or the profile says it. Without
/// it the region of each cluster is asked, which is in the right partition.
pub(crate) async fn home_region() -> Option<aws_config::Region> {
    let said = RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new());
    said.or_else(ProfileFileRegionProvider::new()).region().await
}

/// The chain of the SDK, made when credentials are first needed.
#[derive(Debug)]
pub(crate) struct DefaultChain {
    http: SharedHttpClient,
    region: aws_config::Region,
    chain: OnceCell<DefaultCredentialsChain>,
    /// The feature that the profile asks for and this build lacks. The SDK reports it only once.
    missing: OnceLock<String>,
}

impl DefaultChain {
    /// Makes a chain that asks for credentials in this region, where a provider of the chain asks
    /// AWS.
    pub(crate) fn new(http: SharedHttpClient, region: aws_config::Region) -> Self {
        Self { http, region, chain: OnceCell::new(), missing: OnceLock::new() }
    }

    async fn credentials(&self) -> provider::Result {
        let make = || {
            let config = ProviderConfig::default().with_http_client(self.http.clone());
            let chain = DefaultCredentialsChain::builder().configure(config);
            chain.region(self.region.clone()).build()
        };
        let found = self.chain.get_or_init(make).await.provide_credentials().await;
        found.map_err(|error| self.in_our_words(error))
    }

    fn in_our_words(&self, error: CredentialsError) -> CredentialsError {
        if let Some(feature) = missing_feature(&error) {
            let profile = std::env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_owned());
            let field = if feature == "sso" { "sso_session" } else { &*feature };
            self.missing.get_or_init(|| format!("profile {profile}: {field} is not in this build"));
        }
        match self.missing.get() {
            Some(missing) => CredentialsError::invalid_configuration(missing.clone()),
            None => error,
        }
    }
}

/// A part of the SDK that the profile asks for and this program is built without. The SDK tells it
/// only as a text.
fn missing_feature(error: &CredentialsError) -> Option<String> {
    const WORDS: &str = "cargo feature(s) enabled: ";
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if let Some((_, rest)) = text.split_once(WORDS) {
            return rest.split('.').next().map(str::to_owned);
        }
        next = error.source();
    }
    None
}

impl ProvideCredentials for DefaultChain {
    fn provide_credentials<'a>(&'a self) -> Provided<'a>
    where
        Self: 'a,
    {
        Provided::new(self.credentials())
    }
}

#[cfg(test)]
mod tests;
