//! [`Beats`]: the second evidence about clusters that cannot be probed, from Leases that they renew themselves
//! (`rule:our-outage-is-not-theirs`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Renewals that may be missed before a cluster counts as silent.
const RENEWALS: u32 = 3;
/// The least time of silence: longer than the watch may lag or hang before that is noticed.
const SILENT_AT_LEAST: Duration = Duration::from_secs(100);
/// Lease durations that clusters get to be heard again after a time in which nothing could be heard.
const GRACE: u32 = 2;
/// After so many times the limit a cluster is silent without that grace: a watch or guard that fails again and again must
/// not hide an outage.
const WITHOUT_GRACE: u32 = 2;
/// Bounds of `leaseDurationSeconds`, and its value when there is none.
const DURATIONS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(600)];
const USUAL: Duration = Duration::from_secs(60);
/// When nothing could be heard for so long, what was heard before is outdated: the longest time of silence.
const DEAF: Duration = Duration::from_secs(1800);

/// What the health of a cluster is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvidenceSource {
    /// Probes, and its Lease while no probe is answered.
    #[default]
    Both,
    /// Probes alone.
    Probes,
    /// Its Lease alone: it is not probed.
    Beats,
}

impl EvidenceSource {
    /// The source of this text: `probe` or `beat`.
    ///
    /// # Errors
    /// Another text.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "probe" => Ok(Self::Probes),
            "beat" => Ok(Self::Beats),
            _ => Err(format!("{text:?} is neither \"beat\" nor \"probe\"")),
        }
    }
}

/// What a Lease says at a renewal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// `spec.renewTime`, as it is written. Two texts are only compared: no clock of a cluster is trusted.
    pub time: Option<Box<str>>,
    /// `spec.leaseDurationSeconds`.
    pub duration: Option<i64>,
    /// What the cluster says about its own `/readyz`; nothing, or `ok`, says that it is well.
    pub readyz: Option<Box<str>>,
}

/// The sign of life of one cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beat {
    /// It never renewed a Lease, or its Lease is gone.
    #[default]
    Absent,
    /// It renewed its Lease, and does so no longer.
    Silent,
    /// It renews its Lease, and says nothing bad.
    Well,
    /// It renews its Lease, and says that it is not well.
    Unwell,
}

/// What is known of a cluster by its Lease alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// What the Lease says.
    Beat(Beat),
    /// Nothing yet, or nothing new for a moment: whether the cluster still renews its Lease shows later.
    Awaited,
    /// Nothing could be heard for too long.
    Nothing,
}

/// The Leases of all clusters, by their names. Ages are counted by our own clock from the moment at which another
/// renewal was seen, and only while one could have been seen.
#[derive(Debug)]
pub struct Beats {
    leases: HashMap<Arc<str>, Lease>,
    /// How long renewals could be seen, up to `counted`.
    heard: Duration,
    counted: Instant,
    is_live: bool,
    /// What `heard` was when renewals could be seen again.
    resumed: Option<Duration>,
    /// Since when none can be seen.
    deaf_since: Option<Instant>,
}

#[derive(Debug)]
struct Lease {
    time: Box<str>,
    duration: Duration,
    is_well: bool,
    /// A renewal was seen, and not only a Lease that may be of any age.
    is_renewed: bool,
    /// What `heard` was at the last renewal.
    renewed: Duration,
}

impl Beats {
    /// No Lease is known, and none can be seen yet.
    pub fn new(now: Instant) -> Self {
        let (leases, heard) = (HashMap::new(), Duration::ZERO);
        let deaf_since = Some(now);
        Self { leases, heard, counted: now, is_live: false, resumed: None, deaf_since }
    }

    /// Takes in whether renewals can be seen from now on.
    pub fn live(&mut self, is_live: bool, now: Instant) {
        if self.is_live {
            self.heard += now.saturating_duration_since(self.counted);
        }
        self.counted = now;
        if is_live && !self.is_live {
            self.resumed = Some(self.heard);
        }
        self.is_live = is_live;
        self.deaf_since = (!is_live).then(|| self.deaf_since.unwrap_or(now));
    }

    /// A Lease was seen. One that was never renewed is no sign of life.
    pub fn seen(&mut self, name: &Arc<str>, renewal: Renewal, now: Instant) {
        self.live(self.is_live, now);
        let Renewal { time: Some(time), duration, readyz } = renewal else {
            return self.gone(name);
        };
        let seconds = duration.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = seconds.map_or(USUAL, Duration::from_secs);
        let duration = duration.clamp(DURATIONS[0], DURATIONS[1]);
        let is_well = readyz.is_none_or(|said| *said == *"ok");
        let known = self.leases.get(name);
        let before = known.filter(|before| before.time == time);
        let renewed = before.map_or(self.heard, |before| before.renewed);
        // What the first list shows may be of any age.
        let is_renewed = match before {
            Some(before) => before.is_renewed,
            None => known.is_some() || self.resumed.is_some(),
        };
        let lease = Lease { time, duration, is_well, is_renewed, renewed };
        self.leases.insert(Arc::clone(name), lease);
    }

