//! [`Prober`]: probes member clusters, one probe at a time for each client.

mod around;
mod attempt;
mod moment;
mod order;
mod probed;
mod reader;
mod run;
mod shared;
mod trace;

use std::sync::Arc;
use std::time::Duration;

use transport::Resolver;

pub use moment::now;
pub use order::{Order, Reread};
pub use probed::Probed;
pub use reader::{Read, ReadError, Reader};
pub use shared::ConnectionLimits;
pub use trace::Trace;

use crate::client::Client;
#[cfg(test)]
use crate::client::Environment;
use crate::inputs::Inputs;
use crate::meters::Meters;
use crate::problem::Problem;
use run::Run;
use shared::Shared;

/// Probes member clusters.
#[derive(Debug)]
pub struct Prober {
    shared: Shared,
}

impl Prober {
    /// A prober that asks `resolver` for the addresses of members and proxies.
    pub fn new(meters: Meters, limits: ConnectionLimits, resolver: impl Into<Resolver>) -> Self {
        Self { shared: Shared::new(meters, limits, resolver.into()) }
    }

    /// The same in another environment.
    #[cfg(test)]
    fn in_environment(mut self, environment: Environment) -> Self {
        self.shared.environment = environment;
        self
    }

    /// A client of `inputs`. No network yet.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn client(&self, inputs: &Inputs) -> Result<Client, Problem> {
        Client::new(inputs, &self.shared.tls, self.shared.environment)
    }

    /// Reads of the cluster of `client` that are no probes.
    pub fn reader(&self, client: &Arc<Client>) -> Reader<'_> {
        Reader::new(&self.shared, Arc::clone(client))
    }

    /// Asks the addresses of a cluster that probes do not ask while another one answers them, each
    /// within `limit` and once more when it does not answer; see [`Client::endpoints`].
    pub async fn look_around(&self, client: &Client, limit: Duration) {
        around::look_around(&self.shared, client, limit).await;
    }

    /// Probes the cluster of `client` once. Giving up the future closes the connection.
    pub async fn probe(&self, client: &Arc<Client>, order: &Order<'_>) -> Probed {
        Run::begin(&self.shared, client, order).finish().await
    }
}

#[cfg(test)]
mod tests;
