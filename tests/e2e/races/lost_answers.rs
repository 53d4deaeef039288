//! The outcome of a PATCH is unknown: it is read before anything else, and only ever sent again
//! as it was (`rule:unknown-outcome-ends`, `rule:retry-repeats-the-claim`).

use http::Method;
use tests::fault_proxy::Canned;
use tests::{Allocator, Cut, Fault, Match, Process, mk_node};

use crate::scene::{Scene, patch_of, settled, until_used};

const POOL: &str = "10.0.0.0/22";

/// The first PATCH of a new Node meets each of these faults in turn; the second element says
/// whether the server has applied it.
async fn each_is_survived(allocator: Allocator, faults: Vec<(Fault, bool)>) {
    let scene = Scene::set_for(allocator).await;
    let manager = scene.start(&format!("--cluster-cidr={POOL}")).await;
    let mut used = 0_u8;
    for (fault, applied) in faults {
        used += 1;
        let node = format!("n-{used}");
        is_survived(&scene, &manager, &node, fault, applied).await;
        until_used(&manager, POOL, used.into()).await;
        let events = scene.events(&node, "CIDRAssignmentFailed").await;
        assert!(events.is_empty(), "nothing was refused: {events:?}");
    }
    scene.end();
}

async fn is_survived(scene: &Scene, manager: &Process, node: &str, fault: Fault, applied: bool) {
    let case = format!("{node}, {fault:?}");
    let rule = scene.proxy.on(patch_of(node)).times(1).then(fault);
    let cidrs = scene.add(node).await;
    settled(manager).await;
    assert_eq!(rule.hits(), 1, "{case}");
    for patch in scene.patches(node) {
        assert_eq!(patch.pod_cidrs, cidrs, "{case}");
    }
    let methods = scene.methods(node);
    if applied {
        // The watch may have shown the result before the read.
        let patches = methods.iter().filter(|method| **method == Method::PATCH).count();
        assert_eq!(patches, 1, "{case}: adopted, not sent again: {methods:?}");
    } else {
        let expected = [Method::PATCH, Method::GET, Method::PATCH];
        assert_eq!(methods, expected, "{case}: read, then sent again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_whose_answer_is_lost_after_it_was_applied_is_adopted() {
    for allocator in Allocator::ALL {
        let faults = [Cut::Stream, Cut::Connection].map(|cut| (Fault::LoseAnswer(cut), true));
        each_is_survived(allocator, faults.into()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_500_is_survived_whether_the_patch_was_applied_or_not() {
    for (allocator, codes) in [
        (Allocator::Range, &[500, 503][..]),
        (Allocator::MultiCidr, &[500]),
        (Allocator::Cloud, &[500]),
    ] {
        let both = |code: &u16| {
            let applied = Fault::ReplaceAnswer(Canned::status(*code));
            [(Fault::status(*code), false), (applied, true)]
        };
        each_is_survived(allocator, codes.iter().flat_map(both).collect()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_block_of_a_patch_with_unknown_outcome_goes_to_no_other_node() {
    for allocator in Allocator::ALL {
        block_stays_with_its_patch(allocator).await;
    }
}

async fn block_stays_with_its_patch(allocator: Allocator) {
    let scene = Scene::set_for(allocator).await;
    let manager = scene.start("--cluster-cidr=10.0.0.0/24").await;
    let blind = scene.proxy.on(Match::node_gets()).then(Fault::status(500));
    let unknown = scene.proxy.on(patch_of("a")).times(1).then(Fault::status(500));
    scene.mk_node("a").create(&scene.client).await;
    unknown.hit(1).await;
    scene.starves("b").await;
    blind.hit(3).await;
    assert_eq!(scene.patches("a").len(), 1, "sent again without a read");
    blind.remove();
    assert_eq!(scene.assigned("a").await, ["10.0.0.0/24"]);
    scene.remove("a").await;
    assert_eq!(scene.assigned("b").await, ["10.0.0.0/24"]);
    settled(&manager).await;
    scene.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_patches_of_a_node_carry_the_same_cidrs_whatever_happens_to_them() {
    let scene = Scene::set().await;
    let pools = "--cluster-cidr=10.0.0.0/22,fd00::/62";
    let manager = scene.start(pools).await;
    for fault in [
        Fault::Reset(Cut::Stream),
        Fault::status(500),
        Fault::Answer(Canned::status(429).retry_after(1)),
        Fault::status(422),
        Fault::Reset(Cut::Connection),
    ] {
        scene.proxy.on(patch_of("a")).times(1).then(fault);
    }
    let late = scene.proxy.on(patch_of("a")).hold();
    mk_node("a").create(&scene.client).await;
    late.arrived(1).await;
    // Others take their blocks meanwhile.
    scene.add("b").await;
    scene.add("c").await;
    late.release();
    assert_eq!(scene.assigned("a").await, ["10.0.0.0/24", "fd00::/64"]);
    assert!(scene.patches("a").len() >= 6);
    settled(&manager).await;
    until_used(&manager, POOL, 3.0).await;
    scene.end();
}
