//! [`PathMemory`]: which health path a server knows.

use std::time::{Duration, Instant};

use crate::ProbePath;

/// How often a server that knew no `/readyz` is asked for it again: it may have been upgraded.
const ASK_AGAIN: Duration = Duration::from_secs(3600);

/// The health path that worked last, kept beside the client of a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathMemory {
    /// Since when `/healthz` stands in for `/readyz`.
    healthz_since: Option<Instant>,
}

impl PathMemory {
    /// The path to ask for first.
    pub fn path(&self, now: Instant) -> ProbePath {
        match self.healthz_since {
            Some(since) if now.saturating_duration_since(since) < ASK_AGAIN => ProbePath::Healthz,
            _ => ProbePath::Readyz,
        }
    }

    /// Remembers that the server answered at `path`.
    pub fn note(&mut self, path: ProbePath, now: Instant) {
        match path {
            ProbePath::Readyz => self.healthz_since = None,
            ProbePath::Healthz if self.path(now) == ProbePath::Readyz => {
                self.healthz_since = Some(now);
            }
            ProbePath::Healthz | ProbePath::Namespaces => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readyz_is_asked_for_again_after_an_hour_of_healthz() {
        let (mut memory, start) = (PathMemory::default(), Instant::now());
        assert_eq!(memory.path(start), ProbePath::Readyz);
        memory.note(ProbePath::Healthz, start);
        let almost = start + Duration::from_secs(3599);
        memory.note(ProbePath::Healthz, almost);
        assert_eq!(memory.path(almost), ProbePath::Healthz);
        let later = start + ASK_AGAIN;
        assert_eq!(memory.path(later), ProbePath::Readyz);
        memory.note(ProbePath::Healthz, later);
        assert_eq!(memory.path(later + Duration::from_secs(1)), ProbePath::Healthz);
        memory.note(ProbePath::Readyz, later);
        assert_eq!(memory.path(later), ProbePath::Readyz);
    }
}
