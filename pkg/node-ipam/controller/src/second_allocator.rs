//! [`Detector`]: finds another program that assigns pod CIDRs at the same time
//! (`rule:second-allocator-is-told`). A Node with CIDRs that this process did not write is read, and
//! its managed fields say which program wrote them.

mod evidence;

use std::time::Duration;

use events::{EventType, ObjectRef, Recorder};
use http::StatusCode;
use jiff::Timestamp;
use prometheus::IntCounterVec;
use resilience::wall_now;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use crate::LOGGER;
use crate::api::{NodeApi, ReadError};
use evidence::{KnownAllocator, LastUnknown, OTHER};

pub(crate) use evidence::{
    Evidence, Hold, KNOWN, OTHER as OTHER_LABEL, OnSecondAllocator, Suspect, was_set_before,
};

/// One Node is read per this time: one is evidence enough.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Looks for a second allocator; all allocators use it.
pub(crate) struct Detector {
    /// Hold on allocations while a second allocator was found.
    pub(crate) hold: Hold,
    api: NodeApi,
    recorder: Recorder,
    found: IntCounterVec,
    /// The last one: one Node is evidence enough, so older ones are dropped.
    suspect: watch::Sender<Option<Suspect>>,
    unknown: LastUnknown,
}

impl Detector {
    /// A detector that reads by `api`, writes events by `recorder`, counts in `found` and sets `hold`.
    pub(crate) fn new(api: NodeApi, recorder: Recorder, found: IntCounterVec, hold: Hold) -> Self {
        let (suspect, unknown) = (watch::Sender::default(), LastUnknown::default());
        Self { hold, api, recorder, found, suspect, unknown }
    }

    /// Signals that another allocator may have given this Node its pod CIDR.
    pub(crate) fn suspect(&self, suspect: Suspect) {
        self.suspect.send_replace(Some(suspect));
    }

    /// Checks signalled Nodes until the stop.
    pub(crate) async fn watch(&self, on: OnSecondAllocator, stop: &CancellationToken) {
        // Pod CIDRs from before this moment are adopted.
        let begun = Instant::now();
        let mut suspects = self.suspect.subscribe();
        let watching = async {
            // The sender lives as long as this detector.
            while suspects.wait_for(Option::is_some).await.is_ok() {
                let Some(suspect) = self.suspect.send_replace(None) else { continue };
                let asked = Instant::now();
                // `begun` is older than the time of any waiting Node: the throttle serves this read first.
                match self.api.survey(&suspect.name, begun).await {
                    Ok((read, now)) => {
                        let begun = servers_time(now, asked - begun);
                        if let Some(manager) = suspect.confirmed_by(&read, begun) {
                            self.report(&suspect, manager, &read.cidrs, on);
                        }
                    }
                    // It is gone.
                    Err(ReadError::Refused { status: StatusCode::NOT_FOUND, .. }) => {}
                    Err(err) => {
                        debug!(logger = LOGGER, %err, "Cannot read which program set the pod \
                            CIDR of a Node");
                        // Unless there is a newer one.
                        self.suspect.send_modify(|last| *last = last.take().or(Some(suspect)));
                    }
                }
                sleep(LOOK_EVERY).await;
            }
        };
        stop.run_until_cancelled(watching).await;
    }

    fn report(&self, suspect: &Suspect, manager: &str, cidrs: &[String], on: OnSecondAllocator) {
        let known = KnownAllocator::of(manager);
        self.found.with_label_values(&[known.map_or(OTHER, |it| it.label)]).inc();
        let now = Instant::now();
        let acts = known.is_some() || self.unknown.is_second(&suspect.uid, now);
        if acts && let Some((pause, _)) = on.hold() {
            let is_held = self.hold.left(now).is_some();
            self.hold.set(now + pause);
            if is_held {
                return;
            }
        }
        let remedy = known.map_or("if that manager is an allocator, stop it", |it| it.remedy);
        let consequence = on.hold().map_or_else(String::new, |(_, how_long)| {
            if acts {
                return format!("; this program assigns no pod CIDR {how_long}");
            }
            format!(
                "; if that manager assigns pod CIDRs to another Node within 10 minutes, this program \
                 assigns none {how_long}"
            )
        });
        let message = format!(
            "{manager} assigned {} to Node {}, but this program assigns pod CIDRs too: \
             {remedy}{consequence}",
            cidrs.join(","),
            suspect.name,
        );
        error!(logger = LOGGER, "{message}");
        let object = ObjectRef::node(&suspect.name, &suspect.uid);
        self.recorder.event(object, EventType::Warning, "SecondAllocator", message);
    }
}

/// The time `ago` before now by the API server's clock, which may differ from ours. In whole seconds,
/// like creation timestamps: otherwise a Node created in the second of the start would be missed.
fn servers_time(now: Option<Timestamp>, ago: Duration) -> Timestamp {
    let then = now.unwrap_or_else(wall_now).checked_sub(ago);
    then.and_then(|then| Timestamp::from_second(then.as_second())).unwrap_or(Timestamp::MIN)
}
