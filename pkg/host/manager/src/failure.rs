//! [`Failure`]: why a controller ended; [`retry`]: what a failed write means to the key that is worked
//! on.

use std::error::Error;
use std::time::Duration;

use objects::Why;
use resilience::panics::Panic;
use workqueue::{Retry, TooManyPanics};

use crate::clients::ClientError;

/// Nothing could be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A mistake of ours: two parts share the name of a metric.
    #[error("cannot register the metrics of the controllers: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The rate or the configuration of a client cannot be used.
    #[error("cannot make a client for the controllers: {0}")]
    Client(#[from] ClientError),
}

/// Why a controller ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A mistake of ours: two parts share the name of a metric.
    #[error("cannot register metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The rate or the configuration of a client cannot be used.
    #[error("cannot make a client: {0}")]
    Client(#[from] ClientError),
    /// The first list did not come.
    #[error("cannot start: the caches were not filled within {0:?}")]
    CachesNotFilled(Duration),
    /// Many keys panicked, so the state of the controller is not trusted any more.
    #[error(transparent)]
    TooManyPanics(#[from] TooManyPanics),
    /// The cached state of its informers is void.
    #[error("cached state is no longer valid, restarting the controller: {0}")]
    Void(String),
    /// The controller, or a task of it, panicked.
    #[error("cannot continue: it panicked: {0}")]
    Panicked(Panic),
    /// A reason of the controller's own.
    #[error(transparent)]
    Controller(Box<dyn Error + Send + Sync>),
}

impl Failure {
    /// A reason of the controller's own.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Controller(reason.into())
    }
}

/// How a key is tried again whose write ended so. Conflicts and objects that are gone are expected:
/// the cache will show what is there now.
pub fn retry(error: objects::Error) -> Retry {
    let pause = error.retry_after();
    match &error.why {
        Why::Throttled { .. } => Retry::throttled(error, pause),
        Why::Conflict { .. } | Why::Gone | Why::Deleting | Why::Exists => Retry::expected(error),
        _ => Retry::new(error).at_least(pause.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn retried(why: Why) -> Retry {
        retry(objects::Error { verb: "change", object: "widgets ns/a".into(), why })
    }

    #[test]
    fn the_servers_wish_to_wait_is_no_failure_of_the_key() {
        let asked = Some(Duration::from_secs(7));
        let throttled = retried(Why::Throttled { retry_after: asked });
        assert!(throttled.is_throttled());
        assert_eq!(throttled.pause(), Duration::from_secs(7));
        for nothing in [None, Some(Duration::ZERO)] {
            let throttled = retried(Why::Throttled { retry_after: nothing });
            assert_eq!(throttled.pause(), Duration::from_secs(1), "not at once without end");
        }
    }

    #[test]
    fn an_open_attempt_is_a_failure_that_still_waits_as_the_server_asked() {
        let last = Box::new(Why::Throttled { retry_after: Some(Duration::from_secs(7)) });
        let open = retried(Why::Open { last, settled_at: None });
        assert!(!open.is_throttled());
        assert_eq!(open.pause(), Duration::from_secs(7));
    }
}
