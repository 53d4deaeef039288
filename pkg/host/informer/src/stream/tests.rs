use proptest::prelude::*;

use super::*;

#[tokio::test]
async fn a_body_as_long_as_the_limit_is_read_whole_and_a_longer_one_is_refused() {
    for length in [0, 4] {
        let read = collect(Body::from(vec![b'x'; length]), 4).await.unwrap();
        assert_eq!(read.len(), length);
    }
    for length in [5, 9] {
        let refused = collect(Body::from(vec![b'x'; length]), 4).await;
        assert!(matches!(refused, Err(Fault::PageTooLong(4))), "{length} bytes");
    }
}

/// The lines of a body that arrives in these frames, and what is left without an end.
fn split<'a>(frames: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Vec<u8>) {
    let (mut splitter, mut lines) = (LineSplitter::default(), Vec::new());
    for frame in frames {
        splitter.push(Bytes::copy_from_slice(frame));
        while let Some(line) = splitter.next_line().unwrap() {
            lines.push(line.to_vec());
        }
    }
    (lines, splitter.held)
}

#[test]
fn a_body_cut_anywhere_gives_the_same_lines() {
    let body = b"{\"type\":\"ADDED\"}\n\n{}\nlast\nunfinished";
    let (want, _) = split([&body[..]]);
    assert_eq!(want, [&b"{\"type\":\"ADDED\"}"[..], b"", b"{}", b"last"]);
    for first in 0..=body.len() {
        for second in first..=body.len() {
            let (lines, left) = split([&body[..first], &body[first..second], &body[second..]]);
            assert_eq!(lines, want, "cut at {first} and {second}");
            assert_eq!(left, b"unfinished");
        }
    }
    let (lines, left) = split(body.chunks(1));
    assert_eq!((lines, left), (want, b"unfinished".to_vec()));
}

proptest! {
    #[test]
    fn any_lines_survive_any_frames(
        lines in prop::collection::vec("[a-z{}\" ]{0,40}", 0..20),
        sizes in prop::collection::vec(1_usize..50, 1..20),
    ) {
        let body: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        let mut rest = body.as_bytes();
        let mut frames = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (frame, more) = rest.split_at((*size).min(rest.len()));
            frames.push(frame);
            rest = more;
        }
        let (found, left) = split(frames);
        let found: Vec<String> = found.into_iter().map(|l| String::from_utf8(l).unwrap()).collect();
        prop_assert_eq!(found, lines);
        prop_assert!(left.is_empty());
    }
}

#[test]
fn a_line_inside_one_frame_is_not_copied() {
    let frame = Bytes::from_static(b"one\ntwo\n");
    let mut splitter = LineSplitter::default();
    splitter.push(frame.clone());
    for at in [0, 4] {
        let line = splitter.next_line().unwrap().unwrap();
        assert_eq!(line.as_ptr(), frame[at..].as_ptr());
    }
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    let mut splitter = LineSplitter::default();
    let frame = Bytes::from(vec![b'x'; 1 << 20]);
    let refused = (0..64).find_map(|_| {
        splitter.push(frame.clone());
        splitter.next_line().err()
    });
    assert!(matches!(refused, Some(Fault::MessageTooLong(LONGEST_MESSAGE))));
    assert!(splitter.held.len() <= LONGEST_MESSAGE + frame.len());
}

#[test]
fn the_longest_message_is_taken_and_one_byte_more_is_not() {
    let mut splitter = LineSplitter::default();
    splitter.push(Bytes::from(vec![b'x'; LONGEST_MESSAGE]));
    assert!(matches!(splitter.next_line(), Ok(None)));
    splitter.push(Bytes::from_static(b"x"));
    assert!(matches!(splitter.next_line(), Err(Fault::MessageTooLong(_))));
}

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
