//! Handlers subscribe, leave and read while changes are delivered on another thread.

use std::sync::{Arc, Mutex};

use shuttle::thread::{JoinHandle, spawn};

use crate::object::Object;
use crate::store::Store;
use crate::subscribers::{Delta, Membership, Session};

/// Versions of the object: before a change, and after.
type Change = (Option<u64>, Option<u64>);

/// All changes of the object, from nothing to version 4.
const HISTORY: [Change; 4] =
    [(None, Some(1)), (Some(1), Some(2)), (Some(2), None), (None, Some(4))];

type Log = Arc<Mutex<Vec<Change>>>;

/// A handler that notes each change; the last version that it knows is the version of the store.
fn subscribe(store: &Store<Object>) -> (Membership, Log) {
    let log = Log::default();
    let notes = Arc::clone(&log);
    let handler = move |delta: Delta<'_, Object>| {
        notes.lock().unwrap().push(match delta {
            Delta::Added(new) => (None, Some(new.version)),
            Delta::Updated { old, new } => (Some(old.version), Some(new.version)),
            Delta::Deleted(_) => (Some(2), None),
            Delta::ListStarts | Delta::ListEnds => unreachable!("there is no list"),
        });
    };
    (store.subscribe(Box::new(handler), Session::new()), log)
}

fn deliver(store: &Arc<Store<Object>>) -> JoinHandle<()> {
    let store = Arc::clone(store);
    spawn(move || {
        store.upsert(Object::new("a", 1));
        store.upsert(Object::new("a", 2));
        store.remove(Object::new("a", 3));
        store.upsert(Object::new("a", 4));
    })
}

/// Whenever a handler subscribes, it gets the object as it is, and then each later change once.
pub fn a_handler_that_subscribes_during_deliveries_misses_no_change() {
    crate::run("C7", "informer: 4 changes, 2 handlers that subscribe", || {
        let store = Arc::new(Store::new("objects".into()));
        let informer = deliver(&store);
        let handlers = [(); 2].map(|()| {
            let store = Arc::clone(&store);
            spawn(move || subscribe(&store))
        });
        informer.join().unwrap();
        for handler in handlers {
            let (_membership, log) = handler.join().unwrap();
            let log = log.lock().unwrap();
            let first = HISTORY.iter().position(|change| change.1 == log[0].1).unwrap();
            assert_eq!((log[0].0, &log[1..]), (None, &HISTORY[first + 1..]), "{log:?}");
        }
    });
}

/// A frozen reader finds what has been delivered, and nothing else.
pub fn a_frozen_reader_stands_between_two_changes() {
    crate::run("C7", "informer: 4 changes, 1 handler, 2 frozen readers", || {
        let store = Arc::new(Store::new("objects".into()));
        let (_membership, log) = subscribe(&store);
        let informer = deliver(&store);
        let read = || {
            store.frozen(|objects| {
                let known = objects.get("a").map(|object| object.version);
                let told = log.lock().unwrap().last().and_then(|change| change.1);
                assert_eq!(known, told, "known and told");
            });
        };
        read();
        read();
        informer.join().unwrap();
    });
}

/// Once a handler has left, no delivery that begins later calls it.
pub fn a_handler_that_left_gets_no_later_change() {
    crate::run("C7", "informer: 5 changes, 1 handler that leaves", || {
        let store = Arc::new(Store::new("objects".into()));
        let (membership, log) = subscribe(&store);
        let informer = deliver(&store);
        membership.leave();
        store.sweep();
        // Takes the dispatch lock, and so waits for a delivery that is under way.
        store.frozen(|_| ());
        let before = log.lock().unwrap().len();
        informer.join().unwrap();
        store.upsert(Object::new("a", 5));
        assert_eq!(log.lock().unwrap().len(), before, "called after it left");
        assert_eq!(Arc::strong_count(&log), 1, "the handler is still there");
    });
}
