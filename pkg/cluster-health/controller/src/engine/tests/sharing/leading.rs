//! The leader of replicas that do not share, next to replicas that do.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_leader_without_the_right_to_leases_begins_at_once_and_is_seen_when_it_has_it() {
    let world = World::default();
    world.refused.store(true, Ordering::Relaxed);
    let leader = world.leader();
    sleep(S(2)).await;
    assert_eq!(leader.owns(), CLUSTERS);
    sleep(S(120)).await;
    assert_eq!((leader.owns(), leader.share.check()), (CLUSTERS, Ok(())));
    assert!(!leader.scene.metrics().contains("clusterhealth_shard_replicas"), "no replica shares");
    world.refused.store(false, Ordering::Relaxed);
    sleep(S(12)).await;
    assert_eq!(leader.owns(), CLUSTERS);
    let second = world.start("b");
    sleep(S(15)).await;
    assert!(leader.owns() > 5 && second.owns() > 5);
    assert_eq!(leader.owns() + second.owns(), CLUSTERS);
    assert_eq!(leader.scene.metric("clusterhealth_shard_moves_total{direction=\"taken\"}"), 0);
    world.assert_well(HANDED_OVER);
}

/// rule:moves-publish-nothing
#[tokio::test(start_paused = true)]
async fn replicas_that_share_follow_a_leader_that_probes_all_and_the_other_way_round() {
    let world = World::default();
    world.members.take(Duration::from_millis(700));
    world.refused.store(true, Ordering::Relaxed);
    let leader = world.leader();
    sleep(S(2)).await;
    world.refused.store(false, Ordering::Relaxed);
    sleep(S(20)).await;
    let sharing = world.start("b");
    sleep(S(15)).await;
    leader.release().await;
    sleep(S(3)).await;
    assert_eq!(sharing.owns(), CLUSTERS);
    // The standby of the old kind leads for a while.
    let leader = world.leader();
    sleep(S(15)).await;
    assert!(leader.owns() > 5 && leader.owns() < CLUSTERS);
    leader.release().await;
    let second = world.start("c");
    sleep(S(40)).await;
    assert_eq!(sharing.owns() + second.owns(), CLUSTERS);
    sharing.release().await;
    second.release().await;
    let leader = world.leader();
    sleep(S(5)).await;
    assert_eq!(leader.owns(), CLUSTERS);
    sleep(S(15)).await;
    world.assert_well(HANDED_OVER);
}

#[tokio::test(start_paused = true)]
async fn the_next_leader_goes_on_at_once_with_the_lease_of_one_that_was_killed() {
    let world = World::default();
    world.refused.store(true, Ordering::Relaxed);
    let first = world.leader();
    sleep(S(2)).await;
    world.refused.store(false, Ordering::Relaxed);
    sleep(S(30)).await;
    first.kill();
    let next = world.leader();
    sleep(S(2)).await;
    assert_eq!(next.owns(), CLUSTERS);
    sleep(S(15)).await;
    world.assert_well(HANDED_OVER);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_shares_with_nobody_probes_on_while_the_server_of_the_leases_is_dead() {
    let world = World::default();
    let leader = world.leader();
    sleep(S(3)).await;
    assert_eq!(leader.owns(), CLUSTERS, "the first replica does not wait");
    leader.cut_off.store(true, Ordering::Relaxed);
    for _ in 0..120 {
        sleep(S(1)).await;
        assert_eq!(leader.owns(), CLUSTERS);
    }
    world.assert_well(HANDED_OVER);
}

/// rule:one-owner-at-a-time, rule:no-claim-before-a-read
#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_read_the_leases_for_a_while_takes_nothing_from_a_replica_that_can() {
    let world = World::default();
    let sharing = world.first("b").await;
    let leader = world.leader();
    leader.cut_off.store(true, Ordering::Relaxed);
    for _ in 0..40 {
        sleep(S(1)).await;
        assert_eq!((leader.owns(), sharing.owns()), (0, CLUSTERS));
    }
    leader.cut_off.store(false, Ordering::Relaxed);
    sleep(S(25)).await;
    assert!(leader.owns() > 5 && sharing.owns() > 5);
    assert_eq!(leader.owns() + sharing.owns(), CLUSTERS);
    world.assert_well(HANDED_OVER);
}

/// rule:one-owner-at-a-time
#[tokio::test(start_paused = true)]
async fn a_leader_that_never_reads_the_leases_begins_when_replicas_that_share_have_ended() {
    const UNREAD: &str = "clusterhealth_shard_leases_unread";
    let world = World::default();
    world.members.take(Duration::from_millis(700));
    let sharing = world.first("b").await;
    let leader = world.leader();
    for replica in [&sharing, &leader] {
        replica.cut_off.store(true, Ordering::Relaxed);
    }
    let mut unowned = 0;
    while leader.owns() == 0 {
        sleep(S(1)).await;
        unowned += u64::from(sharing.owns() == 0);
        assert!(leader.owns() == 0 || sharing.owns() == 0);
        assert!(unowned < 40, "the members are probed by none");
    }
    // The first failure is a request that got no answer for 10 s.
    assert!(unowned > 15, "{unowned}");
    assert_eq!((leader.owns(), leader.scene.metric(UNREAD)), (CLUSTERS, 1));
    assert_eq!(leader.share.check(), Ok(()), "it is ready");
    sleep(S(60)).await;
    for replica in [&sharing, &leader] {
        replica.cut_off.store(false, Ordering::Relaxed);
    }
    sleep(S(60)).await;
    assert_eq!(leader.owns() + sharing.owns(), CLUSTERS);
    assert_eq!(leader.scene.metric(UNREAD), 0);
    world.assert_well(INHERITED);
}

#[tokio::test(start_paused = true)]
async fn a_leader_begins_with_its_first_read_of_the_leases() {
    let world = World::default();
    let leader = world.leader();
    leader.cut_off.store(true, Ordering::Relaxed);
    sleep(S(25)).await;
    assert_eq!(leader.owns(), 0, "others may have the clusters");
    leader.cut_off.store(false, Ordering::Relaxed);
    sleep(S(12)).await;
    assert_eq!(leader.owns(), CLUSTERS);
}

/// rule:no-share-before-the-first-list
#[tokio::test(start_paused = true)]
async fn a_leader_takes_nothing_from_others_before_it_can_look_at_clusters() {
    let world = World::default();
    let sharing = world.first("b").await;
    let leader = world.launch("", 1);
    leader.scene.registry.serves();
    sleep(S(60)).await;
    assert_eq!((leader.owns(), sharing.owns()), (0, CLUSTERS));
    leader.scene.registry.filled();
    sleep(S(15)).await;
    assert!(leader.owns() > 5, "{}", leader.owns());
    world.assert_well(HANDED_OVER);
}
