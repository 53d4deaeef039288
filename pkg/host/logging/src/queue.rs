//! Between those who log and the descriptor that lines go to: a bounded queue and one thread, so
//! that no thread ever waits for a slow reader of the log (rule:logging-never-blocks).
//!
//! [`crate::install`] starts it over standard error. What does not fit is dropped and counted, and
//! the count is a line of its own as soon as lines pass again.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait: some megabytes, and more than any start-up writes at once.
const CAPACITY: usize = 4096;

/// How long [`LogQueue::flush`] waits for a reader.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

enum Entry {
    Line(Box<[u8]>),
    /// All entries before it are written when this is answered.
    Flush(SyncSender<()>),
}

/// The queue; clones are the same one.
#[derive(Clone)]
pub(crate) struct LogQueue {
    entries: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
}

impl LogQueue {
    /// Starts the thread that writes to `sink`; `notice` makes the line about dropped ones.
    pub(crate) fn start(
        sink: Buffered<impl Write + Send + 'static>,
        notice: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<Self> {
        Self::with_capacity(CAPACITY, sink, notice)
    }

    fn with_capacity(
        capacity: usize,
        sink: Buffered<impl Write + Send + 'static>,
        notice: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let (entries, inbox) = sync_channel(capacity);
        let dropped = Arc::new(AtomicU64::new(0));
        let count = dropped.clone();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(&inbox, sink, &count, notice))?;
        Ok(Self { entries, dropped })
    }

    fn push(&self, line: &[u8]) {
        if self.entries.try_send(Entry::Line(line.into())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until the queued lines are written, or a time limit has passed.
    pub(crate) fn flush(&self) {
        let deadline = Instant::now() + FLUSH_LIMIT;
        let (written, done) = sync_channel(1);
        let mut entry = Entry::Flush(written);
        while let Err(TrySendError::Full(again)) = self.entries.try_send(entry) {
            if Instant::now() >= deadline {
                return;
            }
            entry = again;
            thread::sleep(Duration::from_millis(5)); // the queue has no signal for free space
        }
        // Late or never: the process ends all the same.
        done.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
    }
}

/// Writes until every queue handle is gone.
fn write_all(
    inbox: &Receiver<Entry>,
    mut sink: Buffered<impl Write>,
    dropped: &AtomicU64,
    notice: impl Fn(u64) -> String,
) {
    loop {
        let next = match sink.due() {
            None => inbox.recv().map_err(RecvTimeoutError::from),
            Some(due) => inbox.recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            sink.write(notice(lost).as_bytes());
        }
        match next {
            Ok(Entry::Line(line)) => sink.write(&line),
            Ok(Entry::Flush(done)) => {
                sink.flush();
                done.try_send(()).ok();
            }
            Err(RecvTimeoutError::Timeout) => sink.flush(),
            Err(RecvTimeoutError::Disconnected) => return sink.flush(),
        }
    }
}

/// One write is one line.
pub(crate) struct QueueWriter<'a>(&'a LogQueue);

impl Write for QueueWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = QueueWriter<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        QueueWriter(self)
    }
}

/// How much is held back, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffering {
    /// Bytes; 0 writes each line at once.
    pub size: usize,
    /// The oldest line is written after this time at the latest.
    pub longest: Duration,
}

/// A sink behind a buffer. It writes whole lines and ignores errors: a failure to write the log cannot
/// be logged.
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

    /// Latest time at which [`Buffered::flush`] must be called, if no line comes before.
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
mod tests;
