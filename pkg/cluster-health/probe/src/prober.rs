//! [`Prober`]: probes member clusters, one probe at a time for each client.

mod attempt;
mod reader;
mod run;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use health::{Code, ProbePath};
use reader::open_to;
use run::Run;
use run::Shared;
use tokio::time::{sleep, timeout};
use transport::Resolver;

use super::client::Client;
use super::failure::Failure;
use super::failure::Problem;
use super::inputs::Inputs;
use super::link::Meters;

pub use reader::{Read, ReadError, Reader};
pub use run::ConnectionLimits;
pub use run::Probed;
pub use run::Trace;
pub use run::now;
pub use run::{Order, Reread};

#[cfg(test)]
use super::client::Environment;

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

    /// Prober with another environment.
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
        look_around(&self.shared, client, limit).await;
    }

    /// Probes the cluster of `client` once. Giving up the future closes the connection.
    pub async fn probe(&self, client: &Arc<Client>, order: &Order<'_>) -> Probed {
        Run::begin(&self.shared, client, order).finish().await
    }
}

/// Between the two.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// One request on a connection of its own to each address but that of the last good probe, and
/// where that fails another one, each within `limit`: one lost packet is no dead server. Any answer
/// will do. What is learnt is in [`Client::endpoints`].
async fn look_around(shared: &Shared, client: &Client, limit: Duration) {
    let (used, path) = {
        let session = client.session.lock();
        (
            session.learnt.first_endpoint,
            session.learnt.path.path(tokio::time::Instant::now().into_std()),
        )
    };
    // All at the same time: those that are silent take their time, and others come after them.
    let others = (0..client.address_count()).filter(|&endpoint| endpoint != used);
    join_all(others.map(|endpoint| async move {
        let ask = || is_there(endpoint, path, shared, client, limit);
        let mut answered = ask().await;
        if answered == Some(false) {
            sleep(AGAIN_AFTER).await;
            answered = ask().await;
        }
        if let Some(answered) = answered {
            client.session.lock().learnt.silent.note(endpoint, answered);
        }
    }))
    .await;
}

/// Whether an address answers; `None` when that could not be asked.
async fn is_there(
    endpoint: u8,
    path: ProbePath,
    shared: &Shared,
    client: &Client,
    limit: Duration,
) -> Option<bool> {
    match timeout(limit, ask(endpoint, path, shared, client, limit)).await {
        Ok(Ok(())) => Some(true),
        Ok(Err(Failure { code: Code::OwnLimit, .. })) => None,
        Ok(Err(_)) | Err(_) => Some(false),
    }
}

async fn ask(
    endpoint: u8,
    path: ProbePath,
    shared: &Shared,
    client: &Client,
    limit: Duration,
) -> Result<(), Failure> {
    let mut link = open_to(endpoint, shared, client, limit).await?;
    link.send(client.request(endpoint, path.request())?).await.map(drop)
}

#[cfg(test)]
mod tests;
