//! [`Detector`]: finds a kube-controller-manager that gives out pod CIDRs at the same time
//! (`rule:second-allocator-is-told`). A Node with CIDRs that this process did not write is read, and
//! its managed fields say who wrote them.

mod signal;

use std::time::Duration;

use events::{EventType, ObjectRef, Recorder};
use http::StatusCode;
use jiff::Timestamp;
use prometheus::IntCounter;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use crate::LOGGER;
use crate::api::{NodeApi, ReadError};
use signal::{STOCK, SecondAllocatorSignal};

pub(crate) use signal::{Evidence, Hold, OnSecondAllocator, Suspect, is_stocks};

/// One Node is read per this time: one is evidence enough.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Looks for a second allocator; all allocators use it.
pub(crate) struct Detector {
    /// Hold on allocations while a second allocator was found.
    pub(crate) hold: Hold,
    api: NodeApi,
    recorder: Recorder,
    found: IntCounter,
    signal: SecondAllocatorSignal,
}

impl Detector {
    /// A detector that reads by `api`, writes events by `recorder`, counts in `found` and sets `hold`.
    pub(crate) fn new(api: NodeApi, recorder: Recorder, found: IntCounter, hold: Hold) -> Self {
        Self { hold, api, recorder, found, signal: SecondAllocatorSignal::default() }
    }

    /// Signals that another allocator may have given this Node its pod CIDR.
    pub(crate) fn suspect(&self, suspect: Suspect) {
        self.signal.raise(suspect);
    }

    /// Checks signalled Nodes until the stop.
    pub(crate) async fn watch(&self, on: OnSecondAllocator, stop: &CancellationToken) {
        // Pod CIDRs from before this moment are adopted.
        let begun = Instant::now();
        let watching = async {
            loop {
                let suspect = self.signal.next().await;
                let asked = Instant::now();
                // `begun` is older than the time of any waiting Node: the throttle serves this read first.
                match self.api.survey(&suspect.name, begun).await {
                    Ok((read, now)) => {
                        if suspect.is_confirmed(&read, servers_time(now, asked - begun)) {
                            self.report_second_allocator(&suspect, &read.cidrs, on);
                        }
                    }
                    // It is gone.
                    Err(ReadError::Refused { status: StatusCode::NOT_FOUND, .. }) => {}
                    Err(err) => {
                        debug!(logger = LOGGER, %err, "Cannot read which program set the pod \
                            CIDR of a Node");
                        self.signal.keep(suspect);
                    }
                }
                sleep(LOOK_EVERY).await;
            }
        };
        stop.run_until_cancelled(watching).await;
    }

    fn report_second_allocator(&self, suspect: &Suspect, cidrs: &[String], on: OnSecondAllocator) {
        self.found.inc();
        if let Some(pause) = on.hold() {
            let now = Instant::now();
            let is_told = self.hold.left(now).is_some();
            self.hold.set(now + pause);
            if is_told {
                return;
            }
        }
        let message = format!(
            "{STOCK} assigned {} while this program assigns pod CIDRs: disable its \
             node-ipam-controller with \
             --controllers=*,bootstrapsigner,tokencleaner,-node-ipam-controller{}",
            cidrs.join(","),
            on.consequence()
        );
        error!(logger = LOGGER, node = %suspect.name, "{message}");
        let object = ObjectRef::node(&suspect.name, &suspect.uid);
        self.recorder.event(object, EventType::Warning, "SecondAllocator", message);
    }
}

/// The time `ago` before now by the API server's clock, which may differ from ours. In whole seconds,
/// like creation timestamps: otherwise a Node created in the second of the start would be missed.
fn servers_time(now: Option<Timestamp>, ago: Duration) -> Timestamp {
    let then = now.unwrap_or_else(Timestamp::now).checked_sub(ago);
    then.and_then(|then| Timestamp::from_second(then.as_second())).unwrap_or(Timestamp::MIN)
}
