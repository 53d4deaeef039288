//! [`Options`]: how AWS is called.

use aws_credential_types::Credentials;

use crate::limits::Rates;

/// How AWS is called.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `controller` label of metrics.
    pub controller: &'static str,
    /// Where all APIs are, when that is not AWS; `AWS_ENDPOINT_URL` and its kin count otherwise.
    pub endpoint: Option<String>,
    /// Who calls; the usual places are searched when none: environment, profile, web identity, container, instance.
    pub credentials: Option<Credentials>,
    /// How often, in each region and for each API.
    pub rates: Rates,
}
