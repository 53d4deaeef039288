use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn from_nanos(nanos: i128) -> Quantity {
    Quantity { nanos }
}

#[test]
fn every_suffix_has_its_value() {
    let table = [
        ("0", 0),
        ("1n", 1),
        ("1u", 1_000),
        ("1m", 1_000_000),
        ("1", NANOS),
        ("1k", 1_000 * NANOS),
        ("1M", 1_000_000 * NANOS),
        ("1G", 1_000_000_000 * NANOS),
        ("1T", 1_000_000_000_000 * NANOS),
        ("1P", 1_000_000_000_000_000 * NANOS),
        ("1E", 1_000_000_000_000_000_000 * NANOS),
        ("1Ki", 1024 * NANOS),
        ("1Mi", (1 << 20) * NANOS),
        ("1Gi", (1 << 30) * NANOS),
        ("1Ti", (1 << 40) * NANOS),
        ("1Pi", (1 << 50) * NANOS),
        ("1Ei", (1 << 60) * NANOS),
        ("1e3", 1_000 * NANOS),
        ("1E3", 1_000 * NANOS),
        ("1e+3", 1_000 * NANOS),
        ("12e-3", 12_000_000),
        ("0.5Gi", (1 << 29) * NANOS),
        ("1.5", 1_500_000_000),
        ("1.", NANOS),
        (".5", 500_000_000),
        ("+2", 2 * NANOS),
        ("-2", -2 * NANOS),
        ("-250m", -250_000_000),
        ("007", 7 * NANOS),
        ("0.1Ki", 102_400_000_000),
        ("0e100", 0),
        ("000000000000000000000000000000000000000000000000000", 0),
    ];
    for (text, nanos) in table {
        assert_eq!(read(text), from_nanos(nanos), "{text}");
    }
}

#[test]
fn what_is_finer_than_a_billionth_is_rounded_away_from_zero() {
    let table = [
        ("0.1n", 1),
        ("1.1n", 2),
        ("-0.1n", -1),
        ("1e-100", 1),
        ("-1e-100", -1),
        ("1e-9223372036854775808", 1),
        ("0.0000000005", 1),
        ("1.0000000000000000000000000000000000000000000000000000001", NANOS + 1),
        ("0.00000000000000000000000000000000000000000000000000000000001Ei", 1),
        ("1.0000000000000000000000000000000000000000000000000000000Ki", 1024 * NANOS),
    ];
    for (text, nanos) in table {
        assert_eq!(read(text), from_nanos(nanos), "{text}");
    }
}

#[test]
fn what_is_too_large_is_the_largest_that_the_api_server_takes() {
    let most = Quantity::whole(i64::MAX);
    for text in [
        "9223372036854775807",
        "9223372036854775808",
        "9223372036854775807.1",
        "8Ei",
        "10E",
        "1e19",
        "1e9223372036854775807",
        "99999999999999999999999999999999999999999999999999999999",
    ] {
        assert_eq!(read(text), most, "{text}");
        assert_eq!(read(&format!("-{text}")).nanos, -most.nanos, "-{text}");
    }
    assert!(read("7.99999999999999Ei") < most);
}

#[test]
fn what_is_no_quantity_is_refused() {
    let no_number = ["", "-", "+", ".", "m", "Ki", "--1", "+-1", " 1", "1.2.3", "-.", "e3", "½"];
    for text in no_number {
        assert_eq!(text.parse::<Quantity>(), Err(ParseError::Number), "{text:?}");
    }
    let no_suffix = ["1 ", "1K", "1ki", "1KI", "1e", "1e1.5", "1e99999999999999999999", "1mi"];
    for text in no_suffix.into_iter().chain(["1x", "0x10", "1,5", "1m ", "1µ", "1_000", "1Kii"]) {
        assert_eq!(text.parse::<Quantity>(), Err(ParseError::Suffix), "{text:?}");
    }
}

#[test]
fn a_quantity_is_rounded_up_once_when_it_is_shown() {
    let third: Quantity = std::iter::repeat_n(read("333333333n"), 3).sum();
    assert_eq!((third.as_milli(), third.as_whole()), (1000, 1));
    assert_eq!(read("-1500m").as_whole(), -1);
    for (text, cores) in [
        ("0", "0"),
        ("1n", "1m"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("1.5", "1500m"),
        ("2k", "2000"),
    ] {
        assert_eq!(read(text).rounded_to_milli().to_string(), cores, "{text}");
    }
    for (text, bytes) in [("1Ki", 1024), ("0.5", 1), ("128Mi", 134_217_728), ("1m", 1)] {
        assert_eq!(read(text).as_whole(), bytes, "{text}");
    }
}

#[test]
fn a_sum_beyond_all_numbers_stays_the_largest() {
    let huge = from_nanos(i128::MAX);
    assert_eq!(huge + Quantity::whole(1), huge);
}

#[test]
fn numbers_of_manifests_are_read_by_their_shortest_text() {
    for (json, text) in [("1", "1"), ("0.1", "100m"), ("-3", "-3"), ("1e3", "1k"), ("\"5m\"", "5m")]
    {
        let quantity: Quantity = serde_json::from_str(json).unwrap();
        assert_eq!(quantity, read(text), "{json}");
    }
    for json in ["null", "true", "[]", "{}", "\"\"", "\"1 Gi\""] {
        assert!(serde_json::from_str::<Quantity>(json).is_err(), "{json}");
    }
}

proptest! {
    #[test]
    fn the_text_of_a_quantity_reads_back_as_the_same(nanos in -MOST_TRIED..MOST_TRIED) {
        let quantity = from_nanos(nanos);
        prop_assert_eq!(read(&quantity.to_string()), quantity);
    }

    /// The model: one fraction of two big integers, rounded up.
    #[test]
    fn digits_and_suffix_come_to_the_fraction_that_they_name(
        before in 0_i128..1_000_000,
        after in "[0-9]{0,12}",
        suffix in 0..SUFFIXES.len(),
    ) {
        let (suffix, times, over) = SUFFIXES[suffix];
        let ten = 10_i128.pow(u32::try_from(after.len()).unwrap());
        let digits = format!("{before}{after}").parse::<i128>().unwrap();
        let naive = ceil(digits * times, ten * over).min(i128::from(i64::MAX) * NANOS);
        let read = read(&format!("{before}.{after}{suffix}"));
        prop_assert_eq!(read.nanos, naive);
    }

    #[test]
    fn the_order_of_a_sum_does_not_matter(mut nanos in prop::collection::vec(0..MOST_TRIED, 0..50)) {
        let sum = |nanos: &[i128]| nanos.iter().copied().map(from_nanos).sum::<Quantity>();
        let forward = sum(&nanos);
        nanos.reverse();
        prop_assert_eq!(sum(&nanos), forward);
        prop_assert_eq!(forward.nanos, nanos.iter().sum::<i128>());
    }
}

const MOST_TRIED: i128 = i64::MAX as i128 * NANOS;
/// Billionths per unit, as a fraction that stays below 128 bits.
const SUFFIXES: [(&str, i128, i128); 9] = [
    ("n", 1, 1),
    ("u", 1_000, 1),
    ("m", 1_000_000, 1),
    ("", NANOS, 1),
    ("k", 1_000 * NANOS, 1),
    ("Ki", 1024 * NANOS, 1),
    ("Mi", (1 << 20) * NANOS, 1),
    ("e-6", NANOS, 1_000_000),
    ("e2", 100 * NANOS, 1),
];