    /// A Lease was deleted.
    pub fn gone(&mut self, name: &str) {
        self.leases.remove(name);
    }

    /// What the Lease of this name says by now.
    pub fn of(&self, name: &str, now: Instant) -> Beat {
        let Some(lease) = self.leases.get(name) else { return Beat::Absent };
        let heard = self.heard_by(now);
        let limit = (RENEWALS * lease.duration).max(SILENT_AT_LEAST);
        let grace = self.resumed.map_or(Duration::ZERO, |resumed| heard.saturating_sub(resumed));
        let age = heard.saturating_sub(lease.renewed);
        let had_grace = grace >= GRACE * lease.duration || age >= WITHOUT_GRACE * limit;
        match age >= limit && had_grace {
            true => Beat::Silent,
            false if lease.is_well => Beat::Well,
            false => Beat::Unwell,
        }
    }

    /// What is known by the Lease of this name alone. A Lease that was listed and not renewed since proves nothing, so a
    /// restart publishes nothing by it (`rule:a-restart-changes-nothing`).
    pub fn alone(&self, name: &str, now: Instant) -> Heard {
        let is_renewed = self.is_renewed(name);
        match (self.deaf_since, self.of(name, now)) {
            (Some(since), _) if now.saturating_duration_since(since) >= DEAF => Heard::Nothing,
            (Some(_), Beat::Absent) => Heard::Awaited,
            (_, Beat::Well | Beat::Unwell) if !is_renewed => Heard::Awaited,
            (_, beat) => Heard::Beat(beat),
        }
    }

    /// Whether a renewal of the Lease of this name was seen.
    pub fn is_renewed(&self, name: &str) -> bool {
        self.leases.get(name).is_some_and(|lease| lease.is_renewed)
    }

    /// How long ago the Lease of this name was renewed, by the time in which a renewal could be seen.
    pub fn age(&self, name: &str, now: Instant) -> Option<Duration> {
        let lease = self.leases.get(name)?;
        Some(self.heard_by(now).saturating_sub(lease.renewed))
    }

