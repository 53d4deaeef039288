//! Status writes to a server that says by 429 how many it takes.

use std::sync::atomic::Ordering;
use std::time::Duration;

use health::Health;
use tokio::time::{Instant, sleep};

use super::S;
use super::scene::{Answer, Scene, cluster};

const TICK: Duration = Duration::from_millis(100);
/// How long the server takes for a write.
const WRITE: Duration = Duration::from_millis(20);

/// rule:refused-writes-delay-no-others, rule:writes-follow-the-servers-429s
#[tokio::test(start_paused = true)]
async fn writes_slow_down_to_what_the_server_takes_and_a_change_overtakes_the_others() {
    let scene = Scene::new(0);
    scene.api.delay_writes(WRITE);
    scene.add("ns/changed", 1);
    sleep(S(15)).await;
    // 8 at once are 400 per second; 3,000 first results come at once.
    scene.api.allow_at_once(Some(8));
    scene.members.set("ns/changed", Answer::Failing);
    sleep(S(15)).await;
    let begun = Instant::now();
    (0..6000).for_each(|it| scene.add(&format!("ns/new{it}"), 1));
    while scene.health("ns/changed") != Some(Health::NotReady) {
        sleep(TICK).await;
    }
    let decided = Instant::now();
    while scene.api.written("ns/changed") != Some("NotReady".to_owned()) {
        sleep(TICK).await;
    }
    let (took, waiting) = (decided.elapsed(), scene.api.writes());
    assert!(waiting < 5500, "{waiting} writes of 6,000 are done already");
    assert!(took < S(3), "a change took {took:?}");
    while scene.api.writes() < 6002 {
        sleep(TICK).await;
    }
    // 6,000 writes need 15 s.
    let (took, refused) = (begun.elapsed(), scene.api.throttled());
    assert!(took < S(30), "first results took {took:?}, {refused} were refused");
    assert!(refused < 600, "{refused} of 6,000 writes were refused");
}

/// rule:writes-follow-the-servers-429s
#[tokio::test(start_paused = true)]
async fn writes_are_as_many_as_before_once_the_server_takes_them() {
    let scene = Scene::new(0);
    scene.api.delay_writes(WRITE);
    let keys = || (0..4000).map(|it| format!("ns/c{it}"));
    keys().for_each(|key| scene.add(&key, 1));
    sleep(S(30)).await;
    let change_all = |facts| {
        scene.facts.store(facts, Ordering::Relaxed);
        keys().for_each(|key| scene.registry.facts_changed(&cluster(&key, 1)));
    };
    scene.api.allow_at_once(Some(0));
    change_all(1);
    sleep(S(60)).await;
    // One of 64 places after the other is closed, then one write a second asks.
    let refused = scene.api.throttled();
    assert!((60..=300).contains(&refused), "{refused} writes were refused in a minute");
    let (begun, writes) = (Instant::now(), scene.api.writes());
    scene.api.allow_at_once(None);
    while scene.api.writes() < writes + 4000 {
        sleep(TICK).await;
    }
    assert_eq!(scene.api.most_under_way(), 64);
    let took = begun.elapsed();
    assert!(took < S(6), "4,000 writes took {took:?}");
}
