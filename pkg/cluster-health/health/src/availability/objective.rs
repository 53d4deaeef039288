//! [`Objective`]: the part of the time in which a cluster has to be well, and what is left of the rest,
//! its error budget. [`within_objective`]: the condition about both.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::record::{Record, Sums};
use crate::Status;

/// The least time observed for a verdict.
const OBSERVED_MIN: Duration = Duration::from_secs(86_400);
/// The whole window.
const WINDOW: Duration = Duration::from_secs(28 * 86_400);
/// A budget that is spent many times over says no more than one that is spent ten times over.
const BUDGET_LEFT_MIN: f64 = -10.0;

/// The percentage of the observed time, over 28 days, in which a cluster has to be well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective(f64);

impl Objective {
    /// An objective of this percentage; 0 means no objective.
    ///
    /// # Errors
    /// The number is out of range.
    pub fn new(percent: f64) -> Result<Option<Self>, String> {
        if percent == 0.0 {
            return Ok(None);
        }
        if (90.0..=99.999).contains(&percent) {
            return Ok(Some(Self(percent)));
        }
        Err(format!("{percent} is neither 0 nor between 90 and 99.999"))
    }

    /// The objective of this text, as `99.9`.
    ///
    /// # Errors
    /// The text is no number in the range.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let percent = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
        Self::new(percent)
    }

    /// The objective as a share.
    pub fn ratio(self) -> f64 {
        self.0 / 100.0
    }

    /// Bad time that the objective allows.
    fn budget(self, observed: Duration) -> Duration {
        observed.mul_f64(1.0 - self.ratio())
    }

    /// The part of the budget that is left: 1 at first, negative when more was spent, at least -10;
    /// `None` before a cluster was observed for a day: one bad probe after the first would spend it all.
    pub fn budget_left(self, sums: &Sums) -> Option<f64> {
        let burn = self.burn(sums).filter(|_| sums.observed >= OBSERVED_MIN);
        burn.map(|burn| (1.0 - burn).max(BUDGET_LEFT_MIN))
    }

    /// How fast the budget is spent: at 1, all of it within 28 days.
    fn burn(self, sums: &Sums) -> Option<f64> {
        sums.ratio().map(|ratio| (1.0 - ratio) / (1.0 - self.ratio()))
    }
}

/// The condition of a cluster about its objective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithinObjective {
    /// Unknown until a cluster was observed for a day.
    pub status: Status,
    /// A word for programs.
    pub reason: &'static str,
    /// A sentence with the numbers, and the record at its end ([`Record::at_end_of`]).
    pub message: String,
}

/// The condition of a cluster about `objective` at `now`, for an object without another place for its
/// record. It goes with writes that are due anyway.
pub fn within_objective(objective: Objective, record: &Record, now: Timestamp) -> WithinObjective {
    let sums = record.sums(now);
    let budget = objective.budget(sums.observed);
    let (status, reason, sentence) = if sums.observed < OBSERVED_MIN {
        let text = format!("observed for {} of the last 28 days", text(sums.observed));
        (Status::Unknown, "ObservedTooShort", text)
    } else {
        let ratio = 100.0 * sums.ratio().unwrap_or_default();
        let head = format!("healthy for {ratio:.3} % of the time observed in the last 28 days");
        let budget_text = text(budget);
        match budget.checked_sub(sums.bad) {
            Some(left) => {
                let tail = format!("{} of {budget_text} error budget left", text(left));
                (Status::True, "BudgetLeft", format!("{head}, {tail}"))
            }
            None => {
                let over = text(sums.bad.saturating_sub(budget));
                let tail = format!("error budget of {budget_text} exceeded by {over}");
                (Status::False, "BudgetSpent", format!("{head}, {tail}"))
            }
        }
    };
    let Objective(percent) = objective;
    let message = format!("{sentence}, objective {percent} %; record {}", record.encode());
    WithinObjective { status, reason, message }
}

/// The part of the 28 days in which the cluster was observed.
pub fn observed_ratio(sums: &Sums) -> f64 {
    (sums.observed.as_secs_f64() / WINDOW.as_secs_f64()).min(1.0)
}

fn text(time: Duration) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    format!("{:#}", SignedDuration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn objective(text: &str) -> Objective {
        Objective::parse(text).unwrap().unwrap()
    }

    #[test]
    fn an_objective_is_a_percentage_in_its_range_or_none() {
        for text in ["90", "99.9", "99.999", "9.99e1"] {
            assert!(Objective::parse(text).unwrap().is_some(), "{text}");
        }
        assert_eq!(Objective::parse("0").unwrap(), None);
        for text in ["", "89.9", "99.9999", "100", "-99", "99,9", "99.9%", "NaN", "inf", " 99"] {
            assert!(Objective::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_budget_is_a_share_of_the_time_observed() {
        let whole = Sums { observed: WINDOW, bad: Duration::ZERO };
        assert_eq!(objective("99.9").budget(whole.observed).as_secs(), 40 * 60 + 19);
        // (observed and bad seconds, objective; budget left, burn)
        let rows = [
            (100_000, 0, "99", 1.0, 0.0),
            (100_000, 500, "99", 0.5, 0.5),
            (100_000, 1000, "99", 0.0, 1.0),
            (100_000, 3000, "99", -2.0, 3.0),
            (100_000, 100_000, "99", -10.0, 100.0),
        ];
        for (observed, bad, percent, left, burn) in rows {
            let sums = Sums { observed: S(observed), bad: S(bad) };
            let objective = objective(percent);
            let close = |found: Option<f64>, wanted: f64| (found.unwrap() - wanted).abs() < 1e-9;
            assert!(close(objective.budget_left(&sums), left), "{bad}");
            assert!(close(objective.burn(&sums), burn), "{bad}");
        }
        for observed in [0, 10, 86_399] {
            let sums = Sums { observed: S(observed), bad: S(observed.min(10)) };
            assert_eq!(objective("99").budget_left(&sums), None);
        }
        let quarter = Sums { observed: WINDOW / 4, bad: Duration::ZERO };
        assert_eq!((observed_ratio(&quarter), observed_ratio(&whole)), (0.25, 1.0));
    }

    #[test]
    fn the_condition_tells_what_is_left_and_keeps_the_record() {
        let now: Timestamp = "2026-11-24T12:00:00Z".parse().unwrap();
        // (days observed, bad seconds; status, reason, sentence)
        let rows = [
            (
                0,
                0,
                Status::Unknown,
                "ObservedTooShort",
                "observed for 11h 59m 59s of the last 28 days",
            ),
            (
                10,
                100,
                Status::True,
                "BudgetLeft",
                "healthy for 99.989 % of the time observed in the last 28 days, 13m 27s of 15m 7s error budget left",
            ),
            (
                10,
                1000,
                Status::False,
                "BudgetSpent",
                "healthy for 99.890 % of the time observed in the last 28 days, error budget of 15m 7s exceeded by 1m 32s",
            ),
        ];
        for (days, bad, status, reason, sentence) in rows {
            let mut record = Record::new(now);
            for day in (1..=days).rev() {
                record.add(S(86_400), false, now - S(86_400 * day));
            }
            record.add(S(43_199 - bad), false, now);
            record.add(S(bad), true, now);
            let condition = within_objective(objective("99.9"), &record, now);
            assert_eq!((condition.status, condition.reason), (status, reason));
            let expected = format!("{sentence}, objective 99.9 %; record {}", record.encode());
            assert_eq!(condition.message, expected);
            let read = Record::decode(Record::at_end_of(&condition.message), now);
            assert_eq!(read.unwrap().sums(now), record.sums(now));
        }
    }
}
