//! [`SecretCache`]: the metadata of Secrets, which tells when a credential changed.

use std::sync::Arc;
use std::time::Duration;

use informer::{Delta, Informer, Subscription};
use kube_api::Metadata;
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::secret_data::ReadError;

/// How long a worker waits for the first list.
const LISTED_WITHIN: Duration = Duration::from_secs(2);

/// The metadata of Secrets, watched from when the first of them is needed.
pub(crate) struct SecretCache {
    begin: Box<dyn Fn() -> Informer<Metadata> + Send + Sync>,
    changed: Arc<dyn Fn(&str) + Send + Sync>,
    cache: Mutex<Option<(Informer<Metadata>, Subscription<Metadata>)>>,
}

impl SecretCache {
    /// `begin` starts the watch; `changed` is called with the key of each Secret that changes.
    pub(crate) fn new(
        begin: impl Fn() -> Informer<Metadata> + Send + Sync + 'static,
        changed: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self { begin: Box::new(begin), changed: Arc::new(changed), cache: Mutex::default() }
    }

    /// The version of a Secret; `None` when there is none. Waits a moment for the first list, and no
    /// longer: clusters that need no Secret must not wait for Secrets that cannot be listed.
    pub(crate) async fn version(&self, key: &str) -> Result<Option<u64>, ReadError> {
        let cache = self.cache();
        if !cache.is_synced() {
            let denied = cache.denied();
            let listed = match denied {
                None => timeout(LISTED_WITHIN, cache.synced()).await.is_ok(),
                Some(_) => false,
            };
            if !listed {
                let why = denied.or_else(|| cache.denied());
                let why = why.unwrap_or_else(|| "they are not listed yet".to_owned());
                return Err(ReadError::Unlisted(why));
            }
        }
        Ok(cache.get(key).map(|secret| secret.resource_version))
    }

    /// The cache, whose watch begins now at the latest.
    pub(crate) fn cache(&self) -> Informer<Metadata> {
        let mut cache = self.cache.lock();
        let (informer, _) = cache.get_or_insert_with(|| {
            let informer = (self.begin)();
            let changed = Arc::clone(&self.changed);
            let subscription = informer.subscribe(move |delta| match delta {
                Delta::Added(secret)
                | Delta::Deleted(secret)
                | Delta::Updated { new: secret, .. } => changed(&secret.key),
                Delta::ListStarts | Delta::ListEnds => {}
            });
            (informer, subscription)
        });
        informer.clone()
    }
}