    fn heard_by(&self, now: Instant) -> Duration {
        let since = now.saturating_duration_since(self.counted);
        if self.is_live { self.heard + since } else { self.heard }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn renewal(time: &str) -> Renewal {
        Renewal { time: Some(time.into()), duration: Some(60), readyz: None }
    }

    fn heard(start: Instant) -> (Beats, Arc<str>) {
        let (mut beats, name) = (Beats::new(start), Arc::from("tke-1"));
        beats.live(true, start);
        beats.seen(&name, renewal("1"), start);
        (beats, name)
    }

    /// `rule:our-outage-is-not-theirs`
    #[test]
    fn a_lease_is_silent_three_durations_after_another_renewal_was_seen() {
        let start = Instant::now();
        let (mut beats, name) = heard(start);
        assert_eq!(beats.of(&name, start + S(179)), Beat::Well);
        assert_eq!(beats.of(&name, start + S(180)), Beat::Silent);
        // The same time again is no renewal, whatever else has changed.
        beats.seen(&name, Renewal { readyz: Some("ok".into()), ..renewal("1") }, start + S(100));
        assert_eq!(beats.of(&name, start + S(180)), Beat::Silent);
        // A clock that goes back is none of ours.
        beats.seen(&name, renewal("0"), start + S(170));
        assert_eq!(beats.of(&name, start + S(349)), Beat::Well);
        assert_eq!(beats.age(&name, start + S(349)), Some(S(179)));
        assert_eq!(beats.of(&name, start + S(350)), Beat::Silent);
    }

    #[test]
    fn a_lease_that_was_never_renewed_or_is_gone_is_no_sign() {
        let start = Instant::now();
        let (mut beats, name) = heard(start);
        assert_eq!(beats.of("tke-2", start), Beat::Absent);
        beats.seen(&name, Renewal::default(), start);
        assert_eq!(beats.of(&name, start), Beat::Absent);
        beats.seen(&name, renewal("2"), start);
        beats.gone(&name);
        assert_eq!((beats.of(&name, start), beats.age(&name, start)), (Beat::Absent, None));
    }

    #[test]
    fn what_the_first_list_shows_is_no_renewal() {
        let start = Instant::now();
        let (mut beats, [first, new]) = (Beats::new(start), ["tke-1", "tke-2"].map(Arc::from));
        beats.seen(&first, renewal("1"), start);
        beats.live(true, start);
        // It is listed again.
        beats.seen(&first, renewal("1"), start);
        beats.seen(&new, renewal("1"), start);
        assert_eq!((beats.is_renewed(&first), beats.is_renewed(&new)), (false, true));
        beats.seen(&first, renewal("2"), start);
        assert!(beats.is_renewed(&first));
    }

    #[test]
    fn a_cluster_that_says_it_is_not_well_is_heard() {
        let start = Instant::now();
        let (mut beats, name) = heard(start);
        for (said, beat) in [("http-500", Beat::Unwell), ("ok", Beat::Well), ("", Beat::Unwell)] {
            let said = Renewal { readyz: Some(said.into()), ..renewal("1") };
            beats.seen(&name, said, start);
            assert_eq!(beats.of(&name, start), beat);
        }
        assert_eq!(beats.of(&name, start + S(180)), Beat::Silent);
    }

    #[test]
    fn odd_durations_are_bounded() {
        let rows = [
            (Some(1), 100),
            (Some(-5), 180),
            (None, 180),
            (Some(30), 100),
            (Some(600), 1800),
            (Some(i64::MAX), 1800),
        ];
        for (duration, silent_after) in rows {
            let start = Instant::now();
            let (mut beats, name) = heard(start);
            beats.seen(&name, Renewal { duration, ..renewal("2") }, start);
            assert_eq!(beats.of(&name, start + S(silent_after - 1)), Beat::Well, "{duration:?}");
            assert_eq!(beats.of(&name, start + S(silent_after)), Beat::Silent, "{duration:?}");
        }
    }

    #[test]
    fn age_stands_still_while_nothing_can_be_heard_and_two_durations_pass_after_that() {
        let start = Instant::now();
        let (mut beats, name) = heard(start);
        beats.live(false, start + S(170));
        assert_eq!(beats.of(&name, start + S(10_000)), Beat::Well);
        beats.live(true, start + S(10_000));
        assert_eq!(beats.of(&name, start + S(10_119)), Beat::Well);
        assert_eq!(beats.of(&name, start + S(10_120)), Beat::Silent);
        // Interruptions without end do not hide an outage.
        let (mut beats, name) = heard(start);
        for minute in 1..=6 {
            beats.live(false, start + S(60 * minute));
            beats.live(true, start + S(60 * minute + 1));
        }
        assert_eq!(beats.of(&name, start + S(365)), Beat::Well);
        assert_eq!(beats.of(&name, start + S(366)), Beat::Silent);
        // Before the first list nothing can be heard.
        assert_eq!(Beats::new(start).of(&name, start), Beat::Absent);
    }

    /// `rule:a-restart-changes-nothing`
    #[test]
    fn a_lease_alone_proves_nothing_before_a_renewal_was_seen() {
        let start = Instant::now();
        let (mut beats, name) = (Beats::new(start), Arc::from("tke-1"));
        assert_eq!(beats.alone(&name, start), Heard::Awaited, "nothing is listed yet");
        beats.seen(&name, renewal("1"), start);
        beats.live(true, start);
        assert_eq!(beats.alone("tke-2", start), Heard::Beat(Beat::Absent));
        assert_eq!(beats.alone(&name, start + S(179)), Heard::Awaited);
        assert_eq!(beats.alone(&name, start + S(180)), Heard::Beat(Beat::Silent));
        beats.seen(&name, renewal("2"), start + S(200));
        beats.seen(&name, renewal("2"), start + S(201));
        assert_eq!(beats.alone(&name, start + S(210)), Heard::Beat(Beat::Well));
        // An admin creates it, and the cluster renews it for the first time.
        let new = Arc::from("tke-2");
        beats.seen(&new, Renewal::default(), start + S(210));
        assert_eq!(beats.alone(&new, start + S(210)), Heard::Beat(Beat::Absent));
        beats.seen(&new, renewal("1"), start + S(211));
        assert_eq!(beats.alone(&new, start + S(211)), Heard::Beat(Beat::Well));
        // Nothing can be heard: for half an hour what was heard before holds.
        beats.live(false, start + S(220));
        beats.live(false, start + S(1000));
        assert_eq!(beats.alone(&name, start + S(2019)), Heard::Beat(Beat::Well));
        assert_eq!(beats.alone("tke-3", start + S(2019)), Heard::Awaited);
        assert_eq!(beats.alone(&name, start + S(2020)), Heard::Nothing);
        beats.live(true, start + S(2021));
        assert_eq!(beats.alone(&name, start + S(2021)), Heard::Beat(Beat::Well));
    }

    #[test]
    fn two_words_name_the_source_of_evidence() {
        assert_eq!(EvidenceSource::parse("beat"), Ok(EvidenceSource::Beats));
        assert_eq!(EvidenceSource::parse("probe"), Ok(EvidenceSource::Probes));
        for wrong in ["", "Beat", "beats", "both"] {
            assert!(EvidenceSource::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        /// A cluster that renews in time is never silent, whatever our watch does.
        #[test]
        fn who_renews_in_time_is_never_silent(
            steps in proptest::collection::vec((0_u64..60, any::<bool>()), 1..60),
        ) {
            let start = Instant::now();
            let (mut beats, name) = heard(start);
            let (mut now, mut live, mut renewals) = (start, true, 1);
            let mut due = S(0);
            for (seconds, turn) in steps {
                now += S(seconds);
                due += S(seconds);
                // Renewed each minute; seen only while live, and at once when that begins again.
                let renewed = due >= S(60);
                if turn {
                    live = !live;
                    beats.live(live, now);
                }
                if renewed {
                    due = S(0);
                }
                if live && (renewed || turn) {
                    renewals += 1;
                    beats.seen(&name, renewal(&renewals.to_string()), now);
                }
                prop_assert_ne!(beats.of(&name, now), Beat::Silent);
            }
        }
    }
}
