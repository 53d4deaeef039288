//! What goes wrong between one replica and the API server, drawn from a seed.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::fault_proxy::{Canned, Rule};
use crate::{Cut, Fault, FaultProxy, Match};

/// Draws what happens next; clones draw from the same row.
#[derive(Clone)]
pub(super) struct Dice(Arc<Mutex<StdRng>>);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    pub(super) fn between(&self, least: Duration, most: Duration) -> Duration {
        self.0.lock().random_range(least..=most)
    }

    pub(super) fn one_of<T: Copy>(&self, things: &[T]) -> T {
        things[self.0.lock().random_range(0..things.len())]
    }

    fn percent(&self, percent: f64) -> bool {
        self.0.lock().random_bool(percent / 100.0)
    }
}

/// Faults in force until this is dropped.
pub(super) struct Faults {
    rules: Vec<Rule>,
    _disturber: DropGuard,
}

impl Faults {
    /// Lets `proxy` make faults. What breaks off watches and stands still needs the proxy alive.
    pub(super) fn install(proxy: &Arc<FaultProxy>, dice: &Dice) -> Self {
        let rules = kinds()
            .into_iter()
            .map(|(percent, requests, fault)| {
                let dice = dice.clone();
                proxy.on(requests.and(move |_| dice.percent(percent))).then(fault)
            })
            .collect();
        let calm = CancellationToken::new();
        tokio::spawn(disturb(Arc::clone(proxy), dice.clone(), calm.clone()));
        Self { rules, _disturber: calm.drop_guard() }
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        self.rules.drain(..).for_each(Rule::remove);
    }
}

/// Kinds of faults: out of a hundred matching requests, this share gets the fault.
fn kinds() -> Vec<(f64, Match, Fault)> {
    let late =
        || Canned::status(504).because("Timeout", "request did not complete within the time");
    let busy = || Canned::status(429).retry_after(1);
    let lists = Match::node_lists;
    let watches = Match::node_watches;
    let lease_writes = || Match::leases().and(|request| request.method != Method::GET);
    vec![
        (4.0, Match::node_patches(), Fault::LoseAnswer(Cut::Stream)),
        (1.0, Match::node_patches(), Fault::LoseAnswer(Cut::Connection)),
        (4.0, Match::node_patches(), Fault::Reset(Cut::Stream)),
        (3.0, Match::node_patches(), Fault::status(500)),
        (3.0, Match::node_patches(), Fault::ReplaceAnswer(late())),
        (3.0, Match::node_patches(), Fault::Answer(busy())),
        (3.0, Match::node_patches(), Fault::DelayBefore(Duration::from_millis(700))),
        (3.0, Match::node_patches(), Fault::DelayAfter(Duration::from_millis(1_500))),
        (8.0, Match::node_gets(), Fault::status(500)),
        (5.0, Match::node_gets(), Fault::Reset(Cut::Stream)),
        (10.0, lists(), Fault::status(503)),
        (10.0, lists(), Fault::Reset(Cut::Stream)),
        (5.0, lists(), Fault::DelayAfter(Duration::from_secs(1))),
        (8.0, watches(), Fault::status(410)),
        (8.0, watches(), Fault::status(503)),
        (2.0, lease_writes(), Fault::status(500)),
        (2.0, lease_writes(), Fault::LoseAnswer(Cut::Stream)),
        (2.0, Match::leases(), Fault::Reset(Cut::Connection)),
        (30.0, Match::events(), Fault::status(500)),
    ]
}

#[derive(Clone, Copy)]
enum Disturbance {
    Close,
    Cut,
    Expire,
    Stall,
    Freeze,
    Nothing,
}

/// Causes the faults that need no request.
async fn disturb(proxy: Arc<FaultProxy>, dice: Dice, calm: CancellationToken) {
    use Disturbance::{Close, Cut, Expire, Freeze, Nothing, Stall};
    let disturbed = async {
        loop {
            sleep(dice.between(Duration::from_millis(300), Duration::from_secs(2))).await;
            let watches = proxy.watches("/api/v1/nodes");
            match dice.one_of(&[Close, Cut, Cut, Cut, Expire, Stall, Freeze, Nothing]) {
                Close => watches.close(),
                Cut => watches.cut(),
                Expire => watches.expire(),
                Stall => {
                    watches.stall();
                    sleep(dice.between(Duration::from_millis(100), Duration::from_secs(1))).await;
                    watches.resume();
                }
                Freeze => {
                    proxy.freeze();
                    sleep(dice.between(Duration::from_millis(100), Duration::from_millis(1_500)))
                        .await;
                    proxy.thaw();
                }
                Nothing => {}
            }
        }
    };
    let _ended = calm.run_until_cancelled(disturbed).await.is_some();
    proxy.thaw();
    proxy.watches("").resume();
}
