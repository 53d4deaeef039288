//! The users of an informer: handlers get each [`Delta`] in order, and a [`Session`] ends when what its
//! user has learnt is void. A handler that panics is dropped; the others go on.

use std::sync::{Arc, OnceLock};

use resilience::panics::contain_call;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::sync::{AtomicBool, Ordering};

pub(crate) type Handler<T> = Box<dyn Fn(Delta<'_, T>) + Send + Sync>;

/// All handlers of one store.
pub(crate) struct Subscribers<T> {
    resource: Arc<str>,
    all: Vec<Subscriber<T>>,
}

/// Subscription of a handler; once it has `left`, the handler gets no more deltas.
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
            subscriber.deliver(&self.resource, Delta::Added(object));
        }
        self.all.push(subscriber);
        membership
    }

    /// Tells everybody, one after the other.
    pub(crate) fn deliver<'a>(&self, delta: impl Fn() -> Delta<'a, T>)
    where
        T: 'a,
    {
        for subscriber in &self.all {
            subscriber.deliver(&self.resource, delta());
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
    fn deliver(&self, resource: &str, delta: Delta<'_, T>) {
        if self.membership.has_left() {
            return;
        }
        // A handler that panicked is not called again, so nothing torn is seen.
        if let Err(panic) = contain_call(|| (self.handler)(delta)) {
            self.membership.leave();
            error!(logger = "informer", resource, %panic, "A handler panicked; its controller is restarted");
            let cause = format!("a handler of changes of {resource} panicked: {panic}");
            self.session.end_by_panic(cause);
        }
    }
}

/// A change that the store already holds when the handler sees it.
#[derive(Debug)]
pub enum Delta<'a, T> {
    /// An object is new, or new to this handler.
    Added(&'a Arc<T>),
    /// An object has another resource version than before; or it is delivered once more
    /// ([`crate::Informer::redeliver`]), and both are the same.
    Updated {
        /// The object that the store held.
        old: &'a Arc<T>,
        /// The object that it holds now, under the same name and UID.
        new: &'a Arc<T>,
    },
    /// An object is gone, by itself or with its CRD, or has left the source's selection; this is
    /// its last known state. The store may hold its successor of the same name already, whose
    /// `Added` follows. A kind that is ours no longer ends sessions instead.
    Deleted(&'a Arc<T>),
    /// A list begins: the deltas up to [`Delta::ListEnds`] are the differences between the store and
    /// the list. Deletions come first, so until the end the changes seen show no moment that ever was.
    ListStarts,
    /// The changes seen show the list.
    ListEnds,
}

/// Ends when what its user has learnt is void: a handler of it panicked, the history of a
/// collection went back, or its kind is ours no longer. The user must then drop its handles and
/// start from nothing. Clones are the same session.
#[derive(Clone, Debug, Default)]
pub struct Session(Arc<State>);

#[derive(Debug, Default)]
struct State {
    ended: CancellationToken,
    end: OnceLock<End>,
}

#[derive(Debug)]
struct End {
    cause: String,
    by_panic: bool,
}

impl Session {
    /// A session that goes on until something ends it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends it; the first cause counts.
    pub(crate) fn end(&self, cause: impl Into<String>) {
        self.end_as(End { cause: cause.into(), by_panic: false });
    }

    /// Ends it because of a panic.
    pub(crate) fn end_by_panic(&self, cause: impl Into<String>) {
        self.end_as(End { cause: cause.into(), by_panic: true });
    }

    fn end_as(&self, end: End) {
        self.0.end.get_or_init(|| end);
        self.0.ended.cancel();
    }

    /// True from the end on.
    pub fn has_ended(&self) -> bool {
        self.0.ended.is_cancelled()
    }

    /// Waits for the end of the session and returns its cause.
    pub async fn ended(&self) -> &str {
        self.0.ended.cancelled().await;
        self.0.end.get().map_or("", |end| &end.cause)
    }

    /// True once it was ended by a panic.
    pub fn has_panicked(&self) -> bool {
        self.0.end.get().is_some_and(|end| end.by_panic)
    }
}
