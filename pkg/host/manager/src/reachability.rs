//! The readiness check `apiserver-reachable`: asks the server now and then for something that this
//! process needs.

use std::sync::Arc;
use std::time::Duration;

use client::Answer;
use http::{Request, StatusCode};
use kube::client::Body;
use kube_api::Status;
use parking_lot::Mutex;
use resilience::{LogGate, task};
use serving::{Endpoints, Health};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

const EVERY: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(5);
/// Unready after two missed answers in a row.
const PATIENCE: Duration = Duration::from_secs(30);
/// Answers of a balancer without an API server behind it; an API server would add a `Status`.
const GATEWAY_ERRORS: [StatusCode; 3] =
    [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
/// How often a refusal is told while it lasts.
const REMINDER: Duration = Duration::from_secs(60);

/// Adds the check to `health` and asks for `path` until `stop`. Called once at start, since a
/// standby or a process that waits for its first contact may be not ready, too. `path` is of an
/// object that the process must be able to read, such as its Lease; it need not exist.
pub fn watch_api_server(
    client: kube::Client,
    path: impl Into<String>,
    health: &Health,
    stop: CancellationToken,
) {
    let reachability = Reachability::default();
    tokio::spawn(task(reachability.clone().run(client, path.into(), stop)));
    health.add("apiserver-reachable", Endpoints::READY, move || reachability.check());
}

/// The last answer of the server.
#[derive(Clone, Default)]
struct Reachability {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answered: Option<Instant>,
    /// The last answer, if it was a refusal.
    refusal: Option<String>,
}

impl Reachability {
    async fn run(self, client: kube::Client, path: String, stop: CancellationToken) {
        let reminder = LogGate::new(REMINDER);
        loop {
            if let Some(answer) = ask(&client, &path).await {
                let refusal = refusal(&answer, &path);
                report(refusal.as_deref(), &reminder);
                *self.state.lock() = State { answered: Some(Instant::now()), refusal };
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep(EVERY) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let state = self.state.lock();
        match (state.answered, &state.refusal) {
            (Some(at), _) if at.elapsed() >= PATIENCE => {
                Err(format!("no answer for {} s", at.elapsed().as_secs()))
            }
            (Some(_), Some(refusal)) => Err(refusal.clone()),
            (Some(_), None) => Ok(()),
            (None, _) => Err("no answer yet".into()),
        }
    }
}

async fn ask(client: &kube::Client, path: &str) -> Option<Answer> {
    let request = Request::get(path).body(Body::empty()).ok()?;
    let answer = client::answer(client, request, TIMEOUT).await.ok()?;
    let is_of_gateway =
        GATEWAY_ERRORS.contains(&answer.status) && Status::read(&answer.body).is_none();
    (!is_of_gateway).then_some(answer)
}

/// In words, when the server does not let us have what we need. Any other answer comes from a
/// server that knows us and is there.
fn refusal(answer: &Answer, path: &str) -> Option<String> {
    let advice = match answer.status {
        StatusCode::UNAUTHORIZED => "renew the credentials of --kubeconfig",
        StatusCode::FORBIDDEN => "allow the identity of --kubeconfig to read it (RBAC)",
        _ => return None,
    };
    let message = Status::read(&answer.body).map(|status| status.message).unwrap_or_default();
    Some(format!("the API server answers {} to GET {path}: {message}; {advice}", answer.status))
}

fn report(refusal: Option<&str>, reminder: &LogGate) {
    match refusal {
        Some(refusal) if reminder.pass(Instant::now()).is_some() => {
            warn!(reason = refusal, "The API server refuses requests that this process needs");
        }
        None if reminder.reset() => {
            info!("The API server no longer refuses requests that this process needs");
        }
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests;
