//! The pipeline from [`Recorder::event`] to requests, against a scripted server on a paused clock.
//!
//! | file | holds |
//! |---|---|
//! | `form.rs` | what is sent |
//! | `answers.rs` | what each answer leads to |
//! | `queues.rs` | who waits for whom |
//! | `flush.rs` | the end |

use api_server_double::{ApiServer, Asked, Reply};
use http::Method;
use prometheus::Registry;
use serde_json::json;
use tokio::time::sleep;

use super::*;

mod answers;
mod flush;
mod form;
mod queues;

const SECOND: Duration = Duration::from_secs(1);

fn pipeline(server: &ApiServer) -> (Recorder, Broadcaster, EventMetrics) {
    let metrics = EventMetrics::new(&Registry::new()).unwrap();
    let (recorder, broadcaster) =
        start(server.client(), "cidrAllocator", "host_1", metrics.clone());
    (recorder, broadcaster, metrics)
}

fn tell(recorder: &Recorder, node: &str, message: &str) {
    let object = ObjectRef::node(node, "u-1");
    recorder.event(object, EventType::Normal, "CIDRNotAvailable", message.to_owned());
}
