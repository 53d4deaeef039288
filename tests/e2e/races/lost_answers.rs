//! The outcome of a PATCH is unknown: it is read before anything else, and only ever sent again
//! as it was (`rule:unknown-outcome-ends`, `rule:retry-repeats-the-claim`).

use http::Method;
use tests::fault_proxy::Canned;
use tests::{Cut, Fault, Match, mk_node};

use crate::scene::{Scene, patch_of, settled, until_used};

/// Four blocks.
const POOL: &str = "10.0.0.0/22";

#[tokio::test(flavor = "multi_thread")]
async fn the_block_of_a_patch_with_unknown_outcome_goes_to_no_other_node() {
    let scene = Scene::set().await;
    let manager = scene.start(&format!("--cluster-cidr={POOL}")).await;
    // Written: adopted, not sent again.
    let applied = [
        Fault::LoseAnswer(Cut::Stream),
        Fault::LoseAnswer(Cut::Connection),
        Fault::ReplaceAnswer(Canned::status(500)),
    ];
    for (fault, name) in applied.into_iter().zip(["stream", "connection", "failure"]) {
        scene.proxy.on(patch_of(name)).times(1).then(fault);
        scene.add(name).await;
        settled(&manager).await;
        assert_eq!(scene.patches(name).len(), 1, "{name}");
        let events = scene.events(name, "CIDRAssignmentFailed").await;
        assert!(events.is_empty(), "nothing was refused: {events:?}");
    }
    scene.remove("failure").await;
    // Not written: read, then sent again as it was, whatever else happens to it.
    for fault in [
        Fault::Reset(Cut::Stream),
        Fault::Answer(Canned::status(429).retry_after(1)),
        Fault::status(422),
        Fault::Reset(Cut::Connection),
    ] {
        scene.proxy.on(patch_of("again")).times(1).then(fault);
    }
    assert_eq!(scene.add("again").await, ["10.0.3.0/24"]);
    settled(&manager).await;
    assert_eq!(scene.patches("again").len(), 5);
    let [first, second, ..] = &scene.methods("again")[..] else { panic!("five PATCHes") };
    assert_eq!((first, second), (&Method::PATCH, &Method::GET));
    until_used(&manager, POOL, 3.0).await;

    // The last block waits for its outcome while another Node wants it.
    let blind = scene.proxy.on(Match::node_gets()).then(Fault::status(500));
    let unknown = scene.proxy.on(patch_of("a")).times(1).then(Fault::status(500));
    mk_node("a").create(&scene.client).await;
    unknown.hit(1).await;
    scene.starves("b").await;
    blind.hit(3).await;
    assert_eq!(scene.patches("a").len(), 1, "sent again without a read");
    blind.remove();
    assert_eq!(scene.assigned("a").await, ["10.0.2.0/24"]);
    scene.remove("a").await;
    assert_eq!(scene.assigned("b").await, ["10.0.2.0/24"]);
    settled(&manager).await;
    scene.end();
}
