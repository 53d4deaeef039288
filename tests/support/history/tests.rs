use super::*;

fn seen(version: u64, name: &str, cidrs: &[&str]) -> Seen {
    let pod_cidrs = cidrs.iter().map(ToString::to_string).collect();
    let (at, name, uid) = (Instant::now(), name.into(), format!("uid-{name}").into());
    Seen { resource_version: version, at, name, uid, pod_cidrs, deleted: false }
}

fn gone(version: u64, name: &str) -> Seen {
    Seen { deleted: true, ..seen(version, name, &[]) }
}

fn patch(node: &str, cidr: &str, version: Option<u64>) -> NodePatch {
    let arrived = Instant::now();
    NodePatch {
        node: node.to_owned(),
        uid: format!("uid-{node}"),
        pod_cidrs: vec![cidr.to_owned()],
        arrived,
        settled: Some(arrived),
        upstream_status: version.map(|_| 200),
        resource_version: version,
        timeout: Some(Duration::from_secs(5)),
    }
}

#[test]
fn a_block_may_pass_on_once_its_node_is_gone() {
    let history =
        [seen(1, "a", &["10.0.0.0/24"]), gone(2, "a"), seen(3, "b", &["10.0.0.0/24", "fd00::/64"])];
    assert_never_shared(&history, &[]);
    let patches = [patch("b", "10.0.0.0/24", Some(3))];
    assert_patches_never_share(&patches, &history, &[]);
}

#[test]
#[should_panic = "at resourceVersion 2"]
fn two_live_nodes_in_one_block_are_found() {
    let history = [seen(1, "a", &["10.0.0.0/24"]), seen(2, "b", &["10.0.0.0/24"])];
    assert_never_shared(&history, &[]);
}

#[test]
#[should_panic = "at resourceVersion 3"]
fn a_block_inside_another_is_found() {
    let history = [
        seen(1, "a", &["10.0.0.0/16"]),
        seen(2, "b", &["10.1.0.0/24"]),
        seen(3, "c", &["10.0.9.0/24"]),
    ];
    assert_never_shared(&history, &[]);
}

#[test]
fn duplicates_that_the_test_made_are_let_pass() {
    let history = [seen(1, "a", &["10.0.0.0/24"]), seen(2, "b", &["10.0.0.0/25"])];
    assert_never_shared(&history, &["a", "b"]);
}

#[test]
#[should_panic = "at resourceVersion 2"]
fn a_foreign_block_is_not_free_for_others() {
    let history = [seen(1, "a", &["10.0.0.0/24"]), seen(2, "b", &["10.0.0.0/25"])];
    assert_never_shared(&history, &["a"]);
}

#[test]
#[should_panic = "was sent while a had"]
fn a_patch_with_the_block_of_a_live_node_is_found_although_it_was_refused() {
    let history = [seen(1, "a", &["10.0.0.0/24"])];
    assert_patches_never_share(&[patch("b", "10.0.0.0/25", None)], &history, &[]);
}

#[test]
#[should_panic = "was under way"]
fn a_patch_with_the_block_of_a_patch_under_way_is_found() {
    let open = NodePatch { settled: None, ..patch("a", "10.0.0.0/24", None) };
    assert_patches_never_share(&[open, patch("b", "10.0.0.0/24", None)], &[], &[]);
}

#[test]
#[should_panic = "was sent while a had"]
fn an_applied_patch_is_ordered_by_resource_version_not_by_clock() {
    let history = [seen(1, "a", &["10.0.0.0/24"]), gone(4, "a")];
    assert_patches_never_share(&[patch("b", "10.0.0.0/24", Some(3))], &history, &[]);
}

/// What the observer hears of an applied PATCH after this time, then of the end of `a`, and a PATCH
/// with the block of `a` that came as long before and was refused.
fn refused_before_the_observer_heard(lag: Duration, early: Duration) {
    let applied = patch("c", "10.0.9.0/24", Some(3));
    let settled = applied.settled.unwrap();
    let end = settled + early + Duration::from_secs(5);
    let heard = |seen: Seen, at: Instant| Seen { at, ..seen };
    let history = [
        heard(seen(1, "a", &["10.0.0.0/24"]), settled),
        heard(seen(3, "c", &["10.0.9.0/24"]), settled + lag),
        heard(gone(4, "a"), end),
    ];
    let mut refused = patch("b", "10.0.0.0/24", None);
    refused.arrived = settled + Duration::from_secs(5);
    assert_patches_never_share(&[applied, refused], &history, &[]);
}

#[test]
fn the_product_may_hear_of_an_end_before_an_observer_that_was_slow_before() {
    refused_before_the_observer_heard(Duration::from_millis(800), Duration::from_millis(700));
}

#[test]
#[should_panic = "was sent while a had"]
fn an_observer_that_was_quick_excuses_nothing() {
    refused_before_the_observer_heard(Duration::from_millis(10), Duration::from_millis(700));
}

#[test]
#[should_panic = "was sent while a had"]
fn an_observer_that_lags_for_seconds_excuses_no_more_than_one() {
    refused_before_the_observer_heard(Duration::from_secs(3), Duration::from_secs(2));
}

#[test]
#[should_panic = "has no timeout"]
fn a_patch_that_the_server_may_carry_out_at_any_time_is_found() {
    assert_patches_end(&[NodePatch { timeout: None, ..patch("a", "10.0.0.0/24", None) }]);
}
