//! Writes one observation to the API server, patiently but not forever (`host.md 7`, Delivery).
//!
//! Called by [`crate::worker`]. A repeat is a strategic-merge PATCH; an Event the server has
//! forgotten (they live for an hour) is created again under its old name. Every write can be
//! repeated blindly: counts are absolute, and a POST that happened answers AlreadyExists.

use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Api, Client};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, warn};

use crate::correlate::Observation;
use crate::metrics::DropReason;
use crate::wire::{self, Source};

/// Tries per event, as in client-go.
const TRIES: u32 = 12;
/// Pause between tries; the first one is a random part of it, so that the recorders of a cluster
/// do not come back to a restarted server together.
const PAUSE: Duration = Duration::from_secs(5);
/// One event may keep its worker this long: client-go's two minutes halved.
const PATIENCE: Duration = Duration::from_secs(60);
/// One try; a server that is silent for longer is not going to answer.
const TRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Where events go.
#[derive(Clone)]
pub(crate) struct Sink {
    pub(crate) client: Client,
    pub(crate) source: Source,
}

enum Failure {
    /// The event is known to the server, or its namespace is going away: as good as written.
    Moot(String),
    Final(String),
    Passing(String),
}

impl Sink {
    /// Writes `o`; an error says why it was given up.
    pub(crate) async fn deliver(&self, o: &Observation) -> Result<(), DropReason> {
        let (logger, event) = (self.source.component, &o.name);
        let give_up = Instant::now() + PATIENCE;
        let mut last = String::new();
        for attempt in 0..TRIES {
            match self.attempt(o, give_up).await {
                Ok(()) => return Ok(()),
                Err(Failure::Moot(err)) => {
                    debug!(logger, event, err, "Event is known or its namespace is terminating");
                    return Ok(());
                }
                Err(Failure::Final(err)) => {
                    warn!(logger, event, err, "Server rejected event");
                    return Err(DropReason::Rejected);
                }
                Err(Failure::Passing(err)) => last = err,
            }
            let pause = if attempt == 0 { PAUSE.mul_f64(rand::random()) } else { PAUSE };
            if attempt + 1 == TRIES || Instant::now() + pause >= give_up {
                break;
            }
            debug!(logger, event, err = last, "Event was not written, trying again");
            sleep(pause).await;
        }
        warn!(logger, event, err = last, "Unable to write event");
        Err(DropReason::Unreachable)
    }

    async fn attempt(&self, o: &Observation, give_up: Instant) -> Result<(), Failure> {
        let limit = give_up.min(Instant::now() + TRY_TIMEOUT);
        match timeout_at(limit, self.write(o)).await {
            Ok(written) => written.map_err(classify),
            Err(_) => Err(Failure::Passing("the API server gave no answer in time".to_owned())),
        }
    }

    async fn write(&self, o: &Observation) -> Result<(), kube::Error> {
        let api = Api::<Event>::namespaced(self.client.clone(), o.object.event_namespace());
        if o.count > 1 {
            let patch = Patch::Strategic(wire::repeat(o));
            match api.patch_metadata(&o.name, &PatchParams::default(), &patch).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                patched => return patched.map(drop),
            }
        }
        api.create(&PostParams::default(), &wire::body(o, &self.source)).await.map(drop)
    }
}

fn classify(error: kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => match status.code {
            _ if status.is_already_exists() || namespace_terminates(&status) => {
                Failure::Moot(status.to_string())
            }
            429 | 500.. => Failure::Passing(status.to_string()),
            _ => Failure::Final(status.to_string()),
        },
        // The request would be built wrongly the next time, too.
        kube::Error::BuildRequest(err) => Failure::Final(err.to_string()),
        other => Failure::Passing(other.to_string()),
    }
}

fn namespace_terminates(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}
