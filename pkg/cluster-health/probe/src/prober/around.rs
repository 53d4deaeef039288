//! Asks the addresses of a cluster that its probes do not ask, because another one answers them.

use std::time::Duration;

use futures::future::join_all;
use health::{Code, ProbePath};
use tokio::time::{sleep, timeout};

use super::reader::open_to;
use super::shared::Shared;
use crate::client::Client;
use crate::failure::Failure;

/// Between the two.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// One request on a connection of its own to each address but that of the last good probe, and
/// where that fails another one, each within `limit`: one lost packet is no dead server. Any answer
/// will do. What is learnt is in [`Client::endpoints`].
pub(super) async fn look_around(shared: &Shared, client: &Client, limit: Duration) {
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
