//! The property tests of `cidr`: the bodies of its fuzz targets over inputs that are made for them. A failure
//! prints its seed, and the operations that led to it.

use fuzz_targets::Random;
use fuzz_targets::cidr::{ledger, parse};

/// Names the seed when its case panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed: {}", self.0);
        }
    }
}

/// Random sequences of up to 12 operations over the two layouts from `layout`.
fn ledgers_match(layout: u8, sequences: u64) {
    for seed in 0..sequences {
        let _named = Seed(seed);
        let mut random = Random(seed ^ (u64::from(layout) << 32));
        let operations = 1 + random.below(12);
        let mut data = random.bytes(3 + 6 * operations);
        data[0] = layout + data[0] % 2;
        ledger::matches_the_model(&data);
    }
}

// Together more than 10^5 sequences.

#[test]
fn ipv4_ledgers_match_the_naive_model() {
    ledgers_match(0, 40_000);
}

#[test]
fn ipv6_ledgers_match_the_naive_model() {
    ledgers_match(2, 40_000);
}

#[test]
fn dual_stack_ledgers_match_the_naive_model() {
    ledgers_match(4, 30_000);
}

#[test]
fn the_parser_survives_any_text_and_what_it_reads_can_be_written() {
    const PIECES: [&str; 22] = [
        "0",
        "1",
        "9",
        "10",
        "32",
        "128",
        "255",
        "256",
        "f",
        "Fd00",
        "::",
        ":",
        ".",
        "/",
        "/24",
        "/64",
        "10.0.0.0",
        "2001:db8::",
        "::ffff:",
        " ",
        "+",
        "é\u{a0}",
    ];
    for seed in 0..50_000 {
        let _named = Seed(seed);
        let mut random = Random(seed);
        let pieces = random.below(12);
        let text: String = (0..pieces).map(|_| PIECES[random.below(PIECES.len())]).collect();
        parse::reads_or_refuses(text.as_bytes());
        let length = random.below(24);
        parse::reads_or_refuses(&random.bytes(length));
    }
}
