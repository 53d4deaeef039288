use std::sync::mpsc::{Sender, channel};

use super::*;
use crate::buffered::Buffering;

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
fn a_log_that_nobody_reads_delays_nobody_and_its_losses_are_told() {
    const LINES: u64 = 10_000;
    let (queue, permit, lines) = queue(10);
    // The reader has no permit yet: who waited for it would wait for ever.
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
    // Without an end of its own it would wait for ever.
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
