//! [`DefaultChain`]: credentials from the usual places: environment, profile, web identity,
//! container, instance.

use std::error::Error;
use std::sync::OnceLock;

use aws_config::Region;
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future::ProvideCredentials as Provided;
use aws_credential_types::provider::{self, ProvideCredentials};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use tokio::sync::OnceCell;

/// The region where credentials are asked for, as the environment or the profile says it. Without
/// it the region of each cluster is asked, which is in the right partition.
pub(crate) async fn home_region() -> Option<Region> {
    let said = RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new());
    said.or_else(ProfileFileRegionProvider::new()).region().await
}

/// The chain of the SDK, made when credentials are first needed.
#[derive(Debug)]
pub(crate) struct DefaultChain {
    http: SharedHttpClient,
    region: Region,
    chain: OnceCell<DefaultCredentialsChain>,
    /// What the profile asks for and this build does not have. The SDK tells it only once.
    missing: OnceLock<String>,
}

impl DefaultChain {
    /// One that asks for credentials in this region, where a place of the chain asks AWS for them.
    pub(crate) fn new(http: SharedHttpClient, region: Region) -> Self {
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
