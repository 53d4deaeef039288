//! The readiness check `apiserver-reachable`: asks the server now and then whether it lives.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::client::Body;
use parking_lot::Mutex;
use serving::{Endpoints, Health};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const EVERY: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(5);
/// Unready after two missed answers in a row.
const PATIENCE: Duration = Duration::from_secs(30);

/// Adds the check to `health` and asks until `stop`. Called once at start, since a standby or a
/// process that waits for its first contact is not ready either (`host.md` 3.1, 9.3).
pub fn watch_api_server(client: kube::Client, health: &Health, stop: CancellationToken) {
    let reachability = Reachability::default();
    tokio::spawn(reachability.clone().run(client, stop));
    health.add("apiserver-reachable", Endpoints::READY, move || reachability.check());
}

/// When the server last answered.
#[derive(Clone, Default)]
struct Reachability {
    answered: Arc<Mutex<Option<Instant>>>,
}

impl Reachability {
    async fn run(self, client: kube::Client, stop: CancellationToken) {
        loop {
            if ask(&client).await {
                *self.answered.lock() = Some(Instant::now());
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        match *self.answered.lock() {
            Some(at) if at.elapsed() < PATIENCE => Ok(()),
            Some(at) => Err(format!("no answer for {} s", at.elapsed().as_secs())),
            None => Err("no answer yet".into()),
        }
    }
}

/// Any answer will do: a server that refuses is reachable.
async fn ask(client: &kube::Client) -> bool {
    let Ok(request) = Request::get("/livez").body(Body::empty()) else { return false };
    client::answer(client, request, TIMEOUT).await.is_ok()
}

#[cfg(test)]
mod tests;
