//! [`MemoryBudget`]: bounds the memory of all reviews that are under way.

use http::StatusCode;
use serving::{Reply, reply};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// Largest memory of one JSON value: an object with one field is a tree node.
const VALUE: usize = 768;
const UNIT: usize = 1024;
/// Largest memory of a usual request, in units: typically a few hundred.
const USUAL: u32 = 4 * 1024;
/// In units, for all usual requests and for all others.
const FOR_USUAL: u32 = 32 * 1024;
const FOR_LARGE: u32 = 224 * 1024;
/// Reviews at once, whatever their size: each holds a list of the stored objects that it is judged by, of 8 bytes for
/// each of them.
const REVIEWS: usize = 256;

/// A few bytes of JSON can take a hundred times as much memory once they are parsed, so the size of a
/// request is estimated before that. Large requests have a budget of their own: one that waits for it
/// does not delay usual ones.
pub(super) struct MemoryBudget {
    reviews: Semaphore,
    usual: Semaphore,
    large: Semaphore,
}

/// The memory reserved for one request, until it is dropped.
#[derive(Debug)]
pub(super) struct Reserved<'a> {
    _review: SemaphorePermit<'a>,
    _memory: SemaphorePermit<'a>,
}

/// Why no memory can be reserved for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverBudget {
    /// Other requests have reserved it.
    Taken,
    /// The request needs more than the whole budget.
    TooLarge,
}

impl OverBudget {
    pub(super) fn reply(self) -> Reply {
        match self {
            Self::Taken => reply::failure(
                StatusCode::TOO_MANY_REQUESTS,
                "TooManyRequests",
                "too many or too large objects are reviewed at once; try again",
            ),
            Self::TooLarge => reply::failure(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestEntityTooLarge",
                "the object has too many fields to be reviewed; make it smaller",
            ),
        }
    }
}

impl MemoryBudget {
    pub(super) fn new() -> Self {
        let [usual, large] = [FOR_USUAL, FOR_LARGE].map(|units| Semaphore::new(units as usize));
        Self { reviews: Semaphore::new(REVIEWS), usual, large }
    }

    /// Reserves memory for a request and waits for it until `end`.
    ///
    /// # Errors
    /// Other requests hold it until `end`, or the request needs more than the whole budget.
    pub(super) async fn reserve(
        &self,
        body: &[u8],
        end: Instant,
    ) -> Result<Reserved<'_>, OverBudget> {
        let units = u32::try_from(weight(body) / UNIT + 1).ok();
        let units = units.filter(|&units| units <= FOR_LARGE).ok_or(OverBudget::TooLarge)?;
        let memory = if units <= USUAL { &self.usual } else { &self.large };
        let both = async {
            let memory = memory.acquire_many(units).await.ok()?;
            Some(Reserved { _review: self.reviews.acquire().await.ok()?, _memory: memory })
        };
        timeout_at(end, both).await.ok().flatten().ok_or(OverBudget::Taken)
    }
}

/// Largest memory of a body. Each value but the first one begins after one of these signs.
fn weight(body: &[u8]) -> usize {
    let values = body.iter().filter(|byte| matches!(byte, b'{' | b'[' | b',')).count();
    values.saturating_mul(VALUE).saturating_add(body.len())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_comes_to_more_than_there_is_room_for_waits_or_is_not_read() {
        let memory = MemoryBudget::new();
        let end = Instant::now() + Duration::from_secs(8);
        let nested = |count: usize| [r#"{"a":0},"#.repeat(count), "{}".to_owned()].concat();
        assert!(memory.reserve(b"{}", end).await.is_ok());
        let never = memory.reserve(nested(200_000).as_bytes(), end).await.unwrap_err();
        assert_eq!(never.reply().status(), 413, "to try again does not help");
        let most = nested(150_000);
        let held = memory.reserve(most.as_bytes(), end).await.unwrap();
        let waiting = async { memory.reserve(most.as_bytes(), end).await.unwrap_err() };
        let usual = async {
            tokio::task::yield_now().await;
            assert!(memory.reserve(b"{}", end).await.is_ok());
            assert!(Instant::now() < end, "it does not wait behind a large one");
        };
        let (late, ()) = tokio::join!(waiting, usual);
        assert_eq!(late.reply().status(), 429);
        assert_eq!(Instant::now(), end, "it has waited");
        drop(held);
        assert!(memory.reserve(most.as_bytes(), end + Duration::from_secs(1)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn reviews_are_counted_whatever_their_size() {
        let memory = MemoryBudget::new();
        let end = Instant::now() + Duration::from_secs(8);
        let mut held = Vec::new();
        for _ in 0..REVIEWS {
            held.push(memory.reserve(b"{}", end).await.ok().unwrap());
        }
        assert_eq!(memory.reserve(b"{}", end).await.err(), Some(OverBudget::Taken));
        held.pop();
        assert!(memory.reserve(b"{}", end + Duration::from_secs(1)).await.is_ok());
    }
}
