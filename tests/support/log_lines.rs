//! The lines a child process has printed so far, and waiting for the next one that matters.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Lines read by a thread of its own, so that the child never blocks on a full pipe.
pub(crate) struct LogLines {
    lines: Arc<Mutex<Vec<String>>>,
    /// Number of lines; closed at end-of-file.
    count: watch::Receiver<usize>,
}

impl LogLines {
    pub(crate) fn follow(output: impl Read + Send + 'static) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (counter, count) = watch::channel(0);
        let sink = Arc::clone(&lines);
        std::thread::spawn(move || {
            // Not `lines()`: it ends at the first byte that is not UTF-8.
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                let mut sink = sink.lock();
                sink.push(String::from_utf8_lossy(&line).into_owned());
                counter.send_replace(sink.len());
            }
        });
        Self { lines, count }
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    pub(crate) fn any(&self, wanted: impl Fn(&str) -> bool) -> bool {
        self.lines.lock().iter().any(|line| wanted(line))
    }

    /// The first line at or after index `from` that satisfies `wanted`, with its index; waits for
    /// it. `None` when the output has ended without one.
    pub(crate) async fn find(
        &self,
        mut from: usize,
        wanted: impl Fn(&str) -> bool,
    ) -> Option<(usize, String)> {
        let mut count = self.count.clone();
        loop {
            count.mark_unchanged();
            {
                let lines = self.lines.lock();
                let mut rest = lines.iter().enumerate().skip(from);
                if let Some((index, line)) = rest.find(|(_, line)| wanted(line)) {
                    return Some((index, line.clone()));
                }
                from = lines.len();
            }
            // An error is end-of-file; what came last may not have been looked at yet.
            if count.changed().await.is_err() && self.lines.lock().len() == from {
                return None;
            }
        }
    }

    /// Waits for end-of-file.
    pub(crate) async fn ended(&self) {
        let mut count = self.count.clone();
        while count.changed().await.is_ok() {}
    }
}
