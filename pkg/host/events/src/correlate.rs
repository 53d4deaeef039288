//! Decides what becomes of an event: created, counted on an earlier one, or dropped as spam.
//!
//! Used by [`crate::deliver`]; no I/O, time comes in as arguments. client-go's rules
//! (`k8s.io/client-go/tools/record`):
//!
//! 1. *Aggregation*: from the tenth distinct message within ten minutes for the same source,
//!    object, type and reason on, messages are folded into one event with a prefix.
//! 2. *De-duplication*: an event equal to an earlier one raises that one's count by a PATCH; the
//!    name and the first time are kept.
//! 3. *Spam filter*: a bucket per source, object, type and reason. Counting comes before it, so the
//!    next event that passes shows the true count.
//!
//! Source, reporting component and instance are those of the recorder, hence in no key here.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use resilience::{Lru, Rate, TokenBucket};
use tokio::time::Instant;

use crate::object::{EventType, ObjectRef, event_name, fingerprint};

/// Distinct messages from which on they are folded into one event.
const AGGREGATE_FROM: usize = 10;
/// A pause this long makes the messages before it forgotten.
const AGGREGATE_WITHIN: Duration = Duration::from_secs(600);
/// client-go's words, which tools and people search for.
const AGGREGATE_PREFIX: &str = "(combined from similar events): ";

/// One event as it was recorded.
#[derive(Debug, Clone)]
pub(crate) struct Emission {
    pub(crate) object: Arc<ObjectRef>,
    pub(crate) event_type: EventType,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// When it happened.
    pub(crate) time: Timestamp,
}

/// An Event as the server is to have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Observation {
    pub(crate) object: Arc<ObjectRef>,
    pub(crate) event_type: EventType,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) name: String,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    /// 1 for a new Event; more for one that exists, unless the server has forgotten it.
    pub(crate) count: u32,
    /// The event stands for events with other messages, too.
    pub(crate) folded: bool,
}

/// An Event that was there already, written by the leader before this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Earlier {
    /// With the one that was just counted.
    pub(crate) count: u32,
    /// When it happened for the first time.
    pub(crate) first: Option<Timestamp>,
}

/// Everything that makes two events similar.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Topic {
    object: Arc<ObjectRef>,
    event_type: EventType,
    reason: &'static str,
}

/// Similar events, and the message that makes them the same; `None` for the folded one.
type Identity = (Topic, Option<String>);

struct Messages {
    distinct: HashSet<String>,
    last: Instant,
}

struct Written {
    name: String,
    first: Timestamp,
    count: u32,
}

/// Memory of past events, in three bounded maps.
pub(crate) struct Correlator {
    component: &'static str,
    messages: Lru<Topic, Messages>,
    written: Lru<Identity, Written>,
    buckets: Lru<Topic, TokenBucket>,
}

impl Correlator {
    /// For the events of `component`; remembers at most `capacity` entries of each sort.
    pub(crate) fn new(component: &'static str, capacity: usize) -> Self {
        Self {
            component,
            messages: Lru::new(capacity),
            written: Lru::new(capacity),
            buckets: Lru::new(capacity),
        }
    }

    /// The event to write for `emission`, recorded at `now`; `None` when it is spam.
    pub(crate) fn observe(&mut self, emission: Emission, now: Instant) -> Option<Observation> {
        let Emission { object, event_type, reason, message, time } = emission;
        let topic = Topic { object: Arc::clone(&object), event_type, reason };
        let (message, identity) = self.aggregate(&topic, message, now);
        let folded = identity.1.is_none();
        let series =
            fingerprint(self.component, &object, event_type, reason, identity.1.as_deref());
        let name = || event_name(&object.name, series);
        let written =
            self.written.entry(&identity, || Written { name: name(), first: time, count: 0 });
        written.count = written.count.saturating_add(1);
        let observation = Observation {
            object,
            event_type,
            reason,
            message,
            name: written.name.clone(),
            first: written.first,
            last: time,
            count: written.count,
            folded,
        };
        let bucket = self.buckets.entry(&topic, || TokenBucket::new(SPAM_LIMIT, now));
        bucket.take(now).is_ok().then_some(observation)
    }

    /// Goes on with the series that an observation was found to continue.
    pub(crate) fn adopt(&mut self, observation: &Observation, earlier: Earlier) {
        let Observation { object, event_type, reason, message, name, first, folded, .. } =
            observation.clone();
        let topic = Topic { object, event_type, reason };
        let identity = (topic, (!folded).then_some(message));
        let written = self.written.entry(&identity, || Written { name, first, count: 0 });
        written.count = written.count.max(earlier.count);
        written.first = earlier.first.unwrap_or(first);
    }

    fn aggregate(&mut self, topic: &Topic, message: String, now: Instant) -> (String, Identity) {
        let fresh = || Messages { distinct: HashSet::new(), last: now };
        let seen = self.messages.entry(topic, fresh);
        if now.duration_since(seen.last) > AGGREGATE_WITHIN {
            seen.distinct.clear();
        }
        seen.last = now;
        if !seen.distinct.contains(&message) && seen.distinct.len() + 1 >= AGGREGATE_FROM {
            let identity = (topic.clone(), None);
            return (format!("{AGGREGATE_PREFIX}{message}"), identity);
        }
        seen.distinct.insert(message.clone());
        let identity = (topic.clone(), Some(message.clone()));
        (message, identity)
    }
}

/// client-go's numbers: 25 events at once, then one in five minutes. Unlike there each reason counts for
/// itself, so a frequent reason does not silence a rare one.
const SPAM_LIMIT: Rate = Rate { per_second: 1.0 / 300.0, burst: 25 };

#[cfg(test)]
mod tests;
