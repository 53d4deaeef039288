//! The lease thread and the handle on it.
//!
//! [`spawn`] is called by the command for every lease. The elector gets an OS thread, a runtime
//! and a connection of its own (rule:lease-never-behind-work).

use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, process};

use client::{Clients, ConfigError};
use resilience::panics::contain_call;
use resilience::{Fence, task};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::runtime;
use tokio::sync::{oneshot, watch};
use tracing::{Instrument as _, info_span};

use crate::config::{ElectionConfig, WATCHDOG_POLL};
use crate::elector::{Candidate, Order, Shared};
use crate::store::KubeLease;
use crate::term::ElectionMetrics;
use crate::term::{Leadership, LeaseEvent, PredecessorCheck, Released, Term, Won};

/// Why the election did not start.
#[derive(Debug, thiserror::Error)]
pub enum ElectionError {
    /// The timings contradict each other; every contradiction is named.
    #[error("cannot start leader election: {}", .0.join("; "))]
    Config(Vec<String>),
    /// An election of this process uses that lease name already.
    #[error("cannot start leader election twice for a lease named {0:?}; choose another name")]
    NameInUse(String),
    /// The client of the lease cannot be built.
    #[error("cannot build the client of the leader lease: {0}")]
    Client(#[from] ConfigError),
    /// The system gave no thread or no event queue.
    #[error("cannot start the thread of the leader lease: {0}")]
    Thread(#[from] io::Error),
}

/// A running election. Dropping it is [`Elector::abandon`].
#[must_use = "a dropped elector gives up leadership"]
pub struct Elector {
    status: watch::Receiver<Leadership>,
    orders: oneshot::Sender<Order>,
    term: Arc<Term>,
    health_limit: Duration,
}

/// The settings of an election for [`spawn`].
pub struct Election {
    /// The Lease and the timings.
    pub config: ElectionConfig,
    /// Makes the client of the lease, which shares nothing with the others.
    pub clients: Clients,
    /// Shared by all elections of the process.
    pub metrics: ElectionMetrics,
    /// Opened by every renewal and closed when leadership ends.
    pub fence: Fence,
    /// Called on the lease thread; must not block.
    pub on_event: Box<dyn Fn(LeaseEvent) + Send + Sync>,
    /// Asked when there is no Lease.
    pub may_have_predecessor: PredecessorCheck,
    /// Where the elector runs.
    pub place: Place,
}

/// Where the loop of a candidate and its watchdog run.
pub enum Place {
    /// On threads of their own. The watchdog ends the process.
    Threads,
    /// As tasks of the current runtime, for simulations. The watchdog calls this with the exit code.
    Tasks(Exit),
}

/// Starts to campaign for a lease, and goes on until the elector is released, abandoned or has
/// lost. May be called for several leases of different names.
///
/// A leader that fails to renew and does not leave by itself is ended by a watchdog with exit code
/// 1; a panic on the lease thread ends the process with 101.
///
/// # Errors
/// When the timings are invalid, the name is in use, the client cannot be built, or there is no
/// thread to be had.
pub fn spawn(election: Election) -> Result<Elector, ElectionError> {
    let Election { config, clients, metrics, fence, on_event, may_have_predecessor, place } =
        election;
    let problems = config.validate();
    if !problems.is_empty() {
        let problems = problems.iter().map(ToString::to_string).collect();
        return Err(ElectionError::Config(problems));
    }
    let term = Arc::new(Term::new(&fence));
    let Some(metrics) = metrics.of_lease(&config.name, &term) else {
        return Err(ElectionError::NameInUse(config.name));
    };
    let (status, watched) = watch::channel(Leadership::Standby { holder: None });
    let (orders, inbox) = oneshot::channel();
    let elector = Elector {
        status: watched,
        orders,
        term: Arc::clone(&term),
        health_limit: config.health_limit(),
    };
    let shared = Shared {
        term: Arc::clone(&term),
        fence,
        status,
        metrics,
        on_event,
        may_have_predecessor,
        draw: Box::new(resilience::draw),
    };
    match place {
        Place::Threads => {
            start_thread(config, clients, shared, inbox)?;
            let exit = |code| {
                last_words("lease-watchdog: the leader lease was not renewed in time, exiting\n");
                process::exit(code)
            };
            start_watchdog(term, Arc::new(exit))?;
        }
        Place::Tasks(exit) => {
            let store = KubeLease::new(&clients, &config.namespace, &config.name)?;
            tokio::spawn(task(Candidate::new(config, store, shared).run(inbox)));
            tokio::spawn(task(async move {
                while guards(&term, &exit) {
                    tokio::time::sleep(WATCHDOG_POLL).await;
                }
            }));
        }
    }
    Ok(elector)
}

/// Starts the lease thread and waits until its client stands, which takes no network.
fn start_thread(
    config: ElectionConfig,
    clients: Clients,
    shared: Shared,
    inbox: oneshot::Receiver<Order>,
) -> Result<(), ElectionError> {
    let (started, outcome) = mpsc::sync_channel::<Result<(), ElectionError>>(1);
    thread::Builder::new().name("leader-election".to_owned()).spawn(move || {
        let fence = shared.fence.clone();
        let campaign = || match prepare(&clients, &config) {
            Ok((runtime, store)) => {
                started.send(Ok(())).ok();
                let span = info_span!("lease", logger = "leader-election", lease = config.key());
                let campaign = Candidate::new(config, store, shared).run(inbox);
                runtime.block_on(campaign.instrument(span));
            }
            Err(err) => {
                started.send(Err(err)).ok();
            }
        };
        if let Err(panic) = contain_call(campaign) {
            // Without this thread the process must not go on, and no lock may keep it.
            fence.close();
            last_words(&format!("leader-election: the lease thread panicked: {panic}\n"));
            process::exit(101);
        }
    })?;
    outcome.recv().map_err(|_| io::Error::other("the thread ended at once"))?
}

fn prepare(
    clients: &Clients,
    config: &ElectionConfig,
) -> Result<(runtime::Runtime, KubeLease), ElectionError> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let store = {
        let _inside = runtime.enter();
        KubeLease::new(clients, &config.namespace, &config.name)?
    };
    Ok((runtime, store))
}

impl Elector {
    /// The state of leadership, now and at every change.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.status.clone()
    }

