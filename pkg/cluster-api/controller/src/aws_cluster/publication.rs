//! The endpoint of an AWSCluster: what it lacks, and its one publication
//! (`rule:endpoint-before-ready`).

use std::sync::Arc;
use std::time::Duration;

use objects::{Error, Object};
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::aws_clusters::AwsClusters;
use super::goal::{self, Wanted};
use crate::api::aws_cluster::AwsCluster;
use crate::api::endpoint::Endpoint;

/// Until a name may resolve that did not.
const NAME_AGAIN: Duration = Duration::from_secs(15);
/// For one look at a name.
const NAME_LIMIT: Duration = Duration::from_secs(5);

/// What is known of the endpoint.
pub(super) enum Publication {
    Done(Endpoint),
    Awaits { reason: &'static str, message: String, again: Option<Again> },
}

/// When to look again for what the endpoint lacks.
#[derive(Clone, Copy)]
pub(super) enum Again {
    /// AWS may show it by then.
    Read(Duration),
    /// It is not of AWS.
    Tell(Duration),
}

impl AwsClusters {
    /// Writes the endpoint into the spec, once, before anybody hears of ready
    /// (`rule:endpoint-before-ready`).
    pub(super) async fn publication(
        &self,
        object: &Arc<Object<AwsCluster>>,
        wanted: &Wanted,
        host: Option<String>,
    ) -> Result<Publication, Error> {
        let there = object.body.spec.control_plane_endpoint.clone().filter(Endpoint::is_set);
        if let Some(endpoint) = there {
            return Ok(Publication::Done(endpoint));
        }
        if wanted.desired.load_balancer.is_none() {
            let message = "set spec.controlPlaneEndpoint: there is no load balancer".to_owned();
            let reason = "WaitForExternalControlPlaneEndpoint";
            return Ok(Publication::Awaits { reason, message, again: None });
        }
        let Some(host) = host else {
            let message = "it has no DNS name yet".to_owned();
            let again = Some(Again::Read(NAME_AGAIN));
            return Ok(Publication::Awaits { reason: "WaitForDNSName", message, again });
        };
        let endpoint = Endpoint { host, port: i32::from(wanted.api_port) };
        if goal::checks_dns(object, &self.options) && !resolves(&endpoint).await {
            let message = format!("{} does not resolve yet", endpoint.host);
            let (reason, again) = ("WaitForDNSNameResolve", Some(Again::Tell(NAME_AGAIN)));
            return Ok(Publication::Awaits { reason, message, again });
        }
        let written = self.client.change(object, |_, draft| {
            let place = &mut draft.body.spec.control_plane_endpoint;
            if !place.as_ref().is_some_and(Endpoint::is_set) {
                *place = Some(endpoint.clone());
            }
        });
        let written = written.await?.object;
        let published = written.body.spec.control_plane_endpoint.clone();
        Ok(Publication::Done(published.unwrap_or(endpoint)))
    }
}

async fn resolves(endpoint: &Endpoint) -> bool {
    let port = u16::try_from(endpoint.port).unwrap_or_default();
    let looked = timeout(NAME_LIMIT, lookup_host((&*endpoint.host, port))).await;
    looked.is_ok_and(|found| found.is_ok_and(|mut addresses| addresses.next().is_some()))
}
