//! [`Process`]: a real candidate with its fence, on clocks of its own, and the times in which its fence was open.

use std::cell::Cell;
use std::future::Future as _;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use prometheus::Registry;
use resilience::{BootInstant, ClockReading, Fence};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, advance, sleep_until};

use super::super::config;
use super::super::server::Verb;
use crate::elector::{Candidate, Order, Shared};
use crate::store::{LeaseStore, StoreError};
use crate::term::{ElectionMetrics, Leadership, LeaseMetrics, Term};

/// What a request may take to get into the connection: `SENDING` of the client.
const SENDING: Duration = Duration::from_millis(250);

pub(super) type Answer = Result<Option<Lease>, StoreError>;

/// A call that a process has made.
pub(super) struct Call {
    pub(super) verb: Verb,
    pub(super) lease: Option<Lease>,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// The store of a process: it hands each call to the world.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Option<Call>>>);

impl Calls {
    async fn call(&self, verb: Verb, lease: Option<Lease>) -> Answer {
        let (reply, answer) = oneshot::channel();
        *self.0.lock().unwrap() = Some(Call { verb, lease, reply });
        answer.await.unwrap_or_else(|_| Err(StoreError::Failed("connection reset".to_owned())))
    }
}

impl LeaseStore for Calls {
    async fn get(&self) -> Answer {
        self.call(Verb::Get, None).await
    }

    async fn create(&self, lease: Lease) -> Result<Lease, StoreError> {
        self.call(Verb::Create, Some(lease)).await.map(Option::unwrap)
    }

    async fn replace(&self, lease: Lease) -> Result<Lease, StoreError> {
        self.call(Verb::Replace, Some(lease)).await.map(Option::unwrap)
    }
}

/// How a process is kept from running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Pause {
    /// SIGSTOP: all clocks go on.
    Stopped,
    /// The machine sleeps: its monotonic clock stands still.
    Suspended,
    /// The hypervisor stops the machine and sets its wall clock afterwards.
    Paused,
    /// The hypervisor stops the machine and sets no clock.
    PausedUnnoticed,
}

/// A time in which a fence was open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) from: Duration,
    pub(super) to: Duration,
    /// Until when the server may apply a write that left in this time.
    pub(super) last_write: Duration,
}

thread_local! {
    /// When the process that runs was started, by its monotonic clock, and how far its boot clock and its wall
    /// clock are ahead of that.
    static CLOCKS: Cell<Option<(Instant, Duration, Duration)>> = const { Cell::new(None) };
    static METRICS: LeaseMetrics = ElectionMetrics::new(&Registry::new())
        .unwrap()
        .of_lease("icm", &Arc::new(Term::new(&Fence::closed())))
        .unwrap();
}

/// An hour after boot, in 2001.
fn clocks() -> ClockReading {
    let (start, boot, wall) = CLOCKS.get().unwrap();
    let ran = start.elapsed() + Duration::from_secs(3_600);
    let wall = (ran + wall).as_nanos() + 1_000_000_000_000_000_000;
    let boot = BootInstant::from_nanos((ran + boot).as_nanos().try_into().unwrap());
    ClockReading { boot, wall: wall.try_into().unwrap() }
}

/// A process. All times are those of the world.
pub(super) struct Process {
    run: Pin<Box<dyn Future<Output = ()>>>,
    runtime: Runtime,
    orders: Option<oneshot::Sender<Order>>,
    status: watch::Receiver<Leadership>,
    fence: Fence,
    calls: Calls,
    start: Instant,
    /// How long its monotonic, boot and wall clocks stood still, the time before its start included.
    stood_still: [Duration; 3],
    /// How long a write may be on its way before the server has it.
    travel: Duration,
    pub(super) at: Duration,
    pub(super) has_ended: bool,
    pub(super) open: Vec<Open>,
}

