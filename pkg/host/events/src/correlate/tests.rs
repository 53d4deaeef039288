use super::*;

const NOON: i64 = 1_800_000_000;

fn emission(object: &str, reason: &'static str, message: &str, second: i64) -> Emission {
    Emission {
        object: Arc::new(ObjectRef::node(object, "uid")),
        event_type: EventType::Normal,
        reason,
        message: message.to_owned(),
        time: Timestamp::from_second(NOON + second).unwrap(),
    }
}

/// A correlator and the moment it began; events are recorded `second`s later.
struct Story(Correlator, Instant);

impl Story {
    fn begin() -> Self {
        Self(Correlator::new("test", 1024), Instant::now())
    }

    fn tell(&mut self, emission: Emission) -> Option<Observation> {
        let second = u64::try_from(emission.time.as_second() - NOON).unwrap();
        self.0.observe(emission, self.1 + Duration::from_secs(second))
    }
}

#[tokio::test(start_paused = true)]
async fn an_equal_event_is_counted_on_the_first_one() {
    let mut story = Story::begin();
    let first = story.tell(emission("n", "Full", "no block", 0)).unwrap();
    assert_eq!(first.count, 1);
    let again = story.tell(emission("n", "Full", "no block", 60)).unwrap();
    assert_eq!((again.count, &again.name), (2, &first.name));
    assert_eq!(again.first, first.last);
    assert_eq!(again.last.as_second(), NOON + 60);
}

#[tokio::test(start_paused = true)]
async fn events_that_differ_in_any_field_are_two_events() {
    let base = || emission("n", "Full", "no block", 0);
    let mut other_uid = base();
    other_uid.object = Arc::new(ObjectRef::node("n", "another uid"));
    let mut warning = base();
    warning.event_type = EventType::Warning;
    for (case, other) in [
        ("object", emission("m", "Full", "no block", 0)),
        ("uid", other_uid),
        ("type", warning),
        ("reason", emission("n", "Failed", "no block", 0)),
        ("message", emission("n", "Full", "no room", 0)),
    ] {
        let mut story = Story::begin();
        let first = story.tell(base()).unwrap();
        let other = story.tell(other).unwrap();
        assert_eq!(other.count, 1, "{case}");
        assert_ne!(other.name, first.name, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_tenth_distinct_message_and_those_after_it_are_folded_into_one_event() {
    let mut story = Story::begin();
    for n in 0..9 {
        let o = story.tell(emission("n", "Full", &format!("message {n}"), n)).unwrap();
        assert_eq!((o.count, o.message), (1, format!("message {n}")));
    }
    let tenth = story.tell(emission("n", "Full", "message 9", 9)).unwrap();
    assert_eq!(tenth.message, "(combined from similar events): message 9");
    assert!(tenth.count == 1 && tenth.folded);
    let next = story.tell(emission("n", "Full", "message 10", 10)).unwrap();
    assert_eq!(next.message, "(combined from similar events): message 10");
    assert_eq!((next.count, &next.name), (2, &tenth.name));
    let known = story.tell(emission("n", "Full", "message 3", 11)).unwrap();
    assert_eq!((known.count, known.message.as_str()), (2, "message 3"), "known messages stay");
    let elsewhere = story.tell(emission("n", "Failed", "message 11", 12)).unwrap();
    assert_eq!(elsewhere.message, "message 11", "another reason is another topic");
}

#[tokio::test(start_paused = true)]
async fn messages_are_forgotten_after_ten_minutes_of_silence() {
    let tell_ten = |pause: i64| {
        let mut story = Story::begin();
        let mut last = None;
        for n in 0..10 {
            let second = if n < 9 { n } else { 8 + pause };
            last = story.tell(emission("n", "Full", &format!("message {n}"), second));
        }
        last.unwrap().message
    };
    assert_eq!(tell_ten(600), "(combined from similar events): message 9");
    assert_eq!(tell_ten(601), "message 9");
}

#[tokio::test(start_paused = true)]
async fn a_chatty_reason_is_dropped_after_its_burst_and_silences_no_other() {
    let mut story = Story::begin();
    let written = (0..100).filter_map(|_| story.tell(emission("n", "Full", "no block", 0))).count();
    assert_eq!(written, 25);
    assert!(story.tell(emission("n", "Failed", "refused", 0)).is_some());
    assert!(story.tell(emission("m", "Full", "no block", 0)).is_some());
    assert!(story.tell(emission("n", "Full", "another message", 0)).is_none());
    let later = story.tell(emission("n", "Full", "no block", 301)).unwrap();
    assert_eq!(later.count, 101, "what was dropped is still counted");
}

#[tokio::test(start_paused = true)]
async fn memory_is_bounded_and_a_forgotten_event_starts_again() {
    let mut story = Story(Correlator::new("test", 3), Instant::now());
    let first = story.tell(emission("n", "Full", "no block", 0)).unwrap();
    for other in ["a", "b", "c"] {
        story.tell(emission(other, "Full", "no block", 1)).unwrap();
    }
    let again = story.tell(emission("n", "Full", "no block", 2)).unwrap();
    assert_eq!((again.count, &again.name), (1, &first.name), "the server knows it still");
}

#[tokio::test(start_paused = true)]
async fn a_series_that_another_leader_began_is_counted_on() {
    let mut story = Story::begin();
    let first = story.tell(emission("n", "Full", "no block", 100)).unwrap();
    let since = Timestamp::from_second(NOON).unwrap();
    story.0.adopt(&first, Earlier { count: 7, first: Some(since) });
    let next = story.tell(emission("n", "Full", "no block", 160)).unwrap();
    assert_eq!((next.count, next.first, &next.name), (8, since, &first.name));
}

#[tokio::test(start_paused = true)]
async fn twenty_five_pass_at_once_and_one_more_every_five_minutes() {
    let start = Instant::now();
    let mut bucket = TokenBucket::new(SPAM_LIMIT, start);
    assert_eq!((0..100).filter(|_| bucket.take(start).is_ok()).count(), 25);
    assert!(bucket.take(start + Duration::from_secs(299)).is_err());
    assert!(bucket.take(start + Duration::from_millis(300_100)).is_ok());
    assert!(bucket.take(start + Duration::from_millis(300_200)).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_long_silence_refills_the_burst_and_no_more() {
    let start = Instant::now();
    let mut bucket = TokenBucket::new(SPAM_LIMIT, start);
    while bucket.take(start).is_ok() {}
    let later = start + Duration::from_secs(300_000);
    assert_eq!((0..100).filter(|_| bucket.take(later).is_ok()).count(), 25);
}
