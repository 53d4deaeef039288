//! [`Options`]: how AWS is called.

use std::time::Duration;

use aws_credential_types::Credentials;

use crate::limits::Rates;

/// How AWS is called.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `controller` label of metrics.
    pub controller: &'static str,
    /// Where all APIs are, when that is not AWS; `AWS_ENDPOINT_URL` and its kin count otherwise.
    pub endpoint: Option<String>,
    /// Who calls; the usual places are searched when none: environment, profile, web identity,
    /// container, instance.
    pub credentials: Option<Credentials>,
    /// For one request, with its credentials and its connection.
    pub request_timeout: Duration,
    /// How often, in each region and for each API.
    pub rates: Rates,
}

impl Options {
    /// What a request gets unless a flag says otherwise.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
}
