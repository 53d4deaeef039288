mod memory;

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{advance, sleep};

const TTL: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(300);

type Outcome = Reviewed<&'static str>;

fn reviews() -> Reviews<&'static str> {
    Reviews::new(Lives { granted: TTL, refused: TTL, stale: GRACE }, 100)
}

fn key(number: usize) -> Key {
    let mut key = Key::default();
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
}

fn asking(stale_will_do: bool) -> Asking {
    Asking { since: Instant::now(), patience: LONGEST, stale_will_do }
}

/// Asks, where the server says `outcome` after `delay`.
async fn ask(
    reviews: &Reviews<&'static str>,
    outcome: Outcome,
    delay: Duration,
) -> Answer<&'static str> {
    let review = || async move {
        sleep(delay).await;
        outcome
    };
    reviews.ask(key(1), asking(true), review).await
}

/// A review that must not be needed.
async fn unneeded() -> Outcome {
    panic!("the server is asked again")
}

const GRANTED: Outcome = Ok(ReviewAnswer::Granted("ada"));
const REFUSED: Outcome = Ok(ReviewAnswer::Refused);
const AWAY: Outcome = Err(ReviewFailure::Unreachable);

#[tokio::test(start_paused = true)]
async fn answers_of_both_kinds_are_reused_for_their_time() {
    for outcome in [GRANTED, REFUSED] {
        let reviews = reviews();
        let expected = Answer::Known(outcome.clone().unwrap());
        assert_eq!(ask(&reviews, outcome, Duration::ZERO).await, expected);
        advance(Duration::from_millis(9_990)).await;
        assert_eq!(reviews.ask(key(1), asking(true), unneeded).await, expected);
        advance(Duration::from_millis(10)).await;
        let other = Ok(ReviewAnswer::Granted("eve"));
        assert_eq!(
            ask(&reviews, other, Duration::ZERO).await,
            Answer::Known(ReviewAnswer::Granted("eve"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_asked_once_however_many_wait() {
    let reviews = reviews();
    let asked = Arc::new(AtomicUsize::new(0));
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let (reviews, asked) = (reviews.clone(), Arc::clone(&asked));
            tokio::spawn(async move {
                let review = || async move {
                    asked.fetch_add(1, Ordering::Relaxed);
                    sleep(Duration::from_secs(1)).await;
                    GRANTED
                };
                reviews.ask(key(1), asking(true), review).await
            })
        })
        .collect();
    for answer in waiting {
        assert_eq!(answer.await.unwrap(), Answer::Known(ReviewAnswer::Granted("ada")));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_costs_a_known_reader_less_than_a_second_and_then_nothing() {
    let reviews = reviews();
    ask(&reviews, GRANTED, Duration::ZERO).await;
    advance(TTL).await;
    for (wait, settle) in [(BEFORE_STALE, LONGEST), (Duration::ZERO, LONGEST)] {
        let begun = Instant::now();
        assert_eq!(ask(&reviews, AWAY, LONGEST * 2).await, Answer::Stale("ada"));
        assert_eq!(begun.elapsed(), wait);
        // The review gives up, and the server is known to be away.
        sleep(settle).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_no_refusal_and_prolongs_nothing() {
    let reviews = reviews();
    ask(&reviews, GRANTED, Duration::ZERO).await;
    let granted = Instant::now();
    advance(TTL).await;
    while granted.elapsed() + Duration::from_secs(20) < GRACE {
        assert_eq!(ask(&reviews, AWAY, Duration::ZERO).await, Answer::Stale("ada"));
        sleep(Duration::from_secs(15)).await;
    }
    sleep(Duration::from_secs(20)).await;
    assert_eq!(ask(&reviews, AWAY, Duration::ZERO).await, Answer::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_ends_the_grace_at_once() {
    let reviews = reviews();
    ask(&reviews, GRANTED, Duration::ZERO).await;
    advance(TTL).await;
    assert_eq!(ask(&reviews, REFUSED, Duration::ZERO).await, Answer::Known(ReviewAnswer::Refused));
    advance(TTL).await;
    assert_eq!(ask(&reviews, AWAY, Duration::ZERO).await, Answer::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_to_review_for_us_ends_the_grace() {
    let reviews = reviews();
    ask(&reviews, GRANTED, Duration::ZERO).await;
    advance(TTL).await;
    assert_eq!(ask(&reviews, AWAY, Duration::ZERO).await, Answer::Stale("ada"));
    sleep(Duration::from_millis(1)).await;
    let refuses_us = Err(ReviewFailure::Refused);
    assert_eq!(ask(&reviews, refuses_us.clone(), Duration::ZERO).await, Answer::Stale("ada"));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(ask(&reviews, refuses_us, Duration::ZERO).await, Answer::Unknown);
    assert_eq!(ask(&reviews, AWAY, Duration::ZERO).await, Answer::Unknown, "no review since");
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_of_our_own_right_an_outage_brings_no_stale_answer_back() {
    let reviews = reviews();
    ask(&reviews, GRANTED, Duration::ZERO).await;
    advance(TTL).await;
    let refuses_us = Err(ReviewFailure::Refused);
    assert_eq!(ask(&reviews, refuses_us, Duration::ZERO).await, Answer::Unknown);
    for _ in 0..3 {
        assert_eq!(ask(&reviews, AWAY, Duration::ZERO).await, Answer::Unknown);
        sleep(Duration::from_millis(1)).await;
    }
    // A review that succeeds ends it, whomever it is about.
    reviews.ask(key(2), asking(true), || async { REFUSED }).await;
    assert_eq!(ask(&reviews, AWAY, Duration::ZERO).await, Answer::Stale("ada"));
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_after_an_outage_counts() {
    let reviews = reviews();
    ask(&reviews, GRANTED, Duration::ZERO).await;
    advance(TTL).await;
    ask(&reviews, AWAY, Duration::ZERO).await;
    sleep(Duration::from_secs(1)).await;
    // The outage is over: the new answer arrives while the old one is still given.
    let first = ask(&reviews, REFUSED, Duration::from_millis(1)).await;
    assert_eq!(first, Answer::Stale("ada"));
    sleep(Duration::from_millis(10)).await;
    let next = reviews.ask(key(1), asking(true), unneeded).await;
    assert_eq!(next, Answer::Known(ReviewAnswer::Refused));
}

#[tokio::test(start_paused = true)]
async fn what_changes_something_needs_an_answer_of_now() {
    let reviews = reviews();
    ask(&reviews, GRANTED, Duration::ZERO).await;
    advance(TTL).await;
    let answer = reviews.ask(key(1), asking(false), || async { AWAY }).await;
    assert_eq!(answer, Answer::Unknown);
}

#[tokio::test(start_paused = true)]
async fn strangers_wait_in_few_slots_and_known_readers_do_not() {
    let reviews = reviews();
    ask(&reviews, GRANTED, Duration::ZERO).await;
    advance(TTL).await;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let strangers: Vec<_> = (2..1002)
        .map(|number| {
            let (reviews, running, most) = (reviews.clone(), running.clone(), most.clone());
            tokio::spawn(async move {
                let review = || async move {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    sleep(Duration::from_millis(300)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    REFUSED
                };
                reviews.ask(key(number), asking(true), review).await
            })
        })
        .collect();
    sleep(Duration::from_millis(1)).await;
    let answer = ask(&reviews, GRANTED, Duration::from_millis(1)).await;
    assert_eq!(answer, Answer::Known(ReviewAnswer::Granted("ada")), "it takes no turn");
    for stranger in strangers {
        assert_eq!(stranger.await.unwrap(), Answer::Known(ReviewAnswer::Refused));
    }
    assert_eq!(most.load(Ordering::SeqCst), STRANGERS);
    assert_eq!(reviews.0.state.lock().under_way.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_strangers_pushes_no_known_reader_out() {
    let reviews = reviews();
    ask(&reviews, GRANTED, Duration::ZERO).await;
    for number in 2..1000 {
        reviews.ask(key(number), asking(true), || async { REFUSED }).await;
    }
    let answer = reviews.ask(key(1), asking(true), unneeded).await;
    assert_eq!(answer, Answer::Known(ReviewAnswer::Granted("ada")));
}

#[tokio::test(start_paused = true)]
async fn while_the_server_is_away_a_stranger_waits_a_second_at_most() {
    let reviews = reviews();
    let begun = Instant::now();
    assert_eq!(ask(&reviews, AWAY, LONGEST * 2).await, Answer::Unknown);
    assert_eq!(begun.elapsed(), LONGEST);
    sleep(Duration::from_millis(1)).await;
    let begun = Instant::now();
    assert_eq!(ask(&reviews, AWAY, LONGEST * 2).await, Answer::Unknown);
    assert_eq!(begun.elapsed(), BRIEF);
}

#[tokio::test(start_paused = true)]
async fn a_review_continues_when_its_caller_has_left() {
    let reviews = reviews();
    let slow = ask(&reviews, GRANTED, Duration::from_secs(2));
    assert!(timeout(Duration::from_secs(1), slow).await.is_err());
    sleep(Duration::from_secs(2)).await;
    let answer = reviews.ask(key(1), asking(true), unneeded).await;
    assert_eq!(answer, Answer::Known(ReviewAnswer::Granted("ada")));
}
