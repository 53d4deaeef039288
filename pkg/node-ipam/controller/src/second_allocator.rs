//! kube-controller-manager that gives out pod CIDRs beside this program
//! (rule:second-allocator-is-told): noticed when a Node has CIDRs that we did not write, even if they are those
//! that we chose, and confirmed by what the API server noted of who wrote them.
//!
//! [`Hold`]: until when no pod CIDR is given out (`rule:second-allocator-is-told`).

use std::sync::Arc;
use std::time::Duration;

use events::{EventType, ObjectRef, Recorder};
use http::StatusCode;
use jiff::Timestamp;
use manager::{Context, Failure};
use parking_lot::Mutex;
use prometheus::IntCounter;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use super::LOGGER;
use super::api::{NodeApi, ReadError};
use super::suspicion::{STOCK, Suspect, Suspicion};

/// One Node is looked into per this time: others may be served by whom they like.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How long nothing is given out after such a discovery.
const PAUSE: Duration = Duration::from_secs(30);
/// Longer than any process runs.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What follows from a second allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnSecondAllocator {
    /// It is told, and that is all.
    Warn,
    /// Nothing is given out for a while, each time.
    #[default]
    Pause,
    /// Nothing is given out any more by this process.
    Stop,
}

impl OnSecondAllocator {
    /// By the words of the flag.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "warn" => Some(Self::Warn),
            "pause" => Some(Self::Pause),
            "stop" => Some(Self::Stop),
            _ => None,
        }
    }

    fn hold(self) -> Option<Duration> {
        match self {
            Self::Warn => None,
            Self::Pause => Some(PAUSE),
            Self::Stop => Some(FOR_EVER),
        }
    }

    fn consequence(self) -> &'static str {
        match self {
            Self::Warn => "",
            Self::Pause => "; no pod CIDR is given out here for 30 seconds",
            Self::Stop => "; no pod CIDR is given out here until this program is started again",
        }
    }
}

/// What all allocators look for a second one with.
pub(crate) struct Detector {
    /// What an allocator that was found leads to.
    pub(crate) hold: Hold,
    api: NodeApi,
    recorder: Recorder,
    found: IntCounter,
    suspicion: Suspicion,
}

impl Detector {
    /// Looks by `api`, tells by `recorder`, counts by `found` and holds by `hold`.
    pub(crate) fn new(api: NodeApi, recorder: Recorder, found: IntCounter, hold: Hold) -> Self {
        Self { hold, api, recorder, found, suspicion: Suspicion::default() }
    }

    /// Somebody else may have given this Node its pod CIDR.
    pub(crate) fn suspect(&self, suspect: Suspect) {
        self.suspicion.raise(suspect);
    }

    /// Looks into suspicions until the stop.
    pub(crate) async fn watch(&self, on: OnSecondAllocator, stop: &CancellationToken) {
        // What it gave out before is what is taken over.
        let begun = Instant::now();
        let watching = async {
            loop {
                let suspect = self.suspicion.next().await;
                let asked = Instant::now();
                // By a time before that of all Nodes that wait: ahead of them in the throttle's line.
                match self.api.survey(&suspect.name, begun).await {
                    Ok((read, now)) => {
                        if suspect.is_confirmed(&read, servers_time(now, asked - begun)) {
                            self.found(&suspect, &read.cidrs, on);
                        }
                    }
                    // It is gone.
                    Err(ReadError::Refused { status: StatusCode::NOT_FOUND, .. }) => {}
                    Err(err) => {
                        debug!(logger = LOGGER, %err, "Cannot find out who set a pod CIDR");
                        self.suspicion.keep(suspect);
                    }
                }
                sleep(LOOK_EVERY).await;
            }
        };
        stop.run_until_cancelled(watching).await;
    }

    fn found(&self, suspect: &Suspect, cidrs: &[String], on: OnSecondAllocator) {
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
            "{STOCK} gave out {} while this program does so, too: turn its node-ipam-controller off, \
             with --controllers=*,bootstrapsigner,tokencleaner,-node-ipam-controller{}",
            cidrs.join(","),
            on.consequence()
        );
        error!(logger = LOGGER, node = %suspect.name, "{message}");
        let object = ObjectRef::node(&suspect.name, &suspect.uid);
        self.recorder.event(object, EventType::Warning, "SecondAllocator", message);
    }
}

/// What time it was so long ago for the server, which notes when a Node was made: its clock may not be ours. Whole
/// seconds, as the server notes them: else what it wrote in the second in which we began would be missed.
fn servers_time(now: Option<Timestamp>, ago: Duration) -> Timestamp {
    let then = now.unwrap_or_else(Timestamp::now).checked_sub(ago);
    then.and_then(|then| Timestamp::from_second(then.as_second())).unwrap_or(Timestamp::MIN)
}

/// Until when no pod CIDR is given out. Clones are the same, and one outlives the runs of the
/// controller: a controller that is started again holds what the one before it held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hold(Arc<Mutex<Option<Instant>>>);

impl Hold {
    /// Holds until that moment, in place of what was set before.
    pub(crate) fn set(&self, until: Instant) {
        *self.0.lock() = Some(until);
    }

    /// For how long from now on nothing is given out.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        let left = (*self.0.lock())?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

/// Besides the time of a PATCH, for settling the last outcomes after a stop: one second in which a
/// PATCH travels to the server, and two for reads. With 5 s of the PATCH it fits into stock's
/// default for `--controller-shutdown-timeout`, 10 s.
const LAST_READS: Duration = Duration::from_secs(3);

/// Waits for the stop of the run; until when its outcomes may be settled.
pub(crate) async fn deadline_of_outcomes(context: &Context) -> Result<Instant, Failure> {
    context.stop.clone().cancelled_owned().await;
    Ok(Instant::now() + context.settings.write_timeout + LAST_READS)
}
