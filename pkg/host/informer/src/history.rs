//! Tells a server that lags behind from one whose history went back, as after a restore of etcd
//! (rule:history-that-goes-back). Pure.

use std::time::Duration;

/// So many lists that agree are the truth.
const AGREEING: u32 = 3;
/// After this time without a word that was believed, a second list is believed.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// What is made of a list's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As new as what is known.
    Current,
    /// Older, perhaps from a server that lags behind: not to be applied.
    Past,
    /// Older, and the truth: what was known before is void.
    Restored,
}

/// The lists from the past so far.
#[derive(Debug, Default)]
pub(crate) struct History {
    agreeing: u32,
    /// Version of the last of them.
    last: u64,
}

impl History {
    /// Judges a consistent list; `silent` is the time since the last word that was believed.
    pub(crate) fn judge(&mut self, listed: u64, known: u64, silent: Duration) -> Verdict {
        if listed >= known {
            *self = Self::default();
            return Verdict::Current;
        }
        // One that is older than the last comes from another server: they do not agree.
        self.agreeing = if listed >= self.last { self.agreeing + 1 } else { 1 };
        self.last = listed;
        if self.agreeing >= AGREEING || (self.agreeing > 1 && silent >= SILENCE) {
            *self = Self::default();
            return Verdict::Restored;
        }
        Verdict::Past
    }

    /// A list from the past came last: copies of that version may differ from those known.
    pub(crate) fn is_doubted(&self) -> bool {
        self.agreeing > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn judge(history: &mut History, listed: &[u64], known: u64) -> Vec<Verdict> {
        listed.iter().map(|listed| history.judge(*listed, known, SOON)).collect()
    }

    #[test]
    fn three_lists_in_a_row_that_do_not_go_back_are_believed() {
        use Verdict::{Current, Past, Restored};
        for (listed, verdicts) in [
            (&[10, 11][..], &[Current, Current][..]),
            (&[5, 5, 5], &[Past, Past, Restored]),
            (&[5, 6, 9], &[Past, Past, Restored]),
            (&[5, 6, 10, 5, 6, 7], &[Past, Past, Current, Past, Past, Restored]),
            (&[5, 4, 5, 6], &[Past, Past, Past, Restored]),
            (&[9, 8, 7, 6, 5], &[Past; 5]),
        ] {
            assert_eq!(judge(&mut History::default(), listed, 10), verdicts, "{listed:?}");
        }
    }

    #[test]
    fn after_a_quarter_of_an_hour_of_silence_the_second_list_is_believed() {
        let long = Duration::from_secs(900);
        let mut history = History::default();
        assert_eq!(history.judge(5, 10, long), Verdict::Past);
        assert!(history.is_doubted());
        assert_eq!(history.judge(5, 10, long), Verdict::Restored);
        assert!(!history.is_doubted());
        assert_eq!(history.judge(5, 10, long), Verdict::Past);
        assert_eq!(history.judge(5, 10, SOON), Verdict::Past);
    }
}