impl Process {
    pub(super) fn new(identity: &str, at: Duration, travel: Duration) -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let (runtime, calls, fence) =
            (runtime.unwrap(), Calls::default(), Fence::closed_by(clocks));
        let (status, watched) = watch::channel(Leadership::Standby { holder: None });
        let (orders, inbox) = oneshot::channel();
        let shared = Shared {
            term: Arc::new(Term::new(&fence)),
            fence: fence.clone(),
            status,
            metrics: METRICS.with(|it| LeaseMetrics {
                master: it.master.clone(),
                slow_path: it.slow_path.clone(),
                renew: it.renew.clone(),
            }),
            on_event: Box::new(|_| {}),
            may_have_predecessor: Box::new(|| Box::pin(std::future::ready(Ok(false)))),
            draw: Box::new(|| 0.0),
        };
        let config =
            crate::ElectionConfig { retry_period: Duration::from_secs(2), ..config(identity) };
        let run = Box::pin(Candidate::new(config, calls.clone(), shared).run(inbox));
        let start = {
            let _inside = runtime.enter();
            Instant::now()
        };
        Self {
            run,
            runtime,
            orders: Some(orders),
            status: watched,
            fence,
            calls,
            start,
            stood_still: [at; 3],
            travel,
            at,
            has_ended: false,
            open: Vec::new(),
        }
    }

    /// Runs until it makes a call, at [`Self::at`], or until that time of the world.
    pub(super) fn run(&mut self, until: Duration) -> Option<Call> {
        self.set_clocks();
        let Self { run, runtime, fence, calls, start, stood_still, travel, open, .. } = self;
        let (start, stood_still) = (*start, stood_still[0]);
        let end = start + until.saturating_sub(stood_still);
        let mut has_ended = self.has_ended;
        let (call, at) = runtime.block_on(async {
            let mut end = pin!(sleep_until(end));
            std::future::poll_fn(|context| {
                has_ended = has_ended || run.as_mut().poll(context).is_ready();
                let at = start.elapsed() + stood_still;
                note(open, at, fence.remaining(), *travel);
                let call = calls.0.lock().unwrap().take();
                if call.is_some() || end.as_mut().poll(context).is_ready() {
                    return Poll::Ready((call, at));
                }
                Poll::Pending
            })
            .await
        });
        (self.at, self.has_ended) = (at, has_ended);
        call
    }

    fn set_clocks(&self) {
        let [monotonic, boot, wall] = self.stood_still;
        let ahead = |clock: Duration| monotonic.saturating_sub(clock);
        CLOCKS.set(Some((self.start, ahead(boot), ahead(wall))));
    }

    /// Keeps it from running for so long. `is_late` is whether a write that had passed the fence leaves
    /// only afterwards, without another look.
    pub(super) fn pause(&mut self, pause: Pause, length: Duration, is_late: bool) {
        self.set_clocks();
        let remaining = self.runtime.block_on(async { self.fence.remaining() });
        let timeout = remaining.saturating_sub(SENDING);
        let stands_still: &[usize] = match pause {
            Pause::Stopped => &[],
            Pause::Suspended => &[0],
            Pause::Paused => &[0, 1],
            Pause::PausedUnnoticed => &[0, 1, 2],
        };
        if stands_still.is_empty() {
            self.runtime.block_on(advance(length));
        }
        for clock in stands_still {
            self.stood_still[*clock] += length;
        }
        self.at += length;
        self.set_clocks();
        let remaining = self.runtime.block_on(async { self.fence.remaining() });
        note(&mut self.open, self.at, remaining, self.travel);
        // The client asks the fence again when the connection takes the body.
        if !timeout.is_zero()
            && (is_late || remaining >= timeout)
            && let Some(open) = self.open.last_mut()
        {
            open.last_write = open.last_write.max(self.at + timeout + self.travel);
        }
    }

    /// Orders it to give the lease back, after all of its writes are settled.
    pub(super) fn release(&mut self) {
        let (reply, _) = oneshot::channel();
        if let Some(orders) = self.orders.take() {
            drop(orders.send(Order::Release(reply)));
        }
        if let Some(open) = self.open.last_mut() {
            open.last_write = open.last_write.min(self.at);
        }
    }

    /// Whether it can lead in future.
    pub(super) fn is_candidate(&self) -> bool {
        self.orders.is_some() && !matches!(*self.status.borrow(), Leadership::Lost { .. })
    }

    pub(super) fn leads(&self) -> bool {
        matches!(*self.status.borrow(), Leadership::Leading)
    }
}

/// Notes at a moment that the fence stays open for so long.
fn note(open: &mut Vec<Open>, at: Duration, remaining: Duration, travel: Duration) {
    let is_closed = remaining.is_zero();
    let to = at + remaining;
    match open.last_mut() {
        Some(last) if last.to >= at => {
            last.to = to;
            if !is_closed {
                last.last_write = last.last_write.max(to + travel);
            }
        }
        _ if !is_closed => open.push(Open { from: at, to, last_write: to + travel }),
        _ => {}
    }
}