    /// The Lease as it was last read or written; to be asked when this process leads.
    pub fn won(&self) -> Won {
        self.term.won()
    }

    /// Gives the lease back so that another candidate can lead at once. To be called after the
    /// last write of every controller is settled; takes at most the renew deadline.
    pub async fn release(self) -> Released {
        let (reply, outcome) = oneshot::channel();
        if self.orders.send(Order::Release(reply)).is_err() {
            return Released::NotHeld;
        }
        outcome.await.unwrap_or_else(|_| Released::LeftToExpire {
            reason: "the lease thread ended early".to_owned(),
        })
    }

    /// Stops renewing and leaves the lease to expire: for a process that does not know the
    /// outcome of its last write. To be called when no controller writes any more: the lease thread
    /// closes the fence, then disarms the watchdog, so that the process can send its events and end
    /// its connections after the lease has run out, too. One that has lost the lease stays bound to
    /// be gone in time.
    pub fn abandon(self) {
        // A send fails only after the thread ended, and then there is nothing to abandon.
        self.orders.send(Order::Abandon).ok();
    }

    /// The check `leaderElection`, as a value that outlives the elector: fails, with the age of
    /// the last renewal in words. A standby is healthy.
    pub fn health_check(&self) -> impl Fn() -> Result<(), String> + Send + Sync + 'static {
        let (term, limit) = (Arc::clone(&self.term), self.health_limit);
        move || check(&term, limit)
    }
}

fn check(term: &Term, limit: Duration) -> Result<(), String> {
    match term.age() {
        Some(age) if age > limit => {
            Err(format!("the leader lease was last renewed {:.1}s ago", age.as_secs_f64()))
        }
        _ => Ok(()),
    }
}

/// The way out of the process; injected by tests. `process::exit` runs the C library's exit
/// handlers: one that waits for a lock of a stuck thread would hold it up. Nothing here registers
/// any; `_exit`, which runs none, would take `unsafe`, which is forbidden.
pub type Exit = Arc<dyn Fn(i32) + Send + Sync>;

/// Watches `term` for as long as it has a limit or anyone else holds it.
pub(crate) fn start_watchdog(term: Arc<Term>, exit: Exit) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("lease-watchdog".to_owned()).spawn(move || {
        while guards(&term, &exit) {
            thread::sleep(WATCHDOG_POLL);
        }
    })
}

/// Looks at the clock once; whether there is a reason to look again.
fn guards(term: &Arc<Term>, exit: &Exit) -> bool {
    // A lost lease keeps its limit though the elector is gone: the process still has to end.
    let is_needed = term.is_limited() || Arc::strong_count(term) > 1;
    if is_needed && term.overdue(term.now()) {
        exit(1);
        return false;
    }
    is_needed
}

/// Writes `line` to file descriptor 2 if that cannot block: a full pipe must not keep a leader
/// alive, and the lock of `eprintln!` may be held by the very thread that is stuck.
pub(crate) fn last_words(line: &str) {
    let stderr = io::stderr();
    let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
    let ready = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|n| n == 1);
    if ready && fds[0].revents().contains(PollFlags::OUT) {
        // A failure cannot be reported any more.
        rustix::io::write(&stderr, line.as_bytes()).ok();
    }
}

#[cfg(test)]
mod tests;
