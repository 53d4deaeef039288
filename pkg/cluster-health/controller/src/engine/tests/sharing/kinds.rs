//! Kinds of clusters that are served to one replica and not to another.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_replica_to_which_a_kind_is_not_served_takes_no_share_until_it_is() {
    let world = World::default();
    let first = world.first("a").await;
    let second = world.begin("b");
    // There is nothing to look at for it.
    second.scene.registry.filled();
    for _ in 0..60 {
        sleep(S(1)).await;
        assert_eq!((first.owns(), second.owns()), (CLUSTERS, 0));
    }
    assert_eq!(second.share.check(), Ok(()));
    second.scene.registry.serves();
    sleep(S(15)).await;
    assert!(second.owns() > 5, "{}", second.owns());
    world.assert_well(HANDED_OVER);
}

#[tokio::test(start_paused = true)]
async fn a_share_is_given_up_when_a_kind_stays_away_and_not_for_a_kind_that_comes_late() {
    let world = World::default();
    let (first, second) = world.two().await;
    let share = second.owns();
    first.scene.clusters.ownership.serves("other");
    sleep(S(20)).await;
    assert_eq!(second.owns(), share, "it may be about to come");
    sleep(S(25)).await;
    assert_eq!((first.owns(), second.owns()), (CLUSTERS, 0));
    second.scene.clusters.ownership.serves("other");
    sleep(S(15)).await;
    assert_eq!(second.owns(), share);
    // Neither has all kinds: somebody has to look at those that there are.
    first.scene.clusters.ownership.serves("of-one");
    second.scene.clusters.ownership.serves("of-the-other");
    sleep(S(60)).await;
    assert_eq!((first.owns() + second.owns(), second.owns()), (CLUSTERS, share));
    world.assert_well(HANDED_OVER);
}
