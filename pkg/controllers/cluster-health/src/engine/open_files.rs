//! [`OpenFiles`]: whether this process may open as many files as its clusters can need.

use rustix::process::{Resource, getrlimit};
use tracing::warn;

/// What is open beside the connections to clusters.
const OTHERS: u64 = 1024;

/// Told once, each time that the clusters become too many.
#[derive(Default)]
pub(crate) struct OpenFiles {
    too_few: bool,
}

impl OpenFiles {
    /// Follows the number of clusters.
    pub(crate) fn follow(&mut self, clusters: usize) {
        // None is no limit.
        let Some(limit) = getrlimit(Resource::Nofile).current else { return };
        let needed = needed(clusters);
        let too_few = limit < needed;
        if too_few && !self.too_few {
            warn!(
                limit,
                needed,
                clusters,
                "The process may open too few files: with every cluster silent there are some that it cannot probe; raise the hard limit (LimitNOFILE, ulimit -Hn)"
            );
        }
        self.too_few = too_few;
    }
}

/// A connection that is kept for each cluster, and one that is being opened.
fn needed(clusters: usize) -> u64 {
    u64::try_from(clusters).unwrap_or(u64::MAX).saturating_mul(2).saturating_add(OTHERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_clusters_for_the_limit_are_noticed_until_they_are_fewer() {
        let mut files = OpenFiles::default();
        files.follow(usize::MAX);
        let limited = getrlimit(Resource::Nofile).current.is_some();
        assert_eq!(files.too_few, limited);
        files.follow(0);
        assert!(!files.too_few || getrlimit(Resource::Nofile).current < Some(OTHERS));
        assert_eq!(needed(10_000), 21_024);
    }
}
