//! [`Pool`]: what takes seconds to start, lent to one test at a time and kept for the next one.

use std::ops::{Deref, DerefMut};

use parking_lot::Mutex;

/// Items that no test uses now. A `static`: its items end with the test process.
pub struct Pool<T>(Mutex<Vec<T>>);

/// Something of a [`Pool`], given back on drop unless the test has failed: its state is unknown then.
pub struct Lent<T: 'static> {
    item: Option<T>,
    pool: Option<&'static Pool<T>>,
}

impl<T> Pool<T> {
    /// An empty pool.
    #[must_use]
    pub const fn new() -> Self {
        Self(parking_lot::const_mutex(Vec::new()))
    }

    /// Lends an item that another test has used, after `clean`, or else a new item.
    pub async fn lend(
        &'static self,
        make: impl AsyncFnOnce() -> T,
        clean: impl AsyncFnOnce(&T),
    ) -> Lent<T> {
        let used = self.0.lock().pop();
        let item = match used {
            Some(used) => {
                clean(&used).await;
                used
            }
            None => make().await,
        };
        Lent { item: Some(item), pool: Some(self) }
    }
}

impl<T> Lent<T> {
    /// An item of no pool, which ends with its test.
    pub fn once(item: T) -> Self {
        Self { item: Some(item), pool: None }
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item.as_ref().expect("there until dropped")
    }
}

impl<T> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item.as_mut().expect("there until dropped")
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        if let (Some(item), Some(pool), false) =
            (self.item.take(), self.pool, std::thread::panicking())
        {
            pool.0.lock().push(item);
        }
    }
}
