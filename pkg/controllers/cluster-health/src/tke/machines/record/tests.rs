use super::*;

const THREE: Thresholds = Thresholds { failure: 3, success: 2 };
/// Of lists that come once a second.
const SPACING: Duration = Duration::from_secs(1);

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

struct Life {
    record: Record,
    spacing: Duration,
    begin: Instant,
    now: i64,
}

impl Life {
    fn new(published: Option<Published>) -> Self {
        let begin = Instant::now();
        let record = Record::new("u", "10.0.0.1", published, 1, Duration::from_secs(300), begin);
        Self { record, spacing: SPACING, begin, now: 0 }
    }

    fn moment(&mut self) -> Moment {
        self.now += 1;
        let ahead = Duration::from_secs(self.now.unsigned_abs());
        Moment { monotonic: self.begin + ahead, wall: second(self.now) }
    }

    /// `k`: well, `n`: not ready, `m`: missing, `c`: the cluster is not healthy, `l`: no list. What
    /// is published after each: `T`, `F`, `U`, or `-` for nothing.
    fn go(&mut self, steps: &str) -> String {
        steps.chars().map(|step| self.step(step)).collect()
    }

    fn step(&mut self, step: char) -> char {
        let now = self.moment();
        let found = |standing| Found { standing, message: String::new(), info: None };
        match step {
            'k' => self.record.observe(found(Standing::Well), THREE, self.spacing, now),
            'n' => self.record.observe(found(Standing::NodeNotReady), THREE, self.spacing, now),
            'm' => self.record.observe(found(Standing::Missing), THREE, self.spacing, now),
            'c' => self.record.unknown(Cause::ClusterUnhealthy, "", now),
            _ => self.record.not_listed("why", THREE, self.spacing, now),
        };
        match self.record.status() {
            None => '-',
            Some(Status::True) => 'T',
            Some(Status::False) => 'F',
            Some(Status::Unknown) => 'U',
        }
    }
}

/// rule:machines-fail-as-clusters-do
#[test]
fn lists_count_as_probes_do() {
    // (what the lists say, what is published)
    let rows = [
        ("k", "T"),
        ("n", "F"),
        ("m", "F"),
        ("knnk", "TTTT"),
        ("kmnm", "TTTF"),
        ("knnkkn", "TTTTTT"),
        ("nknkk", "FFFFT"),
        // Another reason takes no threshold.
        ("nm", "FF"),
    ];
    for (steps, published) in rows {
        assert_eq!(Life::new(None).go(steps), published, "{steps}");
    }
}

/// rule:machines-of-an-unhealthy-cluster-are-unknown
#[test]
fn a_cluster_that_is_not_healthy_makes_its_machines_unknown_and_the_first_list_after_that_counts() {
    for (steps, published) in
        [("kc", "TU"), ("ck", "UT"), ("cn", "UF"), ("knncn", "TTTUF"), ("knnckn", "TTTUTT")]
    {
        assert_eq!(Life::new(None).go(steps), published, "{steps}");
    }
}

#[test]
fn lists_that_cannot_be_had_make_a_machine_unknown_at_the_threshold() {
    for (steps, published) in
        [("klll", "TTTU"), ("kllkll", "TTTTTT"), ("lll", "--U"), ("nllln", "FFFUF")]
    {
        assert_eq!(Life::new(None).go(steps), published, "{steps}");
    }
}

/// rule:machines-fail-as-clusters-do
#[test]
fn a_restart_goes_on_from_what_the_object_says() {
    let seeded = |standing| Published {
        standing,
        message: String::new(),
        since: second(-500),
        probed: None,
        info: None,
    };
    let mut life = Life::new(Some(seeded(Standing::Well)));
    assert_eq!(life.go("nnk"), "TTT");
    assert_eq!(life.record.published().unwrap().since, second(-500));
    let mut life = Life::new(Some(seeded(Standing::Missing)));
    assert_eq!(life.go("kk"), "FT");
    assert_eq!(life.record.published().unwrap().since, second(2));
}

#[test]
fn a_transition_time_moves_with_the_status_and_the_probe_time_with_each_list() {
    let mut life = Life::new(None);
    life.go("knn");
    let published = life.record.published().unwrap();
    assert_eq!((published.since, published.probed), (second(1), Some(second(3))));
    life.go("nm");
    let published = life.record.published().unwrap();
    assert_eq!((published.since, published.probed), (second(4), Some(second(5))));
    assert_eq!(published.standing, Standing::Missing);
    life.go("c");
    let published = life.record.published().unwrap();
    assert_eq!((published.since, published.probed), (second(6), Some(second(5))));
}

#[test]
fn a_machine_with_another_address_is_judged_anew() {
    let mut life = Life::new(None);
    life.go("k");
    life.record.at("10.0.0.1");
    assert_eq!(life.go("n"), "T");
    life.record.at("10.0.0.2");
    assert_eq!(life.go("n"), "F");
}

#[test]
fn what_is_to_be_confirmed_is_looked_at_sooner_and_what_nothing_is_known_of_at_once() {
    let mut life = Life::new(None);
    assert_eq!(life.record.wants(), Want::Anything);
    for (step, want) in [
        ('k', Want::NothingNew),
        ('n', Want::Confirmation),
        ('k', Want::NothingNew),
        ('l', Want::Confirmation),
        ('c', Want::Anything),
        ('m', Want::NothingNew),
        ('l', Want::Confirmation),
        ('l', Want::Confirmation),
        // Nobody asks more often for what is refused.
        ('l', Want::NothingNew),
        ('l', Want::NothingNew),
        ('k', Want::NothingNew),
    ] {
        life.step(step);
        assert_eq!(life.record.wants(), want, "{step}");
    }
}

/// rule:machines-fail-as-clusters-do
#[test]
fn lists_that_come_together_count_as_one_failure() {
    for (steps, published) in [
        // (once a second, with three seconds between failures that count)
        ("knnnnnnn", "TTTTTTTF"),
        ("knkn", "TTTT"),
        ("klllllll", "TTTTTTTU"),
    ] {
        let mut life = Life::new(None);
        life.spacing = 3 * SPACING;
        assert_eq!(life.go(steps), published, "{steps}");
    }
}
