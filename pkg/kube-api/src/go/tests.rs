use proptest::prelude::*;
use serde_json::json;

use super::*;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Object {
    #[serde(deserialize_with = "null_is_default")]
    items: Vec<u8>,
}

#[test]
fn null_reads_as_an_absent_field_does_and_a_wrong_type_is_an_error() {
    for (object, items) in [
        (json!({}), Some(vec![])),
        (json!({"items": null}), Some(vec![])),
        (json!({"items": [1]}), Some(vec![1])),
        (json!({"items": "one"}), None),
    ] {
        let read: Result<Object, _> = serde_json::from_value(object.clone());
        assert_eq!(read.ok().map(|read| read.items), items, "{object}");
    }
}

#[test]
fn architectures_have_the_names_of_go() {
    for (rust, go) in
        [("x86_64", "amd64"), ("aarch64", "arm64"), ("x86", "386"), ("s390x", "s390x")]
    {
        assert_eq!(architecture(rust), go);
    }
    assert!(platform().starts_with(&format!("{OS}/")), "{}", platform());
}

fn nanos(text: &str) -> Result<i64, DurationError> {
    text.parse::<GoDuration>().map(GoDuration::nanos)
}

#[test]
fn a_duration_is_a_signed_sequence_of_decimals_and_units() {
    let table = [
        ("0", 0),
        ("+0", 0),
        ("-0", 0),
        ("1ns", 1),
        ("1us", 1_000),
        ("1\u{b5}s", 1_000),
        ("1\u{3bc}s", 1_000),
        ("1ms", 1_000_000),
        ("10s", 10_000_000_000),
        ("1h2m3s", 3_723_000_000_000),
        ("1.5h", 5_400_000_000_000),
        (".5s", 500_000_000),
        ("5.s", 5_000_000_000),
        ("-1.5s", -1_500_000_000),
        ("3s1h", 3_603_000_000_000),
        ("0.000000001s", 1),
        ("0.1234567890123456789012345678901234567890s", 123_456_789),
        ("9223372036854775807ns", i64::MAX),
        ("-9223372036854775808ns", i64::MIN),
    ];
    for (text, expected) in table {
        assert_eq!(nanos(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_duration_without_unit_is_refused_unless_it_is_zero() {
    assert_eq!(nanos("5"), Err(DurationError::MissingUnit("5".into())));
    assert_eq!(nanos("1m5"), Err(DurationError::MissingUnit("5".into())));
    assert_eq!(nanos("1.5"), Err(DurationError::MissingUnit("1.5".into())));
    assert_eq!(nanos("00"), Err(DurationError::MissingUnit("00".into())));
}

#[test]
fn a_broken_duration_is_refused_with_its_reason() {
    for text in ["", "-", "+", ".", ".s", "s", "-s", " 1s", "1s ", "--1s"] {
        assert!(nanos(text).is_err(), "{text:?}");
    }
    assert_eq!(nanos("3000000h"), Err(DurationError::OutOfRange));
    assert_eq!(nanos("9223372036854775808ns"), Err(DurationError::OutOfRange));
    assert_eq!(nanos("1d"), Err(DurationError::UnknownUnit("d".into())));
    assert_eq!(nanos("1S"), Err(DurationError::UnknownUnit("S".into())));
}

#[test]
fn a_duration_prints_as_go_prints_it() {
    let table = [
        ("0", "0s"),
        ("1m", "1m0s"),
        ("12h", "12h0m0s"),
        ("10s", "10s"),
        ("1.5s", "1.5s"),
        ("1h0.001s", "1h0m0.001s"),
        ("8760h", "8760h0m0s"),
        ("1500us", "1.5ms"),
        ("1500ns", "1.5\u{b5}s"),
        ("7ns", "7ns"),
        ("-90s", "-1m30s"),
        ("9223372036854775807ns", "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
    ];
    for (text, printed) in table {
        assert_eq!(text.parse::<GoDuration>().unwrap().to_string(), printed, "{text}");
    }
}

#[test]
fn a_negative_duration_is_no_span_of_time() {
    assert_eq!("-1s".parse::<GoDuration>().unwrap().to_std(), std::time::Duration::ZERO);
}

proptest! {
    #[test]
    fn a_printed_duration_reads_back(nanos in any::<i64>()) {
        let text = format!("{nanos}ns");
        let value: GoDuration = text.parse().unwrap();
        prop_assert_eq!(value.nanos(), nanos);
        prop_assert_eq!(value.to_string().parse::<GoDuration>().unwrap(), value);
    }
}
