//! The bodies of the fuzz targets on stable, over inputs from fixed seeds: the property tests of
//! the crate. A failure prints its seed, and the operations that led to it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../fuzz/bodies/ledger.rs"]
mod ledger;
#[path = "../fuzz/bodies/parse.rs"]
mod parse;

/// SplitMix64: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next().to_le_bytes()).flatten().take(length).collect()
    }
}

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
