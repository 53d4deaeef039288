//! [`Intake`]: a cache as its loop sees it, whatever the type of its objects. So the loop, with all
//! that it does about failures, is in the program once and not once for each type.

use std::sync::Arc;

use tokio::time::Instant;

use crate::encoding::{Accept, Encoding, Format};
use crate::fault::Fault;
use crate::message::{PageHead, Word};
use crate::shared::Shared;
use crate::source::FirstList;

pub(crate) trait Intake: Send + Sync {
    /// What does not depend on the type.
    fn shared(&self) -> &Shared;

    /// What the server is asked for.
    fn accept(&self, format: Format) -> Accept;

    /// Number of objects.
    fn len(&self) -> usize;

    /// Takes in a message of a watch.
    fn take(&self, encoding: Encoding, message: &[u8]) -> Result<Word, Fault>;

    /// Begins a list. Copies that are here may be used again if `reuse`.
    fn stage(&self, reuse: bool) -> Box<dyn Staging + '_>;

    /// The objects are gone, and handlers hear of it.
    fn clear(&self);

    /// The objects are not ours any more, and nobody is told that they were deleted.
    fn abandon(&self, cause: &str);
}

/// A list under way, kept apart from the cache until it is complete.
pub(crate) trait Staging: Send {
    /// Takes in a message of a streamed list.
    fn take(&mut self, encoding: Encoding, message: &[u8]) -> Result<Word, Fault>;

    /// Takes in a page.
    fn take_page(&mut self, encoding: Encoding, body: &[u8]) -> Result<PageHead, Fault>;

    /// The key of an object that the complete list shows at a version up to `known`, and that the
    /// store, which has followed everything up to there, does not have in that version.
    fn contradiction(&self, known: u64) -> Option<Arc<str>>;

    /// The list is complete, and the state of everything.
    fn apply(self: Box<Self>, version: u64, begun: Instant, truth: FirstList);

    /// The list is complete, and of another history (rule:history-that-goes-back).
    fn restart(self: Box<Self>, version: u64, begun: Instant);
}
