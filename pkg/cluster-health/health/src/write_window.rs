//! [`WriteWindow`]: how many status writes may be under way, by the answers of the API server.
//!
//! The API server limits requests by its own priority and fairness, and says with 429 that they are
//! too many. Each 429 halves the window, at most once per round trip; each round trip without one
//! widens it by one. A server that refuses even single writes is left alone for as long as it asks.

use std::time::{Duration, Instant};

use crate::Written;

/// The places of the writes under way.
#[derive(Debug)]
pub struct WriteWindow {
    most: u32,
    /// Between 1 and `most`.
    width: u32,
    /// Writes that the server took since the width changed.
    taken: u32,
    under_way: u32,
    /// When the width was halved last: refusals of writes that were sent before say nothing new.
    narrowed: Option<Instant>,
    /// The server refused a write that was the only one.
    closed_until: Option<Instant>,
}

impl WriteWindow {
    /// A window of `most` places.
    pub fn new(most: u32) -> Self {
        let most = most.max(1);
        Self { most, width: most, taken: 0, under_way: 0, narrowed: None, closed_until: None }
    }

    /// Takes a place; [`WriteWindow::end`] or [`WriteWindow::give_back`] must follow.
    ///
    /// # Errors
    /// There is no place: until this time, or until another write ends.
    pub fn begin(&mut self, now: Instant) -> Result<(), Option<Instant>> {
        if let Some(until) = self.closed_until.filter(|until| *until > now) {
            return Err(Some(until));
        }
        if self.under_way >= self.width {
            return Err(None);
        }
        self.under_way += 1;
        Ok(())
    }

    /// Gives back a place for which there was no write.
    pub fn give_back(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// A write that was sent at `sent` has ended.
    pub fn end(&mut self, written: Written, sent: Instant, now: Instant) {
        self.give_back();
        match written {
            Written::Throttled { retry_after } => self.narrow(retry_after, sent, now),
            Written::Done | Written::Conflict | Written::Gone => self.widen(),
            // It may have had no answer at all.
            Written::Failed => {}
        }
    }

    fn widen(&mut self) {
        self.taken += 1;
        if self.taken >= self.width {
            (self.width, self.taken) = ((self.width + 1).min(self.most), 0);
        }
    }

    fn narrow(&mut self, retry_after: Duration, sent: Instant, now: Instant) {
        if self.narrowed.is_some_and(|narrowed| sent < narrowed) {
            return;
        }
        self.narrowed = Some(now);
        if self.width == 1 {
            self.closed_until = Some(now + retry_after);
        }
        (self.width, self.taken) = ((self.width / 2).max(1), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const THROTTLED: Written = Written::Throttled { retry_after: Duration::from_secs(1) };

    /// Takes all places there are.
    fn fill(window: &mut WriteWindow, now: Instant) -> u32 {
        let taken = std::iter::from_fn(|| window.begin(now).ok()).count();
        u32::try_from(taken).expect("there are few")
    }

    #[test]
    fn a_burst_of_refusals_halves_the_window_once() {
        let (mut window, start) = (WriteWindow::new(64), Instant::now());
        assert_eq!(fill(&mut window, start), 64);
        for _ in 0..64 {
            window.end(THROTTLED, start, start + MS(10));
        }
        assert_eq!(fill(&mut window, start + MS(10)), 32);
        window.end(THROTTLED, start + MS(10), start + MS(20));
        assert_eq!(window.begin(start + MS(20)), Err(None), "31 are under way, 16 are allowed");
    }

    #[test]
    fn each_round_trip_without_a_refusal_widens_the_window_by_one_up_to_the_limit() {
        let (mut window, mut now) = (WriteWindow::new(8), Instant::now());
        window.begin(now).unwrap();
        window.end(THROTTLED, now, now);
        for width in [4, 5, 6, 7, 8, 8] {
            assert_eq!(fill(&mut window, now), width);
            now += MS(10);
            (0..width).for_each(|_| window.end(Written::Done, now, now));
        }
        // A lost answer says nothing about the load.
        fill(&mut window, now);
        window.end(THROTTLED, now, now);
        (0..7).for_each(|_| window.end(Written::Failed, now, now));
        assert_eq!(fill(&mut window, now), 4);
    }

    #[test]
    fn a_server_that_refuses_single_writes_is_left_alone_for_as_long_as_it_asks() {
        let (mut window, now) = (WriteWindow::new(2), Instant::now());
        for _ in 0..2 {
            window.begin(now).unwrap();
            window.end(THROTTLED, now, now);
        }
        let until = now + Duration::from_secs(1);
        assert_eq!(window.begin(now + MS(999)), Err(Some(until)));
        assert_eq!(fill(&mut window, until), 1);
    }

    #[test]
    fn a_place_without_a_write_is_given_back() {
        let (mut window, now) = (WriteWindow::new(1), Instant::now());
        window.begin(now).unwrap();
        assert_eq!(window.begin(now), Err(None));
        window.give_back();
        assert_eq!(window.begin(now), Ok(()));
    }
}
