//! Cuts a body that arrives in frames into lines, without copying a line that lies in one frame.

use bytes::Bytes;
use memchr::memchr;

use crate::fault::Fault;
use crate::limits::LONGEST_MESSAGE;

/// Give it a frame, take lines until there is none, give it the next.
#[derive(Default)]
pub(crate) struct LineSplitter {
    frame: Bytes,
    /// Where the next line starts in `frame`.
    at: usize,
    /// Start of a line whose end has not come; keeps its allocation from line to line.
    held: Vec<u8>,
    /// `held` has been handed out as a whole line.
    spent: bool,
}

impl LineSplitter {
    /// Takes the next frame. All lines of the one before must have been taken.
    pub(crate) fn push(&mut self, frame: Bytes) {
        debug_assert!(self.frame[self.at..].iter().all(|byte| *byte != b'\n'), "lines are left");
        self.frame = frame;
        self.at = 0;
    }

    /// The next whole line without its newline; `None` when more input is needed.
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, Fault> {
        if self.spent {
            self.held.clear();
            self.spent = false;
        }
        let Some(length) = memchr(b'\n', &self.frame[self.at..]) else {
            self.hold_rest();
            return if self.held.len() > LONGEST_MESSAGE {
                Err(Fault::MessageTooLong(LONGEST_MESSAGE))
            } else {
                Ok(None)
            };
        };
        let line = &self.frame[self.at..self.at + length];
        self.at += length + 1;
        if self.held.is_empty() {
            return Ok(Some(line));
        }
        self.held.extend_from_slice(line);
        self.spent = true;
        Ok(Some(&self.held))
    }

    fn hold_rest(&mut self) {
        self.held.extend_from_slice(&self.frame[self.at..]);
        self.push(Bytes::new());
    }
}

#[cfg(test)]
mod tests;
