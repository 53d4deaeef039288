use super::*;

/// cluster-api-provider-aws#889
#[test]
fn short_names_of_load_balancers_are_readable_and_long_ones_hashed_as_upstream_does() {
    for (cluster, name) in [
        ("testnetwork3", "testnetwork3-apiserver"),
        ("a.b.c", "a-b-c-apiserver"),
        ("0123456789012345678901", "0123456789012345678901-apiserver"),
        ("01234567890123456789012", "26o3cjil5at5qn27vukn5x09b3ql-k8s"),
        ("anotherverylongtoolongname", "t8gnrbbifaaf5d0k4xmwui3xwvip-k8s"),
    ] {
        assert_eq!(load_balancer_name(cluster), name);
        assert!(name.len() <= LOAD_BALANCER_NAME);
    }
}

#[test]
fn a_security_group_never_has_a_name_that_reads_as_an_id() {
    assert_eq!(security_group_name("seed", "node"), "seed-node");
    assert_eq!(security_group_name("sg-seed", "node"), "@sg-seed-node");
}
