//! The locks of `parking_lot`, as far as the product uses them, on those of a tool that runs threads in many orders:
//! `crate::sync`. `thread-schedules` compiles this file too.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use crate::sync;

/// The lock is freed when this is dropped, and other threads may run then.
pub(crate) struct Guard<G>(Option<G>);

pub(crate) type MutexGuard<'a, T> = Guard<sync::MutexGuard<'a, T>>;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        Guard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok().map(|guard| Guard(Some(guard)))
    }
}

pub(crate) struct RwLock<T>(sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> Guard<sync::RwLockReadGuard<'_, T>> {
        Guard(Some(self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }

    pub(crate) fn write(&self) -> Guard<sync::RwLockWriteGuard<'_, T>> {
        Guard(Some(self.0.write().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl<G: Deref> Deref for Guard<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        self.0.as_ref().unwrap()
    }
}

impl<G: DerefMut> DerefMut for Guard<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        self.0.as_mut().unwrap()
    }
}

impl<G> Drop for Guard<G> {
    fn drop(&mut self) {
        drop(self.0.take());
        if !std::thread::panicking() {
            sync::switch();
        }
    }
}
