//! The elector gives and takes the rights of a leader; the watchdog and writers read them. Connection, fence and the end
//! of the attempt compete for the body of one write.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::client::Body;
use loom::thread::spawn;

use crate::fence::{BootInstant, ClockReading, Fence};
use crate::request::{Progress, Reach};
use crate::term::Term;

const SECOND: Duration = Duration::from_secs(1);
const EPOCH: u64 = 1_700_000_000;

/// Both clocks, so many seconds after the start of the machine.
fn clocks(seconds: u64) -> ClockReading {
    let nanos = |seconds: u64| seconds * 1_000_000_000;
    ClockReading { boot: BootInstant::from_nanos(nanos(seconds)), wall: nanos(EPOCH + seconds) }
}

fn now() -> ClockReading {
    clocks(9)
}

/// A term whose elector renews it twice, each time for 5 s of writes, and then gives it up.
fn led(then: fn(&Term)) -> (Arc<Term>, Fence, impl FnOnce() + Send + 'static) {
    let fence = Fence::closed_by(now);
    let term = Arc::new(Term::new(&fence));
    let led = Arc::clone(&term);
    let lead = move || {
        led.grant(clocks(5), 6 * SECOND, 5 * SECOND);
        led.grant(clocks(8), 6 * SECOND, 5 * SECOND);
        then(&led);
    };
    (term, fence, lead)
}

/// A writer that finds the fence open finds a limit, or that the fence has closed since
/// (`rule:fence-closes-before-the-lease-ends`).
pub fn a_write_leaves_only_while_the_watchdog_has_a_limit() {
    crate::explore("C5", "elector, writer: 2 renewals, release", || {
        let (term, fence, lead) = led(Term::withdraw);
        let elector = spawn(lead);
        let left = fence.remaining();
        assert!([0, 1, 4].map(|seconds| seconds * SECOND).contains(&left), "{left:?}");
        if !left.is_zero() && !term.is_limited() {
            assert_eq!(fence.remaining(), Duration::ZERO, "open, and nothing ends the process");
        }
        elector.join().unwrap();
        assert!(fence.check().is_err());
    });
}

/// A watchdog that stops because the limit has gone finds the fence closed.
pub fn a_limit_ends_only_behind_a_closed_fence() {
    crate::explore("C5", "elector, watchdog: 2 renewals, release", || {
        let (term, fence, lead) = led(Term::withdraw);
        let elector = spawn(lead);
        if term.is_limited() && !term.is_limited() {
            assert!(fence.check().is_err(), "open, and nothing ends the process");
        }
        elector.join().unwrap();
        assert!(!term.is_limited());
    });
}

/// The watchdog always finds the limit of a leader, and of one that lost the lease.
pub fn a_lost_term_ends_the_process_in_time() {
    crate::explore("C5", "elector, watchdog: 2 renewals, loss", || {
        let (term, fence, lead) = led(|term| term.forfeit(Duration::ZERO));
        let elector = spawn(lead);
        let was_limited = term.is_limited();
        assert!(!was_limited || term.is_limited(), "the limit of a leader has gone");
        elector.join().unwrap();
        assert!(term.overdue(clocks(14).boot) && fence.check().is_err());
    });
}

/// Whoever is told that a write was not sent is right: the connection does not get its body any more.
pub fn a_body_is_taken_refused_or_given_up_once() {
    crate::explore("C3, C5", "connection, fence, end of the attempt", || {
        let request = Request::patch("/").body(Body::empty()).unwrap();
        let progress = Arc::new(Progress::new(&request, None));
        let (connection, fence) = (Arc::clone(&progress), Arc::clone(&progress));
        let connection = spawn(move || connection.take_body(Duration::from_secs(1)));
        let fence = spawn(move || fence.refuse_body());
        let reach = progress.end();
        let is_settled = progress.settled_at().is_some();
        let is_taken = connection.join().unwrap();
        fence.join().unwrap();
        match reach {
            Reach::NotSent | Reach::Refused => {
                assert!(!is_taken, "sent, and the caller knows {reach:?}");
            }
            Reach::MayHaveLeft(until) => {
                assert!(is_taken && until.is_some() && is_settled, "{until:?}");
            }
        }
        assert_eq!(progress.end(), reach, "the outcome changes");
    });
}
