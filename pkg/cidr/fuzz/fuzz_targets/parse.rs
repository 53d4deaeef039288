//! Fuzz target: any text through the CIDR parser.
#![no_main]

#[path = "../bodies/parse.rs"]
mod parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| parse::reads_or_refuses(data));
