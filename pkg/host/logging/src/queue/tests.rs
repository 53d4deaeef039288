use std::sync::mpsc::{Sender, channel};

use super::*;
use crate::queue::Buffering;

/// A reader that takes one line per permit, as a full pipe does.
struct Slow {
    permits: Receiver<()>,
    written: Sender<String>,
}

impl Write for Slow {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.permits.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.written.send(String::from_utf8_lossy(line).into_owned()).ok();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn queue(capacity: usize) -> (LogQueue, Sender<()>, Receiver<String>) {
    buffering(capacity, Buffering::default())
}

fn buffering(capacity: usize, buffering: Buffering) -> (LogQueue, Sender<()>, Receiver<String>) {
    let (permit, permits) = channel();
    let (written, lines) = channel();
    let slow = Buffered::new(Slow { permits, written }, buffering);
    let queue = LogQueue::with_capacity(capacity, slow, |lost| format!("{lost} lost")).unwrap();
    (queue, permit, lines)
}

#[test]
fn lines_are_written_in_order_and_a_flush_waits_for_them() {
    let (queue, permit, lines) = queue(10);
    for line in ["a", "b", "c"] {
        queue.make_writer().write_all(line.as_bytes()).unwrap();
        permit.send(()).unwrap();
    }
    queue.flush();
    assert_eq!(lines.try_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn a_log_without_a_reader_delays_no_caller_and_its_losses_are_counted() {
    const LINES: u64 = 10_000;
    let (queue, permit, lines) = queue(10);
    // The reader has no permit yet: a writer that waited for it would wait without end.
    for _ in 0..LINES {
        queue.push(b"x");
    }
    assert!(lines.try_recv().is_err());
    drop((0..=LINES).map(|_| permit.send(())).collect::<Vec<_>>());
    queue.flush();
    queue.push(b"after");
    queue.flush();
    let written: Vec<String> = lines.try_iter().collect();
    let passed = u64::try_from(written.iter().filter(|line| *line == "x").count()).unwrap();
    let lost: u64 =
        written.iter().filter_map(|line| line.strip_suffix(" lost")?.parse::<u64>().ok()).sum();
    assert!((10..=19).contains(&passed), "{passed}");
    assert_eq!(passed + lost, LINES, "{written:?}");
}

#[test]
fn a_flush_gives_up_on_a_reader_that_never_reads() {
    let (queue, _permit, lines) = queue(2);
    for _ in 0..10 {
        queue.push(b"x");
    }
    // Without a time limit it would wait without end.
    queue.flush();
    assert!(lines.try_recv().is_err());
}

#[test]
fn lines_that_are_held_back_go_after_their_time_without_another_line() {
    let buffer = Buffering { size: 100, longest: Duration::from_millis(50) };
    let (queue, permit, lines) = buffering(10, buffer);
    queue.push(b"a");
    queue.push(b"b");
    permit.send(()).unwrap();
    assert!(lines.recv().unwrap().starts_with('a'));
}

#[test]
fn a_flush_and_the_end_of_the_queue_write_what_is_held_back() {
    let buffer = Buffering { size: 100, longest: Duration::MAX };
    let (queue, permit, lines) = buffering(10, buffer);
    permit.send(()).unwrap();
    permit.send(()).unwrap();
    queue.push(b"a");
    queue.push(b"b");
    queue.flush();
    assert_eq!(lines.try_iter().collect::<Vec<_>>(), ["ab"]);
    queue.push(b"c");
    drop(queue);
    assert_eq!(lines.recv().unwrap(), "c");
}

const LONG: Duration = Duration::MAX;

/// Records each write as a separate entry.
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
