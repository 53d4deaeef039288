//! Asks the addresses of a cluster that its probes do not ask, because another one answers them.

use std::time::Duration;

use health::{Code, ProbePath};
use tokio::time::timeout;

use super::reader::open_to;
use super::shared::Shared;
use crate::client::Client;
use crate::failure::Failure;

/// One request on a connection of its own to each address but that of the last good probe, each
/// within `limit`. Any answer will do. What is learnt is in [`Client::endpoints`].
pub(super) async fn look_around(shared: &Shared, client: &Client, limit: Duration) {
    let (used, path) = {
        let session = client.session.lock();
        (session.first_endpoint, session.path.path(tokio::time::Instant::now().into_std()))
    };
    for endpoint in (0..client.address_count()).filter(|&endpoint| endpoint != used) {
        let answered = match timeout(limit, ask(endpoint, path, shared, client, limit)).await {
            Ok(Ok(())) => true,
            // `rule:our-own-limits-judge-nobody`
            Ok(Err(Failure { code: Code::OwnLimit, .. })) => continue,
            Ok(Err(_)) | Err(_) => false,
        };
        client.session.lock().silent.note(endpoint, answered);
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
    link.send(client.request(endpoint, path.request())).await.map(drop)
}
