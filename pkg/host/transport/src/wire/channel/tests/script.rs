//! [`Script`]: a server that says frame by frame what a test wants (RFC 9113, 4.1).

use super::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RESET: u8 = 3;
const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// Flags: of DATA and HEADERS, of HEADERS, of PING.
pub(super) const LAST: u8 = 1;
const WHOLE: u8 = 4;
const ANSWER: u8 = 1;

/// Status 200 in HPACK.
const OK: [u8; 1] = [0x88];

pub(super) struct Script(DuplexStream);

#[derive(Debug)]
pub(super) struct Seen {
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl Script {
    /// Allows `streams` at a time.
    pub(super) async fn open(streams: u32) -> (Arc<Channel>, Self) {
        let (ours, theirs) = duplex(1 << 20);
        let channel = Channel::open(ours, Load::default()).await.unwrap();
        let mut script = Self(theirs);
        script.0.read_exact(&mut [0; 24]).await.unwrap();
        let mut settings = vec![0, 3];
        settings.extend(streams.to_be_bytes());
        script.say(SETTINGS, 0, 0, &settings).await;
        (Arc::new(channel), script)
    }

    pub(super) async fn say(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).await.unwrap();
    }

    /// The headers of an answer; `flags`: 0 or [`LAST`].
    pub(super) async fn answer(&mut self, stream: u32, flags: u8) {
        self.say(HEADERS, WHOLE | flags, stream, &OK).await;
    }

    pub(super) async fn reset(&mut self, stream: u32, reason: Reason) {
        self.say(RESET, 0, stream, &u32::from(reason).to_be_bytes()).await;
    }

    pub(super) async fn go_away(&mut self, last: u32, reason: Reason) {
        let payload = [last.to_be_bytes(), u32::from(reason).to_be_bytes()].concat();
        self.say(GOAWAY, 0, 0, &payload).await;
    }

    pub(super) async fn pong(&mut self, ping: &Seen) {
        self.say(PING, ANSWER, 0, &ping.payload).await;
    }

    /// The next frame of this kind.
    pub(super) async fn hear(&mut self, kind: u8) -> Seen {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.0.read_exact(&mut payload).await.unwrap();
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            if head[3] == kind {
                return Seen { stream, payload };
            }
        }
    }
}
