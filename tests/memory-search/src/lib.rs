//! [`Mark`]: finds out whether a secret is anywhere in the memory of this process, freed memory
//! included. For tests of what promises to wipe its secrets; Linux only.

#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking, and without these files there is nothing to test"
)]

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use parking_lot::Mutex;
use zeroize::Zeroizing;

/// Read at a time.
const WINDOW: usize = 256 * 1024;
/// Long enough to be nowhere by chance.
const RANDOM: usize = 40;

/// Serialises searches: the memory that a search reads is a copy, too, until it is wiped.
static SEARCHING: Mutex<()> = Mutex::new(());

/// A secret to look for. It is kept as its complement, so that a search does not find the mark.
pub struct Mark {
    complement: Vec<u8>,
}

impl Mark {
    /// A mark of a secret that the caller has.
    #[must_use]
    pub fn of(secret: &str) -> Self {
        Self { complement: secret.bytes().map(|byte| !byte).collect() }
    }

    /// A new secret in memory, made of letters as a token is.
    #[must_use]
    pub fn random() -> Self {
        Self { complement: (0..RANDOM).map(|_| !rand::random_range(b'a'..=b'z')).collect() }
    }

    /// A copy of the secret, in memory that is wiped when it is dropped.
    #[must_use]
    pub fn secret(&self) -> Zeroizing<String> {
        let mut secret = Zeroizing::new(String::with_capacity(self.complement.len()));
        secret.extend(self.complement.iter().map(|byte| char::from(!byte)));
        secret
    }

    /// The part that is searched for: the second half, since the allocator writes over the begin of what was
    /// freed.
    fn sought(&self) -> &[u8] {
        &self.complement[self.complement.len() / 2..]
    }

    /// Whether it is in memory that this process can write to.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        let _alone = SEARCHING.lock();
        let memory = File::open("/proc/self/mem").expect("a process may read its own memory");
        let mut window = Zeroizing::new(vec![0; WINDOW]);
        mappings().into_iter().any(|mapping| self.is_in(&memory, mapping, &mut window))
    }

    fn is_in(&self, memory: &File, mapping: Range<u64>, window: &mut [u8]) -> bool {
        let mut at = mapping.start;
        while at < mapping.end {
            let length = usize::try_from(mapping.end - at).map_or(WINDOW, |rest| rest.min(WINDOW));
            // A mapping that is gone by now holds nothing.
            let Ok(read) = memory.read_at(&mut window[..length], at) else { return false };
            if self.is_within(&window[..read]) {
                return true;
            }
            let end = at + read as u64;
            if end == mapping.end || read < self.sought().len() {
                return false;
            }
            // The secret may lie across the end of this window.
            at = end - self.sought().len() as u64 + 1;
        }
        false
    }

    fn is_within(&self, bytes: &[u8]) -> bool {
        let sought = self.sought();
        let mut from = 0;
        while let Some(found) = bytes[from..].iter().position(|byte| *byte == !sought[0]) {
            let rest = &bytes[from + found..];
            let is_it = sought.iter().zip(rest).all(|(one, other)| !one == *other);
            if is_it && rest.len() >= sought.len() {
                return true;
            }
            from += found + 1;
        }
        false
    }
}

/// Writable memory: heap, stacks, data.
fn mappings() -> Vec<Range<u64>> {
    let maps = fs::read_to_string("/proc/self/maps").expect("a process may read its own mappings");
    let mapping = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let parse = |text| u64::from_str_radix(text, 16).ok();
        rest.starts_with("rw").then_some(parse(start)?..parse(end)?)
    };
    maps.lines().filter_map(mapping).collect()
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn a_secret_is_found_while_it_is_there_and_when_it_was_dropped_without_being_wiped() {
        let mark = Mark::random();
        assert!(!mark.is_in_memory(), "the mark itself is found");
        let secret = mark.secret();
        assert!(mark.is_in_memory());
        drop(secret);
        assert!(!mark.is_in_memory(), "it was wiped");
        drop(black_box(mark.secret().as_str().to_owned()));
        assert!(mark.is_in_memory(), "it is not wiped yet");
    }

    #[test]
    fn a_secret_that_lies_across_two_windows_is_found() {
        let mark = Mark::random();
        let mut wide = Zeroizing::new(vec![b'.'; 3 * WINDOW]);
        for at in [WINDOW - 1, WINDOW - RANDOM / 2, 2 * WINDOW - RANDOM + 1] {
            wide.fill(b'.');
            wide[at..at + RANDOM].copy_from_slice(mark.secret().as_bytes());
            assert!(mark.is_in_memory(), "{at}");
        }
        wide.fill(b'.');
        assert!(!mark.is_in_memory());
    }
}
