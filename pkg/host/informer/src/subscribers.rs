//! Who is told of changes: handlers that panic or leave are dropped, the others go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use resilience::panics::contain_call;
use tracing::error;

use crate::{Delta, Session};

pub(crate) type Handler<T> = Box<dyn Fn(Delta<'_, T>) + Send + Sync>;

/// All handlers of one store.
pub(crate) struct Subscribers<T> {
    resource: Arc<str>,
    all: Vec<Subscriber<T>>,
}

/// Who reads `left` stops telling this handler.
#[derive(Clone, Default)]
pub(crate) struct Membership {
    left: Arc<AtomicBool>,
}

struct Subscriber<T> {
    handler: Handler<T>,
    membership: Membership,
    session: Session,
}

impl Membership {
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::Release);
    }

    fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }
}

impl<T> Subscribers<T> {
    pub(crate) fn new(resource: Arc<str>) -> Self {
        Self { resource, all: Vec::new() }
    }

    /// Adds a handler and tells it of what is there already.
    pub(crate) fn add<'a>(
        &mut self,
        handler: Handler<T>,
        session: Session,
        there: impl IntoIterator<Item = &'a Arc<T>>,
    ) -> Membership
    where
        T: 'a,
    {
        let membership = Membership::default();
        let subscriber = Subscriber { handler, membership: membership.clone(), session };
        for object in there {
            subscriber.tell(&self.resource, Delta::Added(object));
        }
        self.all.push(subscriber);
        membership
    }

    /// Tells everybody, one after the other.
    pub(crate) fn tell<'a>(&self, delta: impl Fn() -> Delta<'a, T>)
    where
        T: 'a,
    {
        for subscriber in &self.all {
            subscriber.tell(&self.resource, delta());
        }
    }

    /// Forgets those who have left.
    pub(crate) fn sweep(&mut self) {
        self.all.retain(|subscriber| !subscriber.membership.has_left());
    }

    /// Forgets everybody and ends their sessions.
    pub(crate) fn end(&mut self, end: impl Fn(&Session)) {
        for subscriber in self.all.drain(..) {
            subscriber.membership.leave();
            end(&subscriber.session);
        }
    }
}

impl<T> Subscriber<T> {
    fn tell(&self, resource: &str, delta: Delta<'_, T>) {
        if self.membership.has_left() {
            return;
        }
        // A handler that panicked is not called again, so nothing torn is seen.
        if let Err(panic) = contain_call(|| (self.handler)(delta)) {
            self.membership.leave();
            error!(logger = "informer", resource, %panic, "A handler panicked; its user starts anew");
            let cause = format!("a handler of changes of {resource} panicked: {panic}");
            self.session.end_by_panic(cause);
        }
    }
}
