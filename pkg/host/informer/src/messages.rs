//! Cuts a protobuf stream: each message has its length before it, four bytes, highest first.

use bytes::Bytes;

use crate::fault::Fault;
use crate::limits::LONGEST_MESSAGE;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(messages: &[&[u8]]) -> Vec<u8> {
        let prefix = |message: &[u8]| u32::try_from(message.len()).unwrap().to_be_bytes();
        messages.iter().flat_map(|message| [&prefix(message)[..], message].concat()).collect()
    }

    fn read(frames: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut splitter, mut messages) = (MessageSplitter::default(), Vec::new());
        for frame in frames {
            splitter.push(Bytes::copy_from_slice(frame));
            while let Some(message) = splitter.next_message().unwrap() {
                messages.push(message.to_vec());
            }
        }
        messages
    }

    #[test]
    fn messages_come_out_whole_wherever_the_frames_are_cut() {
        let messages: [&[u8]; 5] = [b"first", b"", b"a longer third one", b"4", b"end"];
        let bytes = stream(&messages);
        for one in 0..=bytes.len() {
            for two in one..=bytes.len() {
                let frames = [&bytes[..one], &bytes[one..two], &bytes[two..]];
                assert_eq!(read(&frames), messages, "cut at {one} and {two}");
            }
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), messages);
    }

    #[test]
    fn an_unfinished_message_is_held_back() {
        assert!(read(&[&[0, 0, 0, 2, b'x']]).is_empty());
        assert!(read(&[&[0, 0]]).is_empty());
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_anything_is_held() {
        let announced = |length: usize| {
            let mut splitter = MessageSplitter::default();
            let prefix = u32::try_from(length).unwrap().to_be_bytes();
            splitter.push(Bytes::copy_from_slice(&prefix));
            splitter.next_message().map(|message| message.map(<[u8]>::len))
        };
        assert!(matches!(announced(LONGEST_MESSAGE), Ok(None)), "it is awaited");
        for length in [LONGEST_MESSAGE + 1, u32::MAX as usize] {
            assert!(matches!(announced(length), Err(Fault::MessageTooLong(_))), "{length}");
        }
    }
}
