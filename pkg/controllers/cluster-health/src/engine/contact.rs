//! [`Contact`]: what is known of the way to a cluster, beside what its probes find.

use health::{Endpoints, Lifetime};
use probe::TlsOptions;

/// What is known of the way to a cluster, beside what its probes find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contact {
    /// Of the first of our credentials to end.
    pub credential: Option<Lifetime>,
    /// Of the certificate that its server showed last.
    pub certificate: Option<Lifetime>,
    /// How its addresses did when each was last asked.
    pub endpoints: Endpoints,
    /// The checks of that certificate that are left out.
    pub waived: TlsOptions,
}

impl From<&probe::Client> for Contact {
    fn from(client: &probe::Client) -> Self {
        Self {
            credential: client.credential(),
            certificate: client.certificate(),
            endpoints: client.endpoints(),
            waived: client.waived(),
        }
    }
}
