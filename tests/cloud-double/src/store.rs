//! [`Store`]: the resources of one kind with their past, so that a read can show how it was some
//! seconds ago.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// Resources that were just made and are not shown: until when, and in how many reads.
pub(crate) type Late = RefCell<BTreeMap<String, (u64, u32)>>;

/// What a read shows: how it was at `time`, without what is late `now`.
#[derive(Clone, Copy)]
pub(crate) struct Then<'a> {
    pub(crate) now: u64,
    pub(crate) time: u64,
    pub(crate) late: &'a Late,
}

impl Then<'_> {
    /// Whether a read does not show this.
    fn hides(self, id: &str) -> bool {
        match self.late.borrow_mut().get_mut(id) {
            Some((until, left)) if self.now < *until && *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}

/// The resources of one kind, by id.
#[derive(Clone, Debug)]
pub struct Store<T> {
    versions: BTreeMap<String, Vec<(u64, Option<T>)>>,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self { versions: BTreeMap::new() }
    }
}

impl<T: Clone> Store<T> {
    /// Puts a resource there, or a new version of it.
    pub fn put(&mut self, id: &str, now: u64, value: T) {
        self.versions.entry(id.to_owned()).or_default().push((now, Some(value)));
    }

    /// Deletes a resource.
    pub fn remove(&mut self, id: &str, now: u64) {
        self.versions.entry(id.to_owned()).or_default().push((now, None));
    }

    /// A resource as it is.
    pub fn get(&self, id: &str) -> Option<&T> {
        self.versions.get(id)?.last()?.1.as_ref()
    }

    /// Changes a resource, if it is there.
    pub fn edit(&mut self, id: &str, now: u64, change: impl FnOnce(&mut T)) {
        if let Some(mut value) = self.get(id).cloned() {
            change(&mut value);
            self.put(id, now, value);
        }
    }

    /// How many there have ever been.
    pub fn ever(&self) -> usize {
        self.versions.len()
    }

    /// The resources on AWS, as far as they were read.
    pub fn all(&self) -> Vec<T> {
        self.versions.values().filter_map(|past| past.last()?.1.clone()).collect()
    }

    /// The resources that a read shows.
    pub(crate) fn at(&self, then: Then<'_>) -> Vec<T> {
        let shown = |(id, past): (&String, &Vec<(u64, Option<T>)>)| {
            let found = past.iter().rev().find(|(since, _)| *since <= then.time)?.1.clone()?;
            (!then.hides(id)).then_some(found)
        };
        self.versions.iter().filter_map(shown).collect()
    }

    /// Whether it came into being after this time.
    pub(crate) fn is_younger(&self, id: &str, time: u64) -> bool {
        let first = self.versions.get(id).and_then(|past| past.first());
        first.is_some_and(|(since, _)| *since > time)
    }
}
