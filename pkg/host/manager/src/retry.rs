//! [`retry`]: what a failed write of a whole object means to the key that is worked on.

use objects::{Error, Why};
use workqueue::Retry;

/// How a key is tried again whose write ended so. Conflicts and objects that are gone are expected:
/// the cache will show what is there now.
pub fn retry(error: Error) -> Retry {
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
        retry(Error { verb: "change", object: "widgets ns/a".into(), why })
    }

    #[test]
    fn the_servers_wish_to_wait_is_no_failure_of_the_key() {
        let asked = Some(Duration::from_secs(7));
        let throttled = retried(Why::Throttled { retry_after: asked });
        assert!(throttled.is_throttled());
        assert_eq!(throttled.pause(), Duration::from_secs(7));
        for nothing in [None, Some(Duration::ZERO)] {
            let throttled = retried(Why::Throttled { retry_after: nothing });
            assert_eq!(throttled.pause(), Duration::from_secs(1), "not at once, for ever");
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
