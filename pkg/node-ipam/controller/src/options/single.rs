//! Values of single flags: one of a few names, a number of a range, a selector, a time.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use flags::{Flag, Problem, Values};
use kube_api::LabelSelector;

use crate::flags::{NODE_SELECTOR, POD_CIDR_REUSE_DELAY};

/// The longest that a block rests.
const REUSE_DELAY_MAX: Duration = Duration::from_secs(24 * 3600);

/// The value of a flag that is one of a few names, which `wanted` lists; otherwise a problem and the default.
pub(super) fn named<T: Default, const N: usize>(
    values: &Values,
    flag: &Flag<String>,
    (names, wanted): ([(&str, T); N], &str),
    problems: &mut Vec<Problem>,
) -> T {
    let given = values.get(flag);
    match names.into_iter().find(|(name, _)| given == *name) {
        Some((_, value)) => value,
        None => {
            problems.push(flag.problem(format!("{given:?} is not {wanted}")));
            T::default()
        }
    }
}

/// A number of this range; `None` and a problem otherwise.
pub(super) fn within<T: TryFrom<i64> + PartialOrd + Display>(
    values: &Values,
    flag: &Flag<i64>,
    range: RangeInclusive<T>,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    let given = values.get(flag);
    let number = T::try_from(given).ok().filter(|number| range.contains(number));
    if number.is_none() {
        let rule = format!("{given} is not between {} and {}", range.start(), range.end());
        problems.push(flag.problem(rule));
    }
    number
}

/// `rule:unselected-nodes-get-nothing`.
pub(super) fn node_selector(values: &Values, problems: &mut Vec<Problem>) -> Option<LabelSelector> {
    let given = values.get(&NODE_SELECTOR);
    match LabelSelector::parse(&given) {
        Ok(selector) => (!given.trim().is_empty()).then_some(selector),
        Err(error) => {
            problems.push(NODE_SELECTOR.problem(format!("cannot parse {given:?}: {error}")));
            None
        }
    }
}

/// `rule:freed-blocks-rest`.
pub(super) fn reuse_delay(values: &Values, problems: &mut Vec<Problem>) -> Duration {
    let given = values.get(&POD_CIDR_REUSE_DELAY);
    let delay = given.to_std();
    if given.nanos() < 0 || delay > REUSE_DELAY_MAX {
        let rule = format!("{given} is not between 0s and 24h");
        problems.push(POD_CIDR_REUSE_DELAY.problem(rule));
    }
    delay
}
