//! kube-controller-manager that gives out pod CIDRs beside this program
//! (rule:second-allocator-is-told): noticed when a Node has CIDRs that we did not write, even if they are those
//! that we chose, and confirmed by what the API server noted of who wrote them, and when.

use std::sync::Arc;
use std::time::Duration;

use events::{EventType, ObjectRef};
use jiff::Timestamp;
use tokio::time::{Instant, sleep};
use tracing::{debug, error};

use crate::LOGGER;
use crate::cached_node::CachedNode;
use crate::reconciler::Reconciler;
use crate::suspicion::{STOCK, is_set_by_stock};

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
    /// Nothing is given out any more by this run.
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

/// Looks into suspicions until the stop.
pub(crate) async fn watch<N: CachedNode>(
    reconciler: &Reconciler<N>,
    on_second_allocator: OnSecondAllocator,
) {
    // What it gave out before is what is taken over.
    let begun = Instant::now();
    let watching = async {
        loop {
            let node = reconciler.suspicion.next().await;
            let asked = Instant::now();
            match reconciler.api.survey(&node, asked).await {
                Ok((seen, now)) if is_set_by_stock(&seen, servers_time(now, asked - begun)) => {
                    meet(reconciler, &node, &seen.cidrs, on_second_allocator);
                }
                Ok(_) => {}
                // The next Node will tell.
                Err(err) => debug!(logger = LOGGER, %err, "Cannot find out who set a pod CIDR"),
            }
            sleep(LOOK_EVERY).await;
        }
    };
    reconciler.stop.run_until_cancelled(watching).await;
}

/// What time it was so long ago for the server, which notes when a Node was served: its clock may not be ours. Whole
/// seconds, as the server notes them: else what it wrote in the second in which we began would be missed.
fn servers_time(now: Option<Timestamp>, ago: Duration) -> Timestamp {
    let then = now.unwrap_or_else(Timestamp::now).checked_sub(ago);
    then.and_then(|then| Timestamp::from_second(then.as_second())).unwrap_or(Timestamp::MIN)
}

fn meet<N: CachedNode>(
    reconciler: &Reconciler<N>,
    node: &Arc<str>,
    cidrs: &[String],
    on_second_allocator: OnSecondAllocator,
) {
    reconciler.metrics.met_second_allocator();
    if let Some(pause) = on_second_allocator.hold() {
        let now = Instant::now();
        let mut allocator = reconciler.allocator.lock();
        let is_told = allocator.held(now).is_some();
        allocator.hold(now + pause);
        if is_told {
            return;
        }
    }
    let message = format!(
        "{STOCK} gave out {} while this program does so, too: turn its node-ipam-controller off, \
         with --controllers=*,bootstrapsigner,tokencleaner,-node-ipam-controller{}",
        cidrs.join(","),
        on_second_allocator.consequence()
    );
    error!(logger = LOGGER, %node, "{message}");
    if let Some(cached) = reconciler.nodes.get(node) {
        let object = ObjectRef::node(node, &cached.as_ref().as_ref().uid);
        reconciler.recorder.event(object, EventType::Warning, "SecondAllocator", message);
    }
}
