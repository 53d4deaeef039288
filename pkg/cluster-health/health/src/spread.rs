//! Where a cluster lies among all others: a number that every replica and every release computes
//! the same way from its UID.

use std::time::Duration;

/// New clusters per second that a start-up probes.
const FIRST_PROBES_PER_SECOND: u64 = 500;
const FIRST_PROBES_WITHIN: Duration = Duration::from_secs(10);

/// 64 well-mixed bits of `text`: FNV-1a, finished as in SplitMix64.
pub fn hash(text: &str) -> u64 {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    mix(text.bytes().fold(0xcbf2_9ce4_8422_2325, fnv))
}

/// Mixes the bits of `value` so that each depends on all.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The part of `whole` at which the cluster with this hash lies.
pub(crate) fn share_of(whole: Duration, hash: u64) -> Duration {
    let share = (u128::from(hash >> 32) * whole.as_nanos()) >> 32;
    Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
}

/// How long after start-up the first probe of a cluster comes, when there are `members` of them.
/// Clusters seen later are probed at once.
pub(crate) fn first_probe(hash: u64, members: usize, period: Duration) -> Duration {
    share_of(period.min(paced(members).max(FIRST_PROBES_WITHIN)), hash)
}

/// The same for clusters that were taken over from another replica: as soon as they can be, as they
/// have waited already.
pub(crate) fn next_probe(hash: u64, members: usize, period: Duration) -> Duration {
    share_of(period.min(paced(members)), hash)
}

fn paced(members: usize) -> Duration {
    let members = u64::try_from(members).unwrap_or(u64::MAX);
    Duration::from_millis(members.saturating_mul(1000) / FIRST_PROBES_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn the_hash_is_the_same_in_every_release() {
        assert_eq!(hash(""), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(hash("6f1d5a3e-0b7c-4c3e-9c0a-1d2e3f405162"), 0x9772_928a_b74b_3d2d);
    }

    #[test]
    fn first_probes_are_spread_evenly_over_the_time_that_they_need() {
        // (members, period, time within which all are probed)
        let rows =
            [(100, S(10), S(10)), (100, S(300), S(10)), (10_000, S(300), S(20)), (1, S(2), S(2))];
        for (members, period, within) in rows {
            let mut tenths = [0_u32; 10];
            for n in 0..10_000_u32 {
                let wait = first_probe(hash(&format!("uid-{n}")), members, period);
                assert!(wait < within);
                tenths[(wait.as_nanos() * 10 / within.as_nanos()) as usize] += 1;
            }
            assert!(tenths.iter().all(|count| (850..1150).contains(count)), "{tenths:?}");
        }
    }
}
