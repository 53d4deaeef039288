//! Repeated warnings: one line per window, with a count of the others (rule:warnings-collapse).
//!
//! A state machine without clock or output. The window of a warning opens with the line written;
//! equal ones that follow are held back and counted. The count appears with the next equal warning
//! after the window, or with any other line, whichever comes first.

use std::collections::HashMap;
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(10);
/// Different warnings remembered at once. More than that are all written.
const MAX_REMEMBERED: usize = 512;

#[derive(Default)]
pub(crate) struct Collapse {
    windows: HashMap<Box<str>, Window>,
    /// No window ends before this.
    next: Option<Instant>,
}

struct Window {
    opened: Instant,
    held_back: u64,
}

impl Collapse {
    /// A warning that wants out. Returns how many equal ones were held back before it, or none
    /// when it is to be held back itself.
    pub(crate) fn offer(&mut self, tail: &str, now: Instant) -> Option<u64> {
        if let Some(window) = self.windows.get_mut(tail) {
            if now < window.opened + WINDOW {
                window.held_back += 1;
                return None;
            }
            window.opened = now;
            return Some(std::mem::take(&mut window.held_back));
        }
        if self.windows.len() < MAX_REMEMBERED {
            self.windows.insert(tail.into(), Window { opened: now, held_back: 0 });
            self.next.get_or_insert(now + WINDOW);
        }
        Some(0)
    }

    /// The warnings whose window has ended, with what each held back. Those that held nothing back
    /// are forgotten; for the others a new window opens.
    pub(crate) fn ended(&mut self, now: Instant) -> Vec<(Box<str>, u64)> {
        if self.next.is_none_or(|next| now < next) {
            return Vec::new();
        }
        self.windows.retain(|_, window| now < window.opened + WINDOW || window.held_back > 0);
        let mut counts = Vec::new();
        for (tail, window) in &mut self.windows {
            if now >= window.opened + WINDOW {
                window.opened = now;
                counts.push((tail.clone(), std::mem::take(&mut window.held_back)));
            }
        }
        self.next = self.windows.values().map(|window| window.opened + WINDOW).min();
        counts
    }

    /// Everything still held back; the memory is empty afterwards.
    pub(crate) fn drain(&mut self) -> Vec<(Box<str>, u64)> {
        self.next = None;
        let windows = self.windows.drain().filter(|(_, window)| window.held_back > 0);
        windows.map(|(tail, window)| (tail, window.held_back)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn one_line_per_window_with_the_count_on_the_next() {
        let (mut collapse, start) = (Collapse::default(), Instant::now());
        assert_eq!(collapse.offer("a", start), Some(0));
        for second in 1..10 {
            assert_eq!(collapse.offer("a", at(start, second)), None);
        }
        assert_eq!(collapse.offer("a", at(start, 10)), Some(9));
        assert_eq!(collapse.offer("a", at(start, 11)), None);
        assert_eq!(collapse.offer("a", at(start, 20)), Some(1));
    }

    #[test]
    fn different_warnings_do_not_hold_each_other_back() {
        let (mut collapse, start) = (Collapse::default(), Instant::now());
        assert_eq!(collapse.offer("a", start), Some(0));
        assert_eq!(collapse.offer("b", start), Some(0));
    }

    #[test]
    fn a_count_comes_out_when_the_warning_itself_never_returns() {
        let (mut collapse, start) = (Collapse::default(), Instant::now());
        collapse.offer("a", start);
        collapse.offer("a", at(start, 1));
        collapse.offer("quiet", at(start, 1));
        assert!(collapse.ended(at(start, 9)).is_empty());
        assert_eq!(collapse.ended(at(start, 12)), [("a".into(), 1)]);
        assert_eq!(collapse.offer("a", at(start, 13)), None, "the count opened a new window");
        assert_eq!(collapse.drain(), [("a".into(), 1)]);
        assert!(collapse.drain().is_empty());
    }

    #[test]
    fn memory_is_bounded_and_what_does_not_fit_is_written() {
        let (mut collapse, start) = (Collapse::default(), Instant::now());
        for warning in 0..2 * MAX_REMEMBERED {
            assert_eq!(collapse.offer(&warning.to_string(), start), Some(0));
        }
        assert_eq!(collapse.windows.len(), MAX_REMEMBERED);
        let unremembered = (2 * MAX_REMEMBERED - 1).to_string();
        assert_eq!(collapse.offer(&unremembered, start), Some(0));
        collapse.ended(at(start, 11));
        assert!(collapse.windows.is_empty(), "ended windows make room");
    }
}
