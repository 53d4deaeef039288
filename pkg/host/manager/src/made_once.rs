//! [`MadeOnce`]: what a controller registers once per process although it may be run anew.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::panic::Location;
use std::sync::Arc;

use parking_lot::Mutex;

/// One value of each type and place in the code that asks for it, kept over the runs of one
/// controller; clones share them.
#[derive(Clone, Default)]
pub(crate) struct MadeOnce(Arc<Mutex<HashMap<Asked, Slot>>>);

/// By type alone, two counters would be one.
type Asked = (TypeId, &'static Location<'static>);

/// A lock of its own: who makes a value may ask for another one.
type Slot = Arc<Mutex<Option<Box<dyn Any + Send>>>>;

impl MadeOnce {
    /// The value of this type that the caller was given before, made now if there is none.
    #[track_caller]
    pub(crate) fn get_or_make<T, E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<T, E>
    where
        T: Clone + Send + 'static,
    {
        let asked = (TypeId::of::<T>(), Location::caller());
        let slot = Arc::clone(self.0.lock().entry(asked).or_default());
        let mut made = slot.lock();
        if let Some(known) = made.as_ref().and_then(|value| value.downcast_ref::<T>()) {
            return Ok(known.clone());
        }
        let value = make()?;
        *made = Some(Box::new(value.clone()));
        Ok(value)
    }
}

#[cfg(test)]
mod tests;
