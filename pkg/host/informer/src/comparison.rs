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
    /// Sum of [`digest`] over all objects.
    sum: u64,
    /// All objects are compared, not only their number.
    all: bool,
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
            sum: cache.digest(),
            all,
        })
    }

    /// Asks the server. Returns whether all objects were compared; [`Fault::Untrusted`] when they
    /// differ, another fault when the server did not answer. The number of objects is a hint only
    /// (kine#271 counts two for any collection), so another number has all objects compared.
    pub(crate) async fn ask(self, shared: &Shared, collection: &Collection) -> Result<bool, Fault> {
        let metadata = collection.metadata();
        if !self.all {
            let request = metadata.page_at(self.version, 1)?;
            let (encoding, body) = stream::fetch(shared.client(), request, LONGEST_PAGE).await?;
            let page: Page<Metadata> = decode::page(encoding, &body)?;
            let counted = match (&page.next, page.remaining) {
                (Some(_), None) => None,
                (_, remaining) => Some(page.items.len() as u64 + remaining.unwrap_or_default()),
            };
            let is_equal = counted.is_none_or(|counted| counted == self.objects);
            if page.version != self.version || is_equal {
                return Ok(false);
            }
        }
        let mut request = metadata.page_at(self.version, PAGE)?;
        let (mut objects, mut sum) = (0, 0_u64);
        loop {
            let (encoding, body) = stream::fetch(shared.client(), request, LONGEST_PAGE).await?;
            let page: Page<Metadata> = decode::page(encoding, &body)?;
            if page.version != self.version {
                return Ok(false);
            }
            objects += page.items.len() as u64;
            sum = page.items.iter().fold(sum, |sum, object| sum.wrapping_add(digest(object)));
            let Some(token) = page.next else { break };
            request = metadata.page(PAGE, Some(&token), FirstList::Consistent)?;
        }
        let (version, shown) = (self.version, self.objects);
        let breach = if objects != shown {
            format!(
                "it showed {shown} objects up to resource version {version}, and there were {objects}"
            )
        } else if self.sum != sum {
            format!("it did not show all changes up to resource version {version}")
        } else {
            return Ok(true);
        };
        Err(Fault::Untrusted { resource: shared.resource.clone(), breach })
    }
}
