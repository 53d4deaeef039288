//! [`task`]: the work of each task that runs in simulations, too. [`Halt`]: lets all tasks of one simulated process
//! stand still, as if the kernel did not run the process. Only simulations have a `Halt`.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

thread_local! {
    /// The process whose task this thread polls.
    static POLLED: RefCell<Option<Halt>> = const { RefCell::new(None) };
}

/// A switch by which the tasks of one process stand still. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Halt(Arc<Mutex<Halted>>);

#[derive(Debug, Default)]
struct Halted {
    is_stopped: bool,
    waiting: Vec<Waker>,
}

impl Halt {
    /// From their next step on, the tasks stand still.
    pub fn stop(&self) {
        self.0.lock().is_stopped = true;
    }

    /// The tasks go on.
    pub fn resume(&self) {
        let woken = {
            let mut halted = self.0.lock();
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
        let mut halted = self.0.lock();
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

    #[tokio::test(start_paused = true)]
    async fn a_process_stands_still_with_all_its_tasks_and_finds_that_time_went_on() {
        let (halt, began) = (Halt::default(), Instant::now());
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
}
