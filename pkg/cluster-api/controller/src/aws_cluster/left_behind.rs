//! What a deletion leaves on AWS since it is not ours, and the ways to end it
//! (`rule:a-deletion-names-what-it-leaves`). Pure.

use std::collections::BTreeSet;

use aws_network::Other;

use crate::api::{ABANDON_ANNOTATION, ADOPT_ANNOTATION, OWNER_ID_ANNOTATION};

/// So many resources are named in a condition.
const NAMED: usize = 2;
/// So many resources are named in the event of a deletion that leaves them.
const NAMED_AT_THE_END: usize = 20;

/// Those of no owner that lives: another AWSCluster of the same name deletes its own.
pub(super) fn of_no_living_owner(others: &[Other], living: &BTreeSet<String>) -> Vec<Other> {
    let lives = |other: &&Other| other.owner_id.as_ref().is_some_and(|id| living.contains(id));
    others.iter().filter(|other| !lives(other)).cloned().collect()
}

/// Why a deletion cannot end, and what its user can do.
pub(super) fn blocked(others: &[Other], adopts: bool) -> String {
    let all = named(others, NAMED);
    let have = if others.len() == 1 { "has" } else { "have" };
    let is_upstreams = others.iter().any(|other| other.owner_id.is_none());
    let owners: BTreeSet<_> = others.iter().filter_map(|other| other.owner_id.as_ref()).collect();
    let mut ways = Vec::new();
    if is_upstreams && !adopts {
        ways.push(format!("{ADOPT_ANNOTATION}=true"));
    }
    ways.extend(owners.iter().take(1).map(|id| format!("{OWNER_ID_ANNOTATION}={id}")));
    let keep = format!("{ABANDON_ANNOTATION}=true to keep them");
    let ways = match ways.as_slice() {
        [] => format!("an EKS cluster uses the VPC, which cannot be adopted; set {keep}"),
        ways => format!("set {} to delete or {keep}", ways.join(" or ")),
    };
    format!("cannot finish deletion: {all} {have} the cluster tag but not this owner-id; {ways}")
}

/// What is left by a deletion that its user has ended.
pub(super) fn abandoned(others: &[Other]) -> String {
    let all = named(others, NAMED_AT_THE_END);
    format!("left on AWS, with the cluster tag but not this owner-id: {all}")
}

fn named(others: &[Other], limit: usize) -> String {
    let ids: Vec<_> = others.iter().map(|other| other.id.as_str()).collect();
    let first = ids.iter().take(limit).copied().collect::<Vec<_>>().join(", ");
    match ids.len().checked_sub(limit) {
        Some(more @ 1..) => format!("{first} and {more} more"),
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(id: &str, owner_id: Option<&str>) -> Other {
        Other { id: id.to_owned(), owner_id: owner_id.map(str::to_owned) }
    }

    #[test]
    fn a_deletion_that_is_blocked_names_two_resources_and_the_ways_out() {
        let all = ["vpc-1", "sg-2", "sg-3", "sg-4", "sg-5"].map(|id| other(id, None));
        let wanted = "cannot finish deletion: vpc-1, sg-2 and 3 more have the cluster tag but not this owner-id; \
                      set aws.cluster.x-k8s.io/adopt=true to delete or aws.cluster.x-k8s.io/allow-abandon=true to keep them";
        assert_eq!(blocked(&all, false), wanted);
        // Adoption was asked for and refused: that is so for EKS only.
        let refused = blocked(&all, true);
        assert!(!refused.contains("/adopt=true") && refused.contains("EKS"), "{refused}");
        let vanished = blocked(&[other("vpc-1", Some("x"))], false);
        assert!(vanished.starts_with("cannot finish deletion: vpc-1 has the"), "{vanished}");
        assert!(vanished.contains("set aws.cluster.x-k8s.io/owner-id=x to delete"), "{vanished}");
        assert!(!vanished.contains("/adopt=true"), "{vanished}");
    }

    #[test]
    fn resources_of_an_awscluster_that_lives_do_not_block_another_of_the_same_name() {
        let all = [other("a", None), other("b", Some("lives")), other("c", Some("gone"))];
        let living = BTreeSet::from(["lives".to_owned()]);
        let left = of_no_living_owner(&all, &living);
        assert_eq!(left, [other("a", None), other("c", Some("gone"))]);
    }

    #[test]
    fn an_event_names_twenty_resources_and_how_many_more_there_are() {
        let all: Vec<_> = (0..25).map(|number| other(&format!("sg-{number}"), None)).collect();
        assert!(abandoned(&all).ends_with("sg-18, sg-19 and 5 more"), "{}", abandoned(&all));
    }
}
