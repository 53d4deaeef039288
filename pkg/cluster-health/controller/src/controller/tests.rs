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
        assert_eq!(needed.len(), 7);
        needed.iter().map(|right| right.namespace.clone()).collect::<Vec<_>>()
    };
    assert_eq!(namespace("fed"), ["fed", "fed", "fed", "", "", "", ""]);
    assert_eq!(namespace(""), [""; 7]);
    for flavour in ["kubefed", "tke"] {
        let needed = needed(&[("cluster-health-flavours", flavour)]);
        let secrets: Vec<_> = needed.iter().filter(|it| it.resource == "secrets").collect();
        assert_eq!(secrets.len(), 1);
        assert_eq!(secrets[0].namespace, "kube-federation-system");
        assert!(needed.iter().all(|it| it.group.is_empty() || it.group.contains(flavour)));
    }
}

#[test]
fn cluster_profiles_need_rights_of_their_own_in_their_namespaces() {
    let needed = needed(&[
        ("cluster-health-flavours", "clusterprofile"),
        ("cluster-health-profile-namespaces", "fleet"),
        ("cluster-health-profile-secret-namespaces", "keys"),
    ]);
    let named: Vec<_> =
        needed.iter().map(|it| format!("{} {} {}", it.verb, it.resource, it.namespace)).collect();
    let of_one = [
        "get customresourcedefinitions ",
        "get secrets fleet",
        "get secrets keys",
        "patch clusterprofiles fleet",
        "get clusterprofiles fleet",
    ];
    // Either version of the API may come to be served.
    assert_eq!(named, [of_one, of_one].concat());
}
