//! Memory that the allocator keeps for Nodes that are no longer unassigned.

use super::*;

#[test]
fn what_held_the_first_nodes_of_a_cluster_is_given_back_in_few_steps() {
    const NODES: usize = 5000;
    let mut allocator = small();
    let names: Vec<String> = (0..NODES).map(|index| index.to_string()).collect();
    for name in &names {
        drop(allocator.observe(&node(name, name), now()));
    }
    assert!(allocator.unassigned.capacity() >= NODES);
    let (mut before, mut steps) = (allocator.unassigned.capacity(), 0);
    for (gone, name) in names.iter().enumerate() {
        drop(allocator.gone(name, now()));
        let (left, capacity) = (NODES - gone - 1, allocator.unassigned.capacity());
        assert!(capacity <= WORTH_SHRINKING.max(4 * left), "{capacity} for {left}");
        // An entry that leaves may make its place unusable until the table is rebuilt.
        steps += usize::from(before > capacity + 1);
        before = capacity;
    }
    assert!((1..=4).contains(&steps), "{steps}");
}

#[test]
fn nothing_is_kept_of_what_was_told_about_a_node_that_is_gone() {
    let mut allocator = small();
    for name in ["a", "b"] {
        let effects = allocator.observe(&node(name, name).cidrs(&["10.0.0.0/30"]), now());
        for notice in &effects.notices {
            assert!(allocator.notice_due(notice, Duration::from_secs(60), now()));
        }
    }
    for name in ["a", "b"] {
        drop(allocator.gone(name, now()));
    }
    assert_eq!(allocator.findings.told_nodes(), 0);
}
