//! Fuzz target: any sequence of operations on a ledger, compared with the naive model.
#![no_main]

#[path = "../bodies/ledger.rs"]
mod ledger;

libfuzzer_sys::fuzz_target!(|data: &[u8]| ledger::matches_the_model(data));
