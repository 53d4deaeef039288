//! Hundreds of objects, two replicas that are ended in turn, users who write at the same time, lost
//! answers, and kinds that come and go.

use futures::join;
use objects::Dynamic;
use sample::{SHIPMENTS, VANS};
use tests::Process;
use tests::poll::poll;

use crate::audit::Audit;
use crate::harbour::{Harbour, change_all, make_shipments, make_vans};
use crate::replicas::{End, Replicas};
use crate::scene::Scene;

const COUNT: usize = 400;
const CARRIERS: usize = 20;
/// Changed by users while leaders come and go.
const CHANGED: usize = 150;
/// Writes of a leader before it is ended: in the midst of the work.
const TERM: usize = 150;

#[tokio::test(flavor = "multi_thread")]
async fn no_update_is_lost_and_no_ex_leader_writes_while_leaders_users_and_kinds_come_and_go() {
    let scene = Scene::set().await;
    make_vans(&scene, CARRIERS).await;
    let mut replicas = Replicas::start(&scene.plane).await;
    let terms = async {
        make_shipments(&scene, 0, COUNT, CARRIERS).await;
        for how in [End::Kill, End::Terminate, End::Suspend, End::Kill] {
            let mut is_ended = false;
            while !is_ended {
                let leader = replicas.leader().await;
                replicas.until_written(leader, TERM).await;
                is_ended = replicas.end(leader, how).await;
            }
        }
    };
    join!(terms, users(&scene));
    let (harbour, took) =
        Harbour::until(&scene, "all is shipped", |now| now.all_shipped(COUNT)).await;
    eprintln!("all shipped {took:?} after the last leader was ended");
    harbour.assert_nothing_lost(CHANGED);
    statuses_were_written_once_each(&replicas, &harbour);

    carriers_come_and_go(&scene, &replicas).await;
    shipments_come_and_go(&scene).await;
    let mut is_ended = false;
    while !is_ended {
        let leader = replicas.leader().await;
        let stale = "sample_stale_reads_total";
        let stale = replicas.manager(leader).until_metric(stale, &[], |now| now >= 0.0).await;
        assert!(stale == 0.0, "a pass worked from before its own last write");
        is_ended = replicas.end(leader, End::Terminate).await;
    }

    let audit = Audit::of(&replicas.proxies());
    audit.assert_guarded();
    eprintln!("{} writes, each by its leader", audit.assert_written_by_leaders());
}

/// The status counts its own writes, so that one that was lost or done twice shows.
fn statuses_were_written_once_each(replicas: &Replicas<'_>, harbour: &Harbour) {
    let audit = Audit::of(&replicas.proxies());
    let counted = audit.status_writes(&SHIPMENTS.collection_path(Some("default")));
    for (name, shipment) in &harbour.shipments {
        let reported = shipment["status"]["writes"].as_u64();
        assert_eq!(reported, counted.get(name).copied(), "{name}: {}", shipment["status"]);
    }
}

/// Runs the users from the moment when all objects exist.
async fn users(scene: &Scene) {
    let client = scene.objects::<Dynamic>(&SHIPMENTS);
    let last = format!("default/s{:04}", COUNT - 1);
    poll("the last shipment is there", async || client.read(&last).await.unwrap()).await;
    change_all(&client, CHANGED).await;
}

/// The kind that was learnt at run time is taken away, and given back.
async fn carriers_come_and_go(scene: &Scene, replicas: &Replicas<'_>) {
    scene.remove(&VANS).await;
    let stranded = |now: &Harbour| now.in_phase("NoCarrier") == COUNT;
    let (_, took) = Harbour::until(scene, "no shipment has a carrier", stranded).await;
    eprintln!("all stranded {took:?} after the kind was gone");
    let manager = page_shows(replicas, "Van.sample.example.org dormant 0\n").await;
    let (ready, checks) = manager.get("/readyz?verbose").await.unwrap();
    assert_eq!(ready, 200, "a dormant kind is healthy: {checks}");

    scene.install(&VANS).await;
    let began = tokio::time::Instant::now();
    page_shows(replicas, "Van.sample.example.org watched 0\n").await;
    eprintln!("watched {:?} after the kind was served", began.elapsed());
    make_vans(scene, CARRIERS).await;
    let (_, took) =
        Harbour::until(scene, "all is loaded again", |now| now.all_shipped(COUNT)).await;
    eprintln!("all loaded again {took:?} after the carriers were back");
}

/// The main kind is taken away, which deletes its objects in order, and given back.
async fn shipments_come_and_go(scene: &Scene) {
    scene.remove(&SHIPMENTS).await;
    let (_, took) = Harbour::until(scene, "nothing is left", Harbour::is_empty).await;
    eprintln!("nothing is left {took:?} after the kind was gone");
    scene.install(&SHIPMENTS).await;
    make_shipments(scene, 0, 10, CARRIERS).await;
    Harbour::until(scene, "the new ones are shipped", |now| now.all_shipped(10)).await;
}

/// Waits until the page of the leader shows this text; returns the leader.
async fn page_shows<'a>(replicas: &'a Replicas<'_>, text: &str) -> &'a Process {
    poll(&format!("the page shows {text:?}"), async || {
        for manager in replicas.managers() {
            if manager.get(sample::PAGE).await.is_ok_and(|(_, page)| page == text) {
                return Some(manager);
            }
        }
        None
    })
    .await
}
