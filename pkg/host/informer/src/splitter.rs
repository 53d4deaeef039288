//! Cuts a body that arrives in frames into messages, without copying one that lies in one frame: lines
//! for JSON; for protobuf a length of four bytes, highest first, before each message.

use bytes::Bytes;
use memchr::memchr;

use crate::fault::Fault;
use crate::request::Encoding;

/// Usage: push a frame, take messages until `None`, push the next frame.
pub(crate) enum Splitter {
    Lines(LineSplitter),
    Messages(MessageSplitter),
}

impl Splitter {
    pub(crate) fn of(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Json => Self::Lines(LineSplitter::default()),
            Encoding::Protobuf => Self::Messages(MessageSplitter::default()),
        }
    }

    /// Takes the next frame. All messages of the one before must have been taken.
    pub(crate) fn push(&mut self, frame: Bytes) {
        match self {
            Self::Lines(lines) => lines.push(frame),
            Self::Messages(messages) => messages.push(frame),
        }
    }

    /// The next whole message; `None` when more input is needed.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Fault> {
        match self {
            Self::Lines(lines) => lines.next_line(),
            Self::Messages(messages) => messages.next_message(),
        }
    }
}

/// Usage: push a frame, take lines until `None`, push the next frame.
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

const PREFIX: usize = 4;

/// Does not copy a message that lies in one frame.
#[derive(Default)]
pub(crate) struct MessageSplitter {
    frame: Bytes,
    /// Where the next message starts in `frame`.
    at: usize,
    /// Start of a message whose end has not come, its prefix included; keeps its allocation.
    held: Vec<u8>,
    /// `held` has been handed out as a whole message.
    spent: bool,
}

impl MessageSplitter {
    pub(crate) fn push(&mut self, frame: Bytes) {
        self.frame = frame;
        self.at = 0;
    }

    pub(crate) fn next_message(&mut self) -> Result<Option<&[u8]>, Fault> {
        if self.spent {
            self.held.clear();
            self.spent = false;
        }
        if self.held.is_empty() {
            let rest = &self.frame[self.at..];
            if let Some(length) = length_of(rest)?
                && rest.len() >= length
            {
                let start = self.at + PREFIX;
                self.at += length;
                return Ok(Some(&self.frame[start..self.at]));
            }
        }
        // First the prefix is completed, then what it announces.
        self.hold_until(PREFIX);
        let Some(length) = length_of(&self.held)? else { return Ok(None) };
        self.hold_until(length);
        if self.held.len() < length {
            return Ok(None);
        }
        self.spent = true;
        Ok(Some(&self.held[PREFIX..]))
    }

    /// Moves bytes from the frame until `length` are held or the frame is used up.
    fn hold_until(&mut self, length: usize) {
        let wanted = length.saturating_sub(self.held.len());
        let taken = wanted.min(self.frame.len() - self.at);
        self.held.extend_from_slice(&self.frame[self.at..self.at + taken]);
        self.at += taken;
    }
}

/// Length of the message with its prefix, once the prefix is there.
fn length_of(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let Some(prefix) = bytes.first_chunk::<PREFIX>() else { return Ok(None) };
    match usize::try_from(u32::from_be_bytes(*prefix)) {
        Ok(length) if length <= LONGEST_MESSAGE => Ok(Some(PREFIX + length)),
        _ => Err(Fault::MessageTooLong(LONGEST_MESSAGE)),
    }
}

/// Longest message. No object is larger: etcd takes 1.5 MiB, and JSON can be a few times its stored form.
pub(crate) const LONGEST_MESSAGE: usize = 32 << 20;

#[cfg(test)]
mod tests;
