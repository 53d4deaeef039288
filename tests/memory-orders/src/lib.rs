//! Files of the product, compiled with the atomics and locks of loom, which runs a function in every order of its
//! threads and of their memory accesses. The modules `rights` and `leaving` have such functions; the tests of
//! this crate run them.

// With their unit tests, which run with the product, the files would not compile here.
#![cfg(not(test))]
#![allow(dead_code, unreachable_pub, reason = "the files have more than is run here")]
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test fails by panicking")]

// To the files this crate is `parking_lot`, and `resilience` with the fence.
extern crate self as parking_lot;
extern crate self as resilience;

pub mod leaving;
pub mod rights;

mod locks;
mod object;

#[path = "../../../pkg/host/resilience/src/fence.rs"]
#[rustfmt::skip]
mod fence;
#[path = "../../../pkg/host/election/src/record.rs"]
#[rustfmt::skip]
mod record;
#[path = "../../../pkg/host/client/src/call/request.rs"]
#[rustfmt::skip]
mod request;
#[path = "../../../pkg/host/informer/src/store.rs"]
#[rustfmt::skip]
mod store;
#[path = "../../../pkg/host/informer/src/subscribers.rs"]
#[rustfmt::skip]
mod subscribers;
#[path = "../../../pkg/host/election/src/term.rs"]
#[rustfmt::skip]
mod term;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use fence::{BootInstant, ClockReading, Fence};
pub(crate) use locks::{Mutex, MutexGuard, RwLock};
pub(crate) use resilience_of_the_product::panics;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

    /// Where a lock is freed: loom stops a thread before each access, which is enough.
    pub(crate) fn switch() {}
}

/// Runs a function with its threads in every order.
fn explore(claims: &str, bounds: &str, run: impl Fn() + Send + Sync + 'static) {
    let number = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&number);
    loom::model::Builder::new().check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        run();
    });
    let number = number.load(Ordering::Relaxed);
    state_explorer::report(claims, bounds, &format!("all {number} orders"));
}
