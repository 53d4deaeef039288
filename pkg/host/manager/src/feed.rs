//! [`feed`]: what changes in a cache becomes work on a queue.

use informer::{Delta, Informer, Subscription};
use kube_api::Cached;
use workqueue::{Key, WorkQueue};

/// Adds the keys that `keys` names for an object whenever the object comes, changes or goes. Of one
/// that changes, its keys before are added too, so whoever it referred to hears that it does no
/// longer. Any number of caches may feed one queue; [`Run::feed`](crate::Run::feed) does this for a
/// run's own.
///
/// `keys` runs in the informer's task and must return at once. Who wants to hear of some changes
/// only subscribes by itself.
pub fn feed<T, K, I>(
    cache: &Informer<T>,
    queue: &WorkQueue<K>,
    keys: impl Fn(&T) -> I + Send + Sync + 'static,
) -> Subscription<T>
where
    T: Cached,
    K: Key,
    I: IntoIterator<Item = K>,
{
    let queue = queue.clone();
    cache.subscribe(move |delta| match delta {
        Delta::Added(object) | Delta::Deleted(object) => {
            for key in keys(object) {
                queue.add(key);
            }
        }
        Delta::Updated { old, new } => {
            let now: Vec<K> = keys(new).into_iter().collect();
            for key in keys(old).into_iter().filter(|key| !now.contains(key)) {
                queue.add(key);
            }
            for key in now {
                queue.add(key);
            }
        }
        Delta::ListStarts | Delta::ListEnds => {}
    })
}

#[cfg(test)]
mod tests;
