//! The rights that the controller asks for.

use super::*;

mod monitoring;

fn needed(line: &[(&str, &str)]) -> Vec<Permission> {
    let values = Values::from_given(FLAGS, line.iter().copied()).unwrap();
    kinds(&judge(&values).unwrap().0).into_iter().flat_map(|it| it.rights).collect()
}

#[test]
fn rights_are_asked_for_where_the_objects_are() {
    let namespace = |given: &str| {
        let needed = needed(&[("cluster-health-kubefed-namespace", given)]);
        assert_eq!(needed.len(), 5);
        needed.iter().map(|right| right.namespace.clone()).collect::<Vec<_>>()
    };
    assert_eq!(namespace("fed"), ["fed", "fed", "", "", ""]);
    assert_eq!(namespace(""), [""; 5]);
    for flavour in ["kubefed", "tke"] {
        let needed = needed(&[("cluster-health-flavours", flavour)]);
        let secrets: Vec<_> = needed.iter().filter(|it| it.resource == "secrets").collect();
        assert_eq!(secrets.len(), 1);
        assert_eq!(secrets[0].namespace, "kube-federation-system");
        assert!(needed.iter().all(|it| it.group.is_empty() || it.group.contains(flavour)));
    }
}
