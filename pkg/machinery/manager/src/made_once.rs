//! [`MadeOnce`]: what a controller registers once per process although it may be run anew.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// One value of each type, kept over the runs of one controller; clones share them.
#[derive(Clone, Default)]
pub(crate) struct MadeOnce(Arc<Mutex<HashMap<TypeId, Box<dyn Any + Send>>>>);

impl MadeOnce {
    /// The value of this type, made now if there is none.
    pub(crate) fn get_or_make<T, E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<T, E>
    where
        T: Clone + Send + 'static,
    {
        let mut made = self.0.lock();
        let known = made.get(&TypeId::of::<T>()).and_then(|value| value.downcast_ref::<T>());
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let value = make()?;
        made.insert(TypeId::of::<T>(), Box::new(value.clone()));
        Ok(value)
    }
}
