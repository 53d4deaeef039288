//! [`Silent`]: which addresses of a cluster gave no answer when they were last asked.

/// One bit for each address, of 64 at most. It outlives a probe: the address that answers is asked
/// first by the next one, which then learns nothing of the others
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Silent(u64);

impl Silent {
    /// Address number `endpoint` was asked.
    pub(crate) fn note(&mut self, endpoint: u8, answered: bool) {
        let bit = 1_u64 << (endpoint % 64);
        if answered {
            self.0 &= !bit;
        } else {
            self.0 |= bit;
        }
    }

    /// How many there are.
    pub(crate) fn count(self) -> u8 {
        u8::try_from(self.0.count_ones()).unwrap_or(u8::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_of_each_address_counts() {
        let mut silent = Silent::default();
        for (endpoint, answered, count) in [
            (0, false, 1),
            (63, false, 2),
            (0, false, 2),
            (1, true, 2),
            (0, true, 1),
            (63, true, 0),
        ] {
            silent.note(endpoint, answered);
            assert_eq!(silent.count(), count, "{endpoint} {answered}");
        }
    }
}
