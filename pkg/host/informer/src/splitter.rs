//! Cuts a body that arrives in frames into the messages of its encoding.

use bytes::Bytes;

use crate::encoding::Encoding;
use crate::fault::Fault;
use crate::lines::LineSplitter;
use crate::messages::MessageSplitter;

/// Give it a frame, take messages until there is none, give it the next.
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
