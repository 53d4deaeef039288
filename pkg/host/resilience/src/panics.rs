//! Turns the panic of a future or a closure into an error with its message and place.
//!
//! Work queues contain the panics of their workers, the manager those of its controllers and watches.
//! The caller must drop the state that the code shared with others, or know that a panic cannot leave
//! it half-changed.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::pin::pin;
use std::sync::Once;
use std::task::Poll;

/// A contained panic. Displays as its message and place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Panic {
    /// The message; "no message" when the payload is no text.
    pub message: String,
    /// `file:line:column`; empty when it is unknown.
    pub location: String,
    /// Present when `RUST_BACKTRACE` asks for it.
    pub backtrace: Option<String>,
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.location.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{} at {}", self.message, self.location)
    }
}

thread_local! {
    /// Contained code is running on this thread.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
    /// Place and backtrace of the panic that is unwinding on this thread.
    static PLACE: RefCell<Option<(String, Option<String>)>> = const { RefCell::new(None) };
}

/// Runs a future to its end or to its panic. It is not polled again after a panic.
///
/// The first call installs a panic hook for the process, which keeps the place of a contained panic
/// and prints nothing; any other panic goes to the hook that was there before.
pub async fn contain<F: Future>(future: F) -> Result<F::Output, Panic> {
    let mut future = pin!(future);
    poll_fn(|context| match contain_call(|| future.as_mut().poll(context)) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// Runs a function to its end or to its panic; [`contain`] does so with a future.
pub fn contain_call<T>(call: impl FnOnce() -> T) -> Result<T, Panic> {
    keep_places();
    let outer = CONTAINED.replace(true);
    let ended = catch_unwind(AssertUnwindSafe(call));
    CONTAINED.set(outer);
    ended.map_err(|payload| caught(payload.as_ref()))
}

/// The message of a panic, from the payload of a join or a catch; "no message" when it is no text.
pub fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

fn caught(payload: &(dyn Any + Send)) -> Panic {
    let (location, backtrace) = PLACE.take().unwrap_or_default();
    Panic { message: message(payload).to_owned(), location, backtrace }
}

/// Installs the hook that keeps the place of a panic: the payload does not hold it.
fn keep_places() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !CONTAINED.get() {
                return before(info);
            }
            let location = info.location().map(ToString::to_string).unwrap_or_default();
            let backtrace = Backtrace::capture();
            let captured = backtrace.status() == BacktraceStatus::Captured;
            PLACE.set(Some((location, captured.then(|| backtrace.to_string()))));
        }));
    });
}

#[cfg(test)]
mod tests;
