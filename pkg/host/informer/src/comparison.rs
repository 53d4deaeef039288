//! [`Comparison`] of the store with the objects that the server had at the same version. A watch that
//! skipped an event shows nothing of it, so without a comparison the store would be wrong until the
//! next list, which nothing bounds.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use kube_api::{Cached, Metadata};

use crate::decode;
use crate::fault::Fault;
use crate::intake::{Intake, Page};
use crate::request::Collection;
use crate::shared::Shared;
use crate::source::FirstList;
use crate::stream::{self, LONGEST_PAGE};

/// Time after which all objects are compared, at the next end of a watch: within an hour.
pub(crate) const ALL_APART: Duration = Duration::from_secs(50 * 60);
/// Objects per page.
const PAGE: usize = 500;

/// What the store holds between two watches.
pub(crate) struct Comparison {
    version: u64,
    objects: u64,
    /// Sum of [`digest`] over all objects; without it only their number is compared.
    sum: Option<u64>,
}

/// Hash of what distinguishes two states of a collection.
pub(crate) fn digest<T: Cached>(object: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    (object.key(), object.uid(), object.resource_version()).hash(&mut hasher);
    hasher.finish()
}

impl Comparison {
    /// Notes what the store holds; `None` when it cannot be compared with what the server counts.
    pub(crate) fn of(cache: &dyn Intake, all: bool) -> Option<Self> {
        let (shared, source) = (cache.shared(), &cache.shared().source);
        let is_counted = source.labels.is_none() && source.fields.is_none();
        // Objects that cannot be read may be missing in the store.
        let is_comparable = (all || is_counted) && shared.unreadables.is_empty();
        is_comparable.then(|| Self {
            version: shared.version(),
            objects: cache.len() as u64,
            sum: all.then(|| cache.digest()),
        })
    }

    /// Asks the server. Returns whether all objects were compared; [`Fault::Untrusted`] when they
    /// differ, another fault when the server did not answer.
    pub(crate) async fn ask(self, shared: &Shared, collection: &Collection) -> Result<bool, Fault> {
        let metadata = collection.metadata();
        let limit = if self.sum.is_some() { PAGE } else { 1 };
        let mut request = metadata.page_at(self.version, limit)?;
        let (mut objects, mut sum) = (0, 0_u64);
        loop {
            let (encoding, body) = stream::fetch(shared.client(), request, LONGEST_PAGE).await?;
            let page: Page<Metadata> = decode::page(encoding, &body)?;
            if page.version != self.version {
                return Ok(false);
            }
            objects += page.items.len() as u64;
            sum = page.items.iter().fold(sum, |sum, object| sum.wrapping_add(digest(object)));
            match (page.next, self.sum, page.remaining) {
                (None, ..) => break,
                (Some(token), Some(_), _) => {
                    request = metadata.page(PAGE, Some(&token), FirstList::Consistent)?;
                }
                (Some(_), None, Some(remaining)) => {
                    objects += remaining;
                    break;
                }
                (Some(_), None, None) => return Ok(false),
            }
        }
        let (version, shown) = (self.version, self.objects);
        let breach = if objects != shown {
            format!(
                "it showed {shown} objects up to resource version {version}, and there were {objects}"
            )
        } else if self.sum.is_some_and(|ours| ours != sum) {
            format!("it did not show all changes up to resource version {version}")
        } else {
            return Ok(self.sum.is_some());
        };
        Err(Fault::Untrusted { resource: shared.resource.clone(), breach })
    }
}
