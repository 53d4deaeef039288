//! [`Lifetime`]: until when a credential or a certificate is good, and when its end is told.

use jiff::Timestamp;

const DAY_SECONDS: i64 = 86_400;
/// Ends that are remembered: a cluster behind a balancer shows the certificates of all its servers
/// in turn.
const ENDS_MAX: usize = 8;

/// From when to when a credential or a certificate is good, as far as it says so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The first moment, where it is known.
    pub from: Option<Timestamp>,
    /// The last moment.
    pub to: Timestamp,
}

/// How near the end is; the nearer the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExpiryStage {
    /// The end is too far away for a notice.
    Far,
    /// Within 14 days.
    Fortnight,
    /// Within 7 days.
    Week,
    /// Within a day.
    Day,
    /// The end has passed.
    Over,
}

impl Lifetime {
    /// How near the end is at `now`. What lives for less than twice the time of a stage is renewed
    /// by a program, and does not reach that stage.
    pub fn stage(&self, now: Timestamp) -> ExpiryStage {
        let left = self.to.as_second().saturating_sub(now.as_second());
        if left <= 0 {
            return ExpiryStage::Over;
        }
        let whole = self.from.map(|from| self.to.as_second().saturating_sub(from.as_second()));
        let stages = [(ExpiryStage::Day, 1), (ExpiryStage::Week, 7), (ExpiryStage::Fortnight, 14)];
        let reached = stages.into_iter().find(|(_, days)| {
            let span = days * DAY_SECONDS;
            left <= span && whole.is_none_or(|whole| whole >= 2 * span)
        });
        reached.map_or(ExpiryStage::Far, |(stage, _)| stage)
    }

    /// The one of two that ends first.
    #[must_use]
    pub fn sooner(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        one.into_iter().chain(other).min_by_key(|lifetime| lifetime.to)
    }
}

/// Notices already sent about the ends of one cluster's credentials or certificates: each stage once.
#[derive(Clone, Debug, Default)]
pub struct ExpiryNotice {
    told: Vec<(Timestamp, ExpiryStage)>,
}

impl ExpiryNotice {
    /// Records the lifetime that is seen at `now`. Returns the stage to report, if it is a new
    /// one.
    pub fn note(&mut self, lifetime: Option<Lifetime>, now: Timestamp) -> Option<ExpiryStage> {
        let lifetime = lifetime?;
        let stage = lifetime.stage(now);
        let known = self.told.iter_mut().find(|(to, _)| *to == lifetime.to);
        match known {
            Some((_, told)) if *told >= stage => None,
            Some((_, told)) => {
                *told = stage;
                Some(stage)
            }
            None if stage == ExpiryStage::Far => None,
            None => {
                if self.told.len() == ENDS_MAX {
                    self.told.remove(0);
                }
                self.told.push((lifetime.to, stage));
                Some(stage)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn an_end_comes_nearer_in_stages_and_short_lives_skip_those_that_are_long_for_them() {
        use ExpiryStage::{Day, Far, Fortnight, Over, Week};
        const D: i64 = DAY_SECONDS;
        // (whole life in seconds, seconds left, stage)
        let rows = [
            (Some(365 * D), 14 * D + 1, Far),
            (Some(365 * D), 14 * D, Fortnight),
            (Some(365 * D), 7 * D + 1, Fortnight),
            (Some(365 * D), 7 * D, Week),
            (Some(365 * D), D + 1, Week),
            (Some(365 * D), D, Day),
            (Some(365 * D), 1, Day),
            (Some(365 * D), 0, Over),
            (Some(365 * D), -D, Over),
            (Some(28 * D), 14 * D, Fortnight),
            (Some(28 * D - 1), 14 * D, Far),
            (Some(28 * D - 1), 7 * D, Week),
            (Some(2 * D), D, Day),
            (Some(2 * D - 1), 60, Far),
            (Some(3600), 60, Far),
            (Some(3600), 0, Over),
            (None, 14 * D, Fortnight),
            (None, 60, Day),
        ];
        for (whole, left, stage) in rows {
            let end = 1_800_000_000;
            let lifetime = Lifetime { from: whole.map(|whole| at(end - whole)), to: at(end) };
            assert_eq!(lifetime.stage(at(end - left)), stage, "{whole:?} {left}");
        }
    }

    #[test]
    fn each_stage_of_each_end_is_told_once() {
        let day = |day: i64| at(day * DAY_SECONDS);
        let ending = |to: i64| Some(Lifetime { from: None, to: day(to) });
        let mut notice = ExpiryNotice::default();
        assert_eq!(notice.note(None, day(0)), None);
        assert_eq!(notice.note(ending(100), day(80)), None);
        assert_eq!(notice.note(ending(100), day(86)), Some(ExpiryStage::Fortnight));
        assert_eq!(notice.note(ending(100), day(87)), None);
        assert_eq!(notice.note(ending(100), day(99)), Some(ExpiryStage::Day));
        // Renewed, and later near its end again.
        assert_eq!(notice.note(ending(400), day(99)), None);
        assert_eq!(notice.note(ending(400), day(393)), Some(ExpiryStage::Week));
    }

    #[test]
    fn servers_with_certificates_of_their_own_behind_one_address_are_told_of_once_each() {
        let ending = |to: i64| Some(Lifetime { from: None, to: at(to) });
        let mut notice = ExpiryNotice::default();
        for round in 0..5 {
            for server in 0..3 {
                let told = notice.note(ending(1000 + server), at(500));
                assert_eq!(told.is_some(), round == 0, "round {round}, server {server}");
            }
        }
        for many in 0..100 {
            notice.note(ending(2000 + many), at(500));
        }
        assert!(notice.told.len() <= ENDS_MAX);
    }

    #[test]
    fn of_two_lifetimes_the_one_that_ends_first_counts() {
        let ending = |to: i64| Some(Lifetime { from: None, to: at(to) });
        assert_eq!(Lifetime::sooner(ending(2), ending(1)), ending(1));
        assert_eq!(Lifetime::sooner(None, ending(1)), ending(1));
        assert_eq!(Lifetime::sooner(None, None), None);
    }
}
