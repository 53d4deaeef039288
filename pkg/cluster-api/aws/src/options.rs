//! [`Options`]: how AWS is called.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_credential_types::Credentials;

use crate::limits::Rates;

/// Where the APIs of one region are, as URLs, as far as that is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// EC2.
    pub ec2: Option<String>,
    /// STS, which says which account the credentials belong to.
    pub sts: Option<String>,
    /// Both generations of load balancers.
    pub load_balancing: Option<String>,
}

/// How AWS is called.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `controller` label of metrics.
    pub controller: &'static str,
    /// Where all APIs are, when that is not AWS; `AWS_ENDPOINT_URL` and its kin count otherwise.
    pub endpoint: Option<String>,
    /// Where the APIs of some regions are, by the region's name. They win over `endpoint`.
    pub region_endpoints: BTreeMap<String, Endpoints>,
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
