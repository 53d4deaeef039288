//! Any text in `status.availability`, or at the end of the message of a condition.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use health::{Objective, Record, within_objective};
use jiff::Timestamp;

const DAYS: u64 = 29;

fn now() -> Timestamp {
    "2026-11-24T12:00:00Z".parse().unwrap()
}

/// The first byte selects whether the others are a text, or the bytes in one.
pub(crate) fn are_read_or_refused(data: &[u8]) {
    let Some((select, data)) = crate::selected(data) else { return };
    let text = match select % 3 {
        0 => String::from_utf8_lossy(data).into_owned(),
        day => format!("v1.{}.{}", 20_780 + day, URL_SAFE_NO_PAD.encode(data)),
    };
    let Some(record) = Record::decode(Record::at_end_of(&text), now()) else { return };
    let sums = record.sums(now());
    assert!(sums.bad <= sums.observed && sums.observed <= Duration::from_secs(86_400 * DAYS));
    let again = record.encode();
    assert!(again.len() <= 256, "{again}");
    assert_eq!(Record::decode(&again, now()).as_ref(), Some(&record), "{again}");
    let objective = Objective::parse("99.9").unwrap().unwrap();
    let condition = within_objective(objective, &record, now());
    assert!(!condition.reason.is_empty() && condition.message.ends_with(&again));
    let left = objective.budget_left(&sums);
    assert!(left.is_none_or(|left| (-10.0..=1.0).contains(&left)), "{left:?}");
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let texts = ["v1.20781.", "v1.20781.sQKsAg", "a sentence; record v1.20000.gKMFgKMFgKMFAA"];
    let texts = texts.map(|text| [&[0], text.as_bytes()].concat());
    texts.into_iter().chain([[vec![1], [0x80, 0xa3, 0x05, 0x0a].repeat(15)].concat()]).collect()
}
