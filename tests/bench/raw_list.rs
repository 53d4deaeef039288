//! The raw limit of a start: all Nodes read and thrown away. No allocator may assign a block before every
//! block in use is known, so no first assignment comes sooner.

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use memchr::memmem::Finder;

use crate::api::Api;

const PROTOBUF_STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// The list is the beginning of a watch, as the product's; in one answer it takes the server longer.
const PATH: &str = "/api/v1/nodes?watch=true&sendInitialEvents=true&allowWatchBookmarks=true\
                    &resourceVersionMatch=NotOlderThan";
/// An annotation of the bookmark behind the last Node.
const LIST_END: &[u8] = b"k8s.io/initial-events-end";

/// Reads all Nodes, in protobuf.
pub(crate) async fn read(api: &Api) -> anyhow::Result<()> {
    read_as(api, PROTOBUF_STREAM).await
}

/// Reads all Nodes in the encoding of this media type.
pub(crate) async fn read_as(api: &Api, media_type: &'static str) -> anyhow::Result<()> {
    let reply = api.clone().accepting(media_type).stream(Method::GET, PATH, None).await?;
    anyhow::ensure!(reply.status().is_success(), "GET {PATH} was answered {}", reply.status());
    let (mut body, mut search) = (reply.into_body(), Search::new(LIST_END));
    while let Some(frame) = body.frame().await {
        if frame?.into_data().is_ok_and(|data| search.finds(&data)) {
            return Ok(());
        }
    }
    anyhow::bail!("the list of Nodes broke off")
}

/// Looks for a text in a body, wherever its frames are cut.
struct Search<'a> {
    wanted: Finder<'a>,
    /// The end of what came before, too short to hold the text.
    tail: Vec<u8>,
}

impl<'a> Search<'a> {
    fn new(wanted: &'a [u8]) -> Self {
        Self { wanted: Finder::new(wanted), tail: Vec::new() }
    }

    fn finds(&mut self, frame: &Bytes) -> bool {
        let length = self.wanted.needle().len();
        self.tail.extend_from_slice(&frame[..frame.len().min(length)]);
        let holds = |bytes: &[u8]| self.wanted.find(bytes).is_some();
        let found = holds(&self.tail) || holds(frame);
        let keep = length - 1;
        if frame.len() > length {
            self.tail.clear();
            self.tail.extend_from_slice(&frame[frame.len() - keep..]);
        } else {
            self.tail.drain(..self.tail.len().saturating_sub(keep));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_list_is_found_wherever_its_frames_are_cut() {
        let body = b"xxk8s.io/initial-events-endyy";
        for one in 0..=body.len() {
            for two in one..=body.len() {
                let mut search = Search::new(LIST_END);
                let frames = [&body[..one], &body[one..two], &body[two..]];
                let found = frames.map(|frame| search.finds(&Bytes::copy_from_slice(frame)));
                assert_eq!(found.into_iter().filter(|found| *found).count(), 1, "{one}, {two}");
            }
        }
        assert!(!Search::new(LIST_END).finds(&Bytes::from_static(b"k8s.io/initial-events")));
    }
}
