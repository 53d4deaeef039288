//! The tests that every flavour has to pass.

use super::*;

pub(crate) async fn a_cluster_is_probed_and_written_from_its_creation_to_its_deletion<
    R: Conforming,
>() {
    let bench = Bench::<R>::start(R::object("u1", 1, 1, "")).await;
    bench.look().await.unwrap();
    assert_eq!(bench.written().as_deref(), Some("Ready"));
    bench.change("DELETED", R::object("u1", 9, 1, "")).await;
    let probes = bench.scene.members.probes("ns/a");
    bench.look().await.unwrap();
    assert_eq!(bench.scene.members.probes("ns/a"), probes);
}

pub(crate) async fn a_new_credential_takes_the_place_of_the_old_one_and_nothing_else_does<
    R: Conforming,
>() {
    let bench = Bench::<R>::start(R::object("u1", 1, 1, "")).await;
    for (version, credential, made) in [(9, 1, 1), (10, 2, 2)] {
        bench.change("MODIFIED", R::object("u1", version, credential, "")).await;
        bench.look().await.unwrap();
        assert_eq!(bench.scene.members.made(), made);
    }
    assert!(!bench.scene.members.is_held("ns/a", 1), "the old client is gone");
}

/// rule:a-pause-knows-nothing
pub(crate) async fn a_locked_cluster_says_so_and_one_that_is_left_alone_says_nothing<
    R: Conforming,
>() {
    let locked = if R::LOCKS { "locked" } else { "left alone" };
    let bench = Bench::<R>::start(R::object("u1", 1, 1, locked)).await;
    bench.look().await.unwrap();
    assert_eq!(bench.written().as_deref(), R::LOCKS.then_some("paused"));
    bench.change("MODIFIED", R::object("u1", 9, 1, "")).await;
    bench.look().await.unwrap();
    assert_eq!(bench.written().as_deref(), Some("Ready"));
    bench.change("MODIFIED", R::object("u1", 10, 1, "left alone")).await;
    let writes = bench.scene.api.writes();
    bench.scene.members.set("ns/a", Answer::Failing);
    bench.look().await.unwrap();
    assert_eq!(bench.scene.api.writes(), writes);
}

/// rule:one-prober-per-uid
pub(crate) async fn another_object_of_the_same_name_is_another_cluster<R: Conforming>() {
    for is_deletion_seen in [true, false] {
        let bench = Bench::<R>::start(R::object("u1", 1, 1, "")).await;
        bench.look().await.unwrap();
        if is_deletion_seen {
            bench.change("DELETED", R::object("u1", 9, 1, "")).await;
        }
        bench.scene.members.set("ns/a", Answer::Failing);
        bench.change("ADDED", R::object("u2", 10, 1, "")).await;
        bench.look().await.unwrap();
        assert_eq!(bench.written().as_deref(), Some("NotReady"), "the first result is published");
    }
}

pub(crate) async fn a_foreign_status_is_written_over<R: Conforming>() {
    let bench = Bench::<R>::start(R::object("u1", 1, 1, "")).await;
    bench.look().await.unwrap();
    let writes = bench.scene.api.writes();
    bench.change("MODIFIED", R::foreign(R::object("u1", 9, 1, ""))).await;
    assert_eq!(bench.scene.api.writes(), writes + 1);
}

pub(crate) async fn a_cluster_without_a_credential_is_held_back_and_one_whose_read_failed_is_tried_again<
    R: Conforming,
>() {
    let bench = Bench::<R>::start(R::object("u1", 1, 0, "")).await;
    assert_eq!(bench.look().await.unwrap(), Next::After(S(60)));
    let is_held_back = || {
        let known = bench.scene.clusters.known();
        known.iter().any(|(_, known)| matches!(known, Known::HeldBack(_)))
    };
    assert_eq!((bench.scene.members.made(), is_held_back()), (0, true));
    bench.change("MODIFIED", R::object("u1", 9, IN_SECRET, "")).await;
    bench.refused.store(true, Ordering::Relaxed);
    assert!(bench.look().await.is_err());
    let cluster = MemberId { uid: "u1".into(), key: "ns/a".into() };
    assert!(bench.pipeline.registry.knows(&cluster), "the engine knows the cluster all the same");
    assert!(!is_held_back());
    bench.refused.store(false, Ordering::Relaxed);
    bench.look().await.unwrap();
    assert_eq!(bench.written().as_deref(), Some("Ready"));
}

/// rule:our-outage-is-not-theirs, rule:a-restart-changes-nothing
pub(crate) async fn a_cluster_with_evidence_beat_is_judged_by_its_lease_without_probes_and_credential<
    R: Conforming,
>() {
    let annotated = |version, evidence: &str| {
        let mut object = R::object("u1", version, 0, "");
        object["metadata"]["annotations"] = json!({"infra-controller-manager/evidence": evidence});
        object
    };
    let bench = Bench::<R>::start(annotated(1, "beat")).await;
    let (scene, flavour) = (&bench.scene, Arc::clone(&bench.pipeline.flavour));
    let renew = |time: &str| {
        let said = Renewal { time: Some(time.into()), ..Renewal::default() };
        scene.clusters.beats.renew(&Arc::from(format!("{}-u1", flavour.name())), said);
    };
    let cluster = MemberId { uid: "u1".into(), key: "ns/a".into() };
    renew("1");
    scene.clusters.beats.set_live(true);
    bench.look().await.unwrap();
    assert!(bench.pipeline.registry.knows(&cluster), "without a credential it is not held back");
    assert_eq!(bench.written(), None, "its Lease may be old");
    renew("2");
    bench.look().await.unwrap();
    assert_eq!(bench.written().as_deref(), Some("Ready"));
    sleep(S(200)).await;
    assert_eq!(bench.written().as_deref(), Some("HeartbeatStopped"));
    assert!(scene.api.events().iter().any(|it| it == "HeartbeatStopped"));
    assert_eq!((scene.members.probes("ns/a"), scene.members.made()), (0, 0));
    renew("3");
    bench.look().await.unwrap();
    assert_eq!(bench.written().as_deref(), Some("Ready"));

    // Probed again: its Lease counts for nothing.
    let mut probed = R::object("u1", 9, 1, "");
    probed["metadata"]["annotations"] = json!({"infra-controller-manager/evidence": "probe"});
    scene.members.set("ns/a", Answer::Unreachable);
    bench.change("MODIFIED", probed).await;
    renew("4");
    bench.look().await.unwrap();
    sleep(S(40)).await;
    assert_eq!(bench.written().as_deref(), Some("Unreachable"));
    // And not any more; a client that it had is gone.
    bench.change("MODIFIED", annotated(10, "beat")).await;
    renew("5");
    bench.look().await.unwrap();
    assert_eq!(bench.written().as_deref(), Some("Ready"));
    assert!(flavour.members().connections.client(&cluster).is_none());
    assert!(!scene.members.is_held("ns/a", 1));
}
