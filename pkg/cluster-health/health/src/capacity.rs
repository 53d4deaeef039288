//! How many probes may be under way at once.

use std::time::Duration;

use crate::Cadence;

/// Enough for a few hundred silent members whatever the flags say.
const AT_LEAST: usize = 256;
/// Spare probes above those that are needed when every member is silent.
const HEADROOM: f64 = 1.25;

/// Members that are probed alike.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// How many.
    pub members: usize,
    /// How often.
    pub cadence: Cadence,
}

/// The cap for these members: when all of them are silent and their runs are being confirmed, every
/// probe still starts in time.
pub fn probes_at_once(loads: &[Load]) -> usize {
    let needed = under_way(loads, |cadence| cadence.confirming().max(cadence.timeout));
    ceil(needed * HEADROOM).max(AT_LEAST)
}

/// True when `cap` cannot keep the periods while every member is silent
pub fn is_insufficient(cap: usize, loads: &[Load]) -> bool {
    cap < ceil(under_way(loads, |cadence| cadence.period.max(cadence.timeout)))
}

/// Probes under way at any time when each takes its timeout and comes again after `interval`.
fn under_way(loads: &[Load], interval: impl Fn(&Cadence) -> Duration) -> f64 {
    let part = |load: &Load| {
        let share = load.cadence.timeout.as_secs_f64() / interval(&load.cadence).as_secs_f64();
        #[allow(clippy::cast_precision_loss, reason = "no installation has 2^52 members")]
        let members = load.members as f64;
        if share.is_finite() { members * share } else { members }
    };
    loads.iter().map(part).sum()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is not negative, and a float too large saturates"
)]
fn ceil(value: f64) -> usize {
    value.ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }
    const KUBEFED: Cadence =
        Cadence { period: secs(10), timeout: secs(3), confirm: secs(10), jitter: 0.1 };
    const TKE: Cadence =
        Cadence { period: secs(300), timeout: secs(5), confirm: secs(10), jitter: 0.1 };

    #[test]
    fn the_cap_has_room_for_all_members_being_silent_at_once() {
        let load = |members, cadence| Load { members, cadence };
        let slow = Cadence { timeout: secs(20), ..KUBEFED };
        let rows: [(&[Load], usize); 6] = [
            (&[], 256),
            (&[load(100, KUBEFED)], 256),
            (&[load(10_000, KUBEFED)], 3750),
            (&[load(10_000, TKE)], 6250),
            (&[load(10_000, KUBEFED), load(10_000, TKE)], 10_000),
            (&[load(1000, slow)], 1250),
        ];
        for (loads, cap) in rows {
            assert_eq!(probes_at_once(loads), cap);
        }
    }

    #[test]
    fn a_cap_is_too_small_when_silent_members_alone_fill_it() {
        let loads = [Load { members: 10_000, cadence: KUBEFED }];
        assert!(is_insufficient(2999, &loads));
        assert!(!is_insufficient(3000, &loads));
        assert!(!is_insufficient(1, &[]));
    }
}
