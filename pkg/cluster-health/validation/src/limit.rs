//! [`Limit`]: what a field may hold beside its type.

use crate::findings::Findings;
use crate::formats::{cidr, is_date_time};
use crate::place::Place;
use crate::shape::each;

/// What a field may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// One of these.
    Words(&'static [&'static str]),
    /// At most so many characters.
    Longest(usize),
    /// At least so many.
    Shortest(usize),
    /// A CIDR.
    Cidr,
    /// A time with its date.
    DateTime,
    /// An object of so many keys at most.
    Keys(usize),
    /// An object whose texts have so many characters at most.
    Values(usize),
}

/// Judges every field of a table, by its path from `at`.
pub(crate) fn check(at: &Place<'_>, limits: &[(&'static str, Limit)], findings: &mut Findings) {
    for (path, limit) in limits {
        each(at.clone(), path.split('.'), &mut |place| one(place, *limit, findings));
    }
}

fn one(at: &Place<'_>, limit: Limit, findings: &mut Findings) {
    let length = |text: &str| text.chars().count();
    let keys = at.value().as_object();
    match limit {
        Limit::Words(words) => {
            if at.text().is_some_and(|text| !words.contains(&text)) {
                findings.not_supported(at, &at.shown(), words.iter().copied());
            }
        }
        Limit::Longest(most) => {
            if at.text().is_some_and(|text| length(text) > most) {
                findings.too_long(at, most);
            }
        }
        Limit::Shortest(least) => {
            if at.text().is_some_and(|text| length(text) < least) {
                findings.invalid(at, &format!("should be at least {least} chars long"));
            }
        }
        Limit::Cidr => {
            if at.text().is_some_and(|text| cidr(text).is_none()) {
                findings.type_invalid(at, "string", "cidr (such as 10.0.0.0/16)");
            }
        }
        Limit::DateTime => {
            if at.text().is_some_and(|text| !is_date_time(text)) {
                findings.type_invalid(at, "string", "date-time (such as 2026-01-02T03:04:05Z)");
            }
        }
        Limit::Keys(most) => {
            if let Some(keys) = keys.filter(|keys| keys.len() > most) {
                findings.too_many(at, keys.len(), most);
            }
        }
        Limit::Values(most) => {
            for key in keys.into_iter().flat_map(|keys| keys.keys()) {
                one(&at.field(key), Limit::Longest(most), findings);
            }
        }
    }
}
