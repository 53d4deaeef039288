//! A handler leaves while a change is delivered on another thread.

use std::sync::Arc;

use loom::thread::spawn;

use crate::object::Object;
use crate::store::Store;
use crate::subscribers::Session;

/// Its memory is freed at once, or by the next delivery.
pub fn a_handler_that_leaves_during_a_delivery_is_freed_before_the_next() {
    crate::explore("C7", "2 deliveries, 1 handler that leaves", || {
        let store = Arc::new(Store::new("objects".into()));
        let held = Arc::new(());
        let kept = Arc::clone(&held);
        let handler = move |_: crate::subscribers::Delta<'_, Object>| drop(Arc::clone(&kept));
        let membership = store.subscribe(Box::new(handler), Session::new());
        let informer = Arc::clone(&store);
        let informer = spawn(move || informer.upsert(Object::new("a", 1)));
        membership.leave();
        store.sweep();
        informer.join().unwrap();
        store.upsert(Object::new("a", 2));
        assert_eq!(Arc::strong_count(&held), 1, "the handler is still there");
    });
}
