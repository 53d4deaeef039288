//! [`Limit`]: what a field may hold beside its type.

use crate::findings::Findings;
use crate::formats::cidr;
use crate::place::Place;
use crate::shape::each;

/// What a field may hold.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// One of these.
    Words(&'static [&'static str]),
    /// A number from one to the other.
    Between(i64, i64),
    /// At most so many characters.
    Longest(usize),
    /// At least so many.
    Shortest(usize),
    /// A CIDR.
    Cidr,
    /// An object of so many keys at most.
    Keys(usize),
    /// An object whose texts have so many characters at most.
    Values(usize),
}

/// Judges every field of a table, by its path from `at`.
pub(super) fn check(at: &Place<'_>, limits: &[(&'static str, Limit)], findings: &mut Findings) {
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
        Limit::Between(least, most) => match at.number() {
            Some(number) if number < least => {
                findings.invalid(at, &format!("must be greater than or equal to {least}"));
            }
            Some(number) if number > most => {
                findings.invalid(at, &format!("must be less than or equal to {most}"));
            }
            _ => {}
        },
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
                findings.type_invalid(at, "string", "cidr");
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
