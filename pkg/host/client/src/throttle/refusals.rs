//! Whether the server refuses most of a client's requests by 429, or only one now and then
//! (`rule:many-429s-stop-the-bucket`). Kept by the bucket.
//!
//! Answers that a young client has not had yet count as granted: one 429 among its first answers
//! says nothing, and whoever met it waits by himself.

/// Requests that are looked back on: as many as node-ipam has in flight at most.
const WINDOW: u32 = u64::BITS;

/// The last answers of one client.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// A bit per answer, the newest lowest; set for a 429.
    last: u64,
}

impl Refusals {
    /// Notes an answer; true when more than half of the last ones were refusals.
    pub(super) fn note(&mut self, refused: bool) -> bool {
        self.last = self.last << 1 | u64::from(refused);
        self.last.count_ones() * 2 > WINDOW
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_server_that_refuses_from_the_start_refuses_most_after_half_a_window() {
        let mut refusals = Refusals::default();
        let most: Vec<bool> = (0..64).map(|_| refusals.note(true)).collect();
        assert_eq!(most.iter().position(|most| *most), Some(32));
    }

    #[test]
    fn one_refusal_among_many_answers_is_not_most() {
        let mut refusals = Refusals::default();
        for _ in 0..1_000 {
            assert!(!refusals.note(false));
        }
        assert!(!refusals.note(true));
    }

    proptest! {
        #[test]
        fn most_means_more_than_half_of_the_last_sixty_four(answers in prop::collection::vec(any::<bool>(), 0..300)) {
            let (mut refusals, mut last) = (Refusals::default(), VecDeque::from([false; 64]));
            for refused in answers {
                last.push_back(refused);
                last.pop_front();
                let most = last.iter().filter(|refused| **refused).count() > 32;
                prop_assert_eq!(refusals.note(refused), most);
            }
        }
    }
}
