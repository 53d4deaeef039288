//! [`Buffered`]: lines that are held back for a while, so that one write takes many of them.

use std::io::Write;
use std::time::{Duration, Instant};

/// How much is held back, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffering {
    /// Bytes; 0 writes each line at once.
    pub size: usize,
    /// The oldest line is written after this time at the latest.
    pub longest: Duration,
}

/// A sink behind a buffer. What it writes are whole lines. A log that cannot be written has nobody
/// to tell.
pub(crate) struct Buffered<W> {
    sink: W,
    buffering: Buffering,
    held: Vec<u8>,
    /// When the oldest line that is held back has to go.
    due: Option<Instant>,
}

impl<W: Write> Buffered<W> {
    pub(crate) fn new(sink: W, buffering: Buffering) -> Self {
        Self { sink, buffering, held: Vec::new(), due: None }
    }

    /// When [`Buffered::flush`] is to be called, if no line comes before.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes a line: holds it back, or writes it with all before it.
    pub(crate) fn write(&mut self, line: &[u8]) {
        let Buffering { size, longest } = self.buffering;
        if self.held.len().saturating_add(line.len()) > size {
            self.flush();
        }
        if line.len() > size {
            self.sink.write_all(line).ok();
            return;
        }
        self.held.extend_from_slice(line);
        let now = Instant::now();
        if *self.due.get_or_insert_with(|| later(now, longest)) <= now {
            self.flush();
        }
    }

    /// Writes what is held back.
    pub(crate) fn flush(&mut self) {
        self.due = None;
        if !self.held.is_empty() {
            self.sink.write_all(&self.held).ok();
            self.held.clear();
        }
    }
}

/// An hour later where the clock does not reach.
fn later(now: Instant, by: Duration) -> Instant {
    now.checked_add(by).unwrap_or(now + Duration::from_secs(3600))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::MAX;

    /// Each write apart.
    #[derive(Default)]
    struct Writes(Vec<String>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.push(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn written(size: usize, longest: Duration, lines: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut buffered = Buffered::new(Writes::default(), Buffering { size, longest });
        for line in lines {
            buffered.write(line.as_bytes());
        }
        let before = buffered.sink.0.clone();
        buffered.flush();
        assert_eq!(buffered.due(), None, "nothing is left to be written");
        (before, buffered.sink.0)
    }

    #[test]
    fn without_a_size_each_line_is_written_at_once() {
        let (before, after) = written(0, LONG, &["one\n", "two\n"]);
        assert_eq!(before, ["one\n", "two\n"]);
        assert_eq!(after, before);
    }

    #[test]
    fn whole_lines_are_held_back_until_the_next_one_does_not_fit() {
        let (before, after) = written(8, LONG, &["one\n", "two\n", "three\n"]);
        assert_eq!(before, ["one\ntwo\n"]);
        assert_eq!(after, ["one\ntwo\n", "three\n"]);
    }

    #[test]
    fn a_line_longer_than_the_buffer_follows_those_before_it() {
        let (before, after) = written(8, LONG, &["one\n", "a long line\n", "two\n"]);
        assert_eq!(before, ["one\n", "a long line\n"]);
        assert_eq!(after, ["one\n", "a long line\n", "two\n"]);
    }

    #[test]
    fn lines_go_when_the_oldest_is_due_however_many_follow() {
        let (before, _) = written(100, Duration::ZERO, &["one\n", "two\n"]);
        assert_eq!(before, ["one\n", "two\n"]);
        let mut buffered = Buffered::new(Writes::default(), Buffering { size: 100, longest: LONG });
        buffered.write(b"one\n");
        let due = buffered.due();
        buffered.write(b"two\n");
        assert_eq!(buffered.due(), due, "it is that of the first");
    }
}
