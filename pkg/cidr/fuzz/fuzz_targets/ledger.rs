//! Fuzz target: any sequence of operations on a ledger, beside the naive model.
#![no_main]

#[path = "../bodies/ledger.rs"]
mod ledger;

libfuzzer_sys::fuzz_target!(|data: &[u8]| ledger::matches_the_model(data));
