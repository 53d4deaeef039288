//! Leases that a replica cannot read, or sweep, and those that it does not write yet.

use super::*;

/// rule:no-claim-before-a-read
#[tokio::test(start_paused = true)]
async fn a_replica_that_may_not_read_the_leases_stops_nobody_and_is_not_ready() {
    let world = World::default();
    let first = world.first("a").await;
    let second = world.start("b");
    second.blind.store(true, Ordering::Relaxed);
    for _ in 0..40 {
        sleep(S(1)).await;
        assert_eq!((first.owns(), second.owns()), (CLUSTERS, 0));
    }
    let refused = second.share.check().expect_err("it reads nothing");
    assert!(refused.contains("cannot share the clusters"), "{refused}");
    assert_eq!(first.share.check(), Ok(()));
    second.blind.store(false, Ordering::Relaxed);
    sleep(S(15)).await;
    assert!(second.owns() > 5, "{}", second.owns());
    assert_eq!(second.share.check(), Ok(()));
    world.assert_well(HANDED_OVER);
}

/// rule:no-share-before-the-first-list
#[tokio::test(start_paused = true)]
async fn a_replica_takes_no_share_before_its_flavours_can_look_at_clusters() {
    let world = World::default();
    let first = world.first("a").await;
    let second = world.begin("b");
    sleep(S(60)).await;
    assert_eq!((first.owns(), second.owns()), (CLUSTERS, 0));
    second.scene.registry.serves();
    // Twice from one flavour counts once.
    second.scene.registry.clone().filled();
    second.scene.registry.filled();
    sleep(S(15)).await;
    assert!(second.owns() > 5, "{}", second.owns());
    world.assert_well(HANDED_OVER);
}

/// rule:one-owner-at-a-time
#[tokio::test(start_paused = true)]
async fn a_replica_whose_clock_stood_still_reads_the_others_before_it_goes_on() {
    let world = World::default();
    let only = world.first("a").await;
    only.blind.store(true, Ordering::Relaxed);
    // As after a suspend, which the monotonic clock does not show.
    only.share.fence.close();
    sleep(S(15)).await;
    assert_eq!(only.share.fence.check(), Ok(()), "its lease is renewed");
    assert_eq!(only.owns(), 0, "it knows nothing of the others");
    only.blind.store(false, Ordering::Relaxed);
    sleep(S(5)).await;
    assert_eq!(only.owns(), 0, "somebody may have come and lost its lease meanwhile");
    sleep(S(35)).await;
    assert_eq!(only.owns(), CLUSTERS);
}

/// rule:one-owner-at-a-time
#[tokio::test(start_paused = true)]
async fn leases_that_cannot_be_swept_delay_neither_renewals_nor_takeovers() {
    let world = World::default();
    let survivor = world.start("a");
    let others = ["b", "c", "d", "e", "f", "g", "h"].map(|name| world.start(name));
    sleep(S(45)).await;
    world.sweeps_hang.store(true, Ordering::Relaxed);
    others.into_iter().for_each(Replica::kill);
    sleep(S(45)).await;
    for _ in 0..60 {
        sleep(S(1)).await;
        assert_eq!(survivor.owns(), CLUSTERS);
    }
    world.assert_well(INHERITED);
}

/// rule:one-owner-at-a-time
#[tokio::test(start_paused = true)]
async fn a_replica_that_comes_after_somebody_deleted_a_lease_does_not_probe_beside_its_holder() {
    for has_witness in [false, true] {
        let world = World::default();
        world.members.take(Duration::from_millis(700));
        let first = world.first("a").await;
        let witness = has_witness.then(|| world.start("b"));
        sleep(S(15)).await;
        // What it hears of the leases it hears from now on, and not at all for a while.
        first.cut_off.store(true, Ordering::Relaxed);
        world.leases.remove("a");
        let newcomer = world.start("c");
        sleep(S(10)).await;
        assert!(first.owns() > 5, "its rights last");
        first.cut_off.store(false, Ordering::Relaxed);
        sleep(S(60)).await;
        let witnessed = witness.as_ref().map_or(0, Replica::owns);
        assert!(first.owns() > 5 && newcomer.owns() > 5);
        assert_eq!(first.owns() + witnessed + newcomer.owns(), CLUSTERS);
        world.assert_well(INHERITED);
    }
}

/// rule:a-share-ends-by-time
#[tokio::test(start_paused = true)]
async fn a_server_that_takes_eight_seconds_for_each_answer_ends_no_share() {
    let world = World::default();
    let (first, second) = world.two().await;
    world.slow.store(8, Ordering::Relaxed);
    for _ in 0..180 {
        sleep(S(1)).await;
        assert_eq!(first.owns() + second.owns(), CLUSTERS);
    }
    let share = first.owns();
    let third = world.start("c");
    for _ in 0..90 {
        sleep(S(1)).await;
        assert!(first.owns() >= share / 3, "what stays with it is never given up");
    }
    assert!(third.owns() > 5, "{}", third.owns());
    assert_eq!(first.owns() + second.owns() + third.owns(), CLUSTERS);
    world.assert_well(INHERITED);
}
