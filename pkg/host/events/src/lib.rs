//! Kubernetes Events: recorded by controllers without waiting, written by workers in the
//! background.
//!
//! `cmd` calls [`start`] once per component and passes the [`Recorder`] on; at shutdown it calls
//! [`Broadcaster::flush`]. The contract is client-go's, with two
//! differences: equal events are one Event under every leader, so `kubectl describe` shows the true
//! count and first time; and the spam filter counts each reason for itself, so a frequent reason does
//! not silence a rare one.
//!
//! - [`Recorder::event`] never blocks. At most 1000 events wait; more are dropped and counted in
//!   `icm_event_dropped_total{reason}`, as is every other event that is not written.
//! - Equal events are one Event with a count, whoever leads; ten or more similar ones within ten minutes are
//!   folded into one; a source gets 25 at once and one per five minutes for each object, type and
//!   reason.
//! - Events of one object are written in order. One that cannot be written delays those of a
//!   quarter of the objects, for a minute at most.
//! - Every event is logged as well, before any of this.
//!
//! The files, pure ones first: `object` (identity), `correlate` (counts, folding, spam), `deliver`
//! (workers, I/O and retries), `recorder`.

mod correlate;
mod deliver;
mod metrics;
mod object;
mod recorder;

pub use self::metrics::EventMetrics;
pub use object::{EventType, ObjectRef};
pub use recorder::{Broadcaster, Recorder, start};
