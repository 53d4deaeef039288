//! [`ClusterView`]: the state of a cluster for pages, metrics and the sweeper. [`Contact`]: its
//! credentials, certificates and addresses.

use health::{Endpoints, Lifetime, Member, Policy, Status};
use probe::TlsOptions;

use super::audit::Difference;
use super::flavour::ClusterProber;

/// The state of a cluster, lent for a moment to pages, metrics and the sweeper.
pub(crate) struct ClusterView<'a> {
    pub(crate) member: &'a Member,
    pub(crate) policy: &'a Policy,
    pub(crate) paused: bool,
    pub(crate) queued: bool,
    /// Published changes of readiness, in the order of [`STATUSES`].
    pub(crate) transitions: [u64; 3],
    pub(crate) difference: Option<&'a Difference>,
    pub(crate) prober: Option<&'a dyn ClusterProber>,
}

impl ClusterView<'_> {
    /// Its credentials, certificates and addresses. Takes locks of the client.
    pub(crate) fn contact(&self) -> Contact {
        self.prober.map(ClusterProber::contact).unwrap_or_default()
    }
}

/// In the order in which changes of readiness are counted.
pub(crate) const STATUSES: [Status; 3] = [Status::True, Status::False, Status::Unknown];

/// The credentials, certificates and addresses by which a cluster is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contact {
    /// The lifetime of the credential that ends first.
    pub credential: Option<Lifetime>,
    /// The lifetime of the certificate that its server showed last.
    pub certificate: Option<Lifetime>,
    /// How many addresses answered when each was last asked.
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
