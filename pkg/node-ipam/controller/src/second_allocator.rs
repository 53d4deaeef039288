//! kube-controller-manager that gives out pod CIDRs beside this program
//! (rule:second-allocator-is-told): noticed when a Node has CIDRs that we did not write, even if they are those
//! that we chose, and confirmed by what the API server noted of who wrote them.

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
use crate::hold::Hold;
use crate::suspicion::{STOCK, Suspect, Suspicion};

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
