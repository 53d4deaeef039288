//! How much a busy machine adds to what takes time: a time that the product promises is judged
//! without it.
//!
//! A thread that sleeps for a moment, again and again, is woken late while others have the
//! processors. By as much as it is late, nothing of ours was in time either.

use std::ops::Range;
use std::sync::Once;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

const MOMENT: Duration = Duration::from_millis(5);

/// Times at which the thread was due and at which it was woken, in order.
static LATE: Mutex<Vec<Range<Instant>>> = parking_lot::const_mutex(Vec::new());

/// Begins to look; [`crate::child`] does so before the first child process. What was before is not
/// known, and not excused.
pub fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        std::thread::spawn(|| {
            loop {
                let due = Instant::now() + MOMENT;
                std::thread::sleep(MOMENT);
                LATE.lock().push(due..Instant::now());
            }
        });
    });
}

/// The time from one moment to another without what the machine was late in between.
pub fn without(from: Instant, to: Instant) -> Duration {
    to.saturating_duration_since(from).saturating_sub(lost(from, to))
}

/// How much the machine was late between two moments.
pub fn lost(from: Instant, to: Instant) -> Duration {
    lost_of(&(from..to), &LATE.lock())
}

fn lost_of(time: &Range<Instant>, late: &[Range<Instant>]) -> Duration {
    let first = late.partition_point(|stall| stall.end <= time.start);
    let within = late[first..].iter().take_while(|stall| stall.start < time.end);
    let lost = within.map(|stall| {
        let (from, to) = (stall.start.max(time.start), stall.end.min(time.end));
        to.saturating_duration_since(from)
    });
    lost.sum()
}

/// Tells how long something took that the product promises to do in a certain time.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts the measurement.
    pub fn start() -> Self {
        watch();
        Self(Instant::now())
    }

    /// Since then, [`without`] what the machine was late.
    pub fn elapsed(self) -> Duration {
        without(self.0, Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_was_late_as_far_as_its_stalls_were_within() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let late = [at(1)..at(2), at(4)..at(7), at(9)..at(12)];
        // (from, to, seconds)
        for (from, to, expected) in
            [(0, 1, 0), (0, 3, 1), (0, 20, 7), (5, 6, 1), (6, 10, 2), (2, 4, 0), (12, 15, 0)]
        {
            let lost = lost_of(&(at(from)..at(to)), &late).as_secs();
            assert_eq!(lost, expected, "from {from} to {to}");
        }
        assert_eq!(lost_of(&(at(12)..at(0)), &late), Duration::ZERO);
    }

    #[test]
    fn a_stopwatch_shows_time() {
        let watch = Stopwatch::start();
        while watch.elapsed().is_zero() {
            std::thread::sleep(MOMENT);
        }
    }
}
