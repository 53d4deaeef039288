//! [`task`]: the work of each task that runs in simulations, too. [`Halt`]: lets all tasks of one simulated process
//! stand still, as if the kernel did not run the process. [`wall_now`]: the wall clock, which a
//! simulated process reads on its machine. Only simulations have a `Halt`.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::fence::{ReadClocks, wall_nanos};

thread_local! {
    /// The process whose task this thread polls.
    static POLLED: RefCell<Option<Halt>> = const { RefCell::new(None) };
}

/// A switch by which the tasks of one process stand still, and the clocks of its machine. Clones are the same.
#[derive(Clone, Debug)]
pub struct Halt {
    halted: Arc<Mutex<Halted>>,
    clocks: ReadClocks,
}

#[derive(Debug, Default)]
struct Halted {
    is_stopped: bool,
    waiting: Vec<Waker>,
}

impl Halt {
    /// The switch of a process on a machine with these clocks.
    pub fn on(clocks: ReadClocks) -> Self {
        Self { halted: Arc::default(), clocks }
    }

    /// From their next step on, the tasks stand still.
    pub fn stop(&self) {
        self.halted.lock().is_stopped = true;
    }

    /// The tasks go on.
    pub fn resume(&self) {
        let woken = {
            let mut halted = self.halted.lock();
            halted.is_stopped = false;
            std::mem::take(&mut halted.waiting)
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// The first task of the process. What it spawns by [`task`] belongs to the process too.
    pub fn task<F: Future>(&self, work: F) -> Task<F> {
        Task { halt: Some(self.clone()), work: Box::pin(work) }
    }

    fn holds(&self, context: &Context<'_>) -> bool {
        let mut halted = self.halted.lock();
        if halted.is_stopped && !halted.waiting.iter().any(|it| it.will_wake(context.waker())) {
            halted.waiting.push(context.waker().clone());
        }
        halted.is_stopped
    }
}

/// The work of a task that is about to be spawned: it stands still together with the task that spawns it.
pub fn task<F: Future>(work: F) -> Task<F> {
    Task { halt: POLLED.with_borrow(Clone::clone), work: Box::pin(work) }
}

/// Whether the task that asks belongs to a simulated process, which has no threads of its own.
pub fn is_simulated() -> bool {
    POLLED.with_borrow(Option::is_some)
}

/// The time by the wall clock: of the system, or of the machine of the simulated process that asks. Whatever reads
/// the clock of the system itself makes runs of a simulation differ.
pub fn wall_now() -> Timestamp {
    let simulated = POLLED.with_borrow(|process| Some((process.as_ref()?.clocks)().wall));
    let nanos = simulated.unwrap_or_else(wall_nanos);
    Timestamp::from_nanosecond(nanos.into()).unwrap_or(Timestamp::MAX)
}

/// Work of one process.
#[derive(Debug)]
#[must_use = "a task does nothing unless it is spawned"]
pub struct Task<F> {
    halt: Option<Halt>,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(halt) = self.halt.clone() else { return self.work.as_mut().poll(context) };
        if halt.holds(context) {
            return Poll::Pending;
        }
        let outer = POLLED.replace(Some(halt));
        let polled = self.work.as_mut().poll(context);
        POLLED.set(outer);
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::spawn;
    use tokio::time::{Instant, sleep, timeout};

    use super::*;
    use crate::{BootInstant, ClockReading};

    fn clocks() -> ClockReading {
        ClockReading { boot: BootInstant::from_nanos(0), wall: 7_000_000_000 }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_stands_still_with_all_its_tasks_and_finds_that_time_went_on() {
        let (halt, began) = (Halt::on(clocks), Instant::now());
        let inner = async { spawn(task(sleep(Duration::from_secs(1)))).await };
        let mut process = spawn(halt.task(inner));
        tokio::task::yield_now().await;
        halt.stop();
        assert!(timeout(Duration::from_secs(5), &mut process).await.is_err());
        halt.resume();
        process.await.unwrap().unwrap();
        assert_eq!(began.elapsed().as_secs(), 5);
        let inner = async { spawn(task(async { is_simulated() })).await };
        assert!(spawn(halt.task(inner)).await.unwrap().unwrap());
        assert!(!spawn(task(async { is_simulated() })).await.unwrap());
    }

    #[tokio::test]
    async fn a_process_reads_the_wall_clock_of_its_machine_and_all_others_that_of_the_system() {
        let inner = async { spawn(task(async { wall_now() })).await };
        let read = spawn(Halt::on(clocks).task(inner)).await.unwrap().unwrap();
        assert_eq!(read.as_second(), 7);
        let (earlier, now, later) = (Timestamp::now(), wall_now(), Timestamp::now());
        assert!(earlier <= now && now <= later, "{earlier} {now} {later}");
    }
}
