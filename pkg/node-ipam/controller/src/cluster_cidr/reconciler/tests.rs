//! Texts and times of a ClusterCIDR's status.

use super::*;

mod fields;

fn facts() -> Facts {
    let range = |cidr: &str, blocks, used| RangeUse { cidr: cidr.parse().unwrap(), blocks, used };
    let ranges = vec![range("10.0.0.0/22", 4, 1), range("fd00::/56", 1 << 64, 1)];
    Facts { error: None, terminating: None, draining: None, ranges, generation: 3 }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Type, status, reason, message.
fn said(status: &ClusterCidrStatus) -> Vec<(&str, &str, &str, &str)> {
    let conditions = status.conditions.iter();
    conditions.map(|it| (&*it.kind, &*it.status, &*it.reason, &*it.message)).collect()
}

#[test]
fn one_in_use_is_ready_and_shows_its_ranges() {
    let mut status = ClusterCidrStatus::default();
    facts().publish(&mut status, at(10));
    assert_eq!(
        said(&status),
        [
            ("Ready", "True", "Ready", ""),
            ("Exhausted", "False", "BlocksLeft", ""),
            ("Terminating", "False", "NotDeleted", ""),
            ("Invalid", "False", "Valid", ""),
            ("Draining", "False", "NotDraining", ""),
        ]
    );
    assert!(status.conditions.iter().all(|it| it.observed_generation == Some(3)));
    let numbers: Vec<_> = status.families.iter().map(|it| (&*it.cidr, it.total, it.used)).collect();
    assert_eq!(numbers, [("10.0.0.0/22", 4, 1), ("fd00::/56", i64::MAX, 1)]);
}

#[test]
fn what_is_full_wrong_or_on_its_way_out_is_said_with_the_reason() {
    let mut full = facts();
    full.ranges[0].used = 4;
    let mut status = ClusterCidrStatus::default();
    full.publish(&mut status, at(10));
    assert_eq!(
        said(&status)[1],
        ("Exhausted", "True", "NoFreeBlock", "10.0.0.0/22 has no free block")
    );

    let wrong = Facts { error: Some(SpecError::NoRange), ranges: Vec::new(), ..facts() };
    wrong.publish(&mut status, at(20));
    let why = "it has neither ipv4 nor ipv6; set one of them";
    assert_eq!(said(&status)[0], ("Ready", "False", "Invalid", why));
    assert_eq!(said(&status)[3], ("Invalid", "True", "InvalidClusterCIDR", why));
    assert_eq!(status.families, []);

    for (nodes, message) in [
        (1, "1 Node has addresses of this ClusterCIDR; the ClusterCIDR is deleted after that Node"),
        (
            3,
            "3 Nodes have addresses of this ClusterCIDR; the ClusterCIDR is deleted after the last of them",
        ),
    ] {
        let leaving = Facts { terminating: Some(Holding::By(nodes)), ..facts() };
        leaving.publish(&mut status, at(30));
        assert_eq!(
            said(&status)[0],
            (
                "Ready",
                "False",
                "Terminating",
                "the ClusterCIDR is being deleted and assigns no more blocks"
            )
        );
        assert_eq!(said(&status)[2], ("Terminating", "True", "Deleted", message));
    }
}

/// `rule:draining-pool-gives-nothing`
#[test]
fn one_that_is_drained_says_how_many_nodes_are_left() {
    let mut status = ClusterCidrStatus::default();
    for (holding, reason, message) in [
        (Holding::By(3), "NodesLeft", "3 Nodes left"),
        (Holding::By(1), "NodesLeft", "1 Node left"),
        (Holding::Unused, "Drained", "0 Nodes left"),
    ] {
        Facts { draining: Some(holding), ..facts() }.publish(&mut status, at(10));
        assert_eq!(said(&status)[4], ("Draining", "True", reason, message));
        let ready = "the ClusterCIDR is draining and assigns no more blocks";
        assert_eq!(said(&status)[0], ("Ready", "False", "Draining", ready));
    }
    facts().publish(&mut status, at(20));
    assert_eq!(said(&status)[0], ("Ready", "True", "Ready", ""));
    assert_eq!(said(&status)[4], ("Draining", "False", "NotDraining", ""));
}

#[test]
fn saying_the_same_again_changes_nothing_and_a_time_is_that_of_the_change() {
    let mut status = ClusterCidrStatus::default();
    facts().publish(&mut status, at(10));
    let before = status.clone();
    facts().publish(&mut status, at(20));
    assert_eq!(status, before);
    let mut full = facts();
    full.ranges[0].used = 4;
    full.publish(&mut status, at(30));
    let since = |index: usize| status.conditions[index].last_transition_time.clone().unwrap();
    assert_eq!((&*since(0), &*since(1)), ("1970-01-01T00:00:10Z", "1970-01-01T00:00:30Z"));
}
