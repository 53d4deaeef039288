use serde_json::{Value, json};

use super::*;

const STOCK: &str = "kube-controller-manager";

/// 10,000 taints that stock writes are no alarm, however late they are.
#[test]
fn a_taint_that_stock_writes_does_not_make_its_old_pod_cidr_a_new_one() {
    let begun: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
    let suspect = Suspect { name: "a".into(), uid: "u".into(), evidence: Evidence::SeenLate };
    let read = |created: &str, manager: &str, taint: Timestamp| Surveyed {
        uid: "u".to_owned(),
        created: created.parse().ok(),
        setters: vec![(taint, manager.to_owned())],
        ..Surveyed::default()
    };
    for second in 0..10_000 {
        let taint = begun + jiff::SignedDuration::from_secs(second);
        assert_eq!(suspect.confirmed_by(&read("2026-01-01T00:00:00Z", STOCK, taint), begun), None);
    }
    let new = "2026-01-02T00:00:00Z";
    for manager in [STOCK, "kubectl"] {
        let made_after = read(new, manager, begun);
        assert_eq!(suspect.confirmed_by(&made_after, begun), Some(manager));
    }
    let ours = read(new, "infra-controller-manager", begun);
    assert_eq!(suspect.confirmed_by(&ours, begun), None, "a leader before this one");
    let undated = read("", STOCK, begun);
    assert_eq!(suspect.confirmed_by(&undated, begun), None, "its creation time is unknown");
    let saw_empty = Suspect { evidence: Evidence::SawEmpty, ..suspect };
    let old = read("2026-01-01T00:00:00Z", STOCK, Timestamp::MIN);
    assert_eq!(saw_empty.confirmed_by(&old, begun), Some(STOCK));
    let next = Suspect { uid: "of the next".into(), ..saw_empty };
    assert_eq!(next.confirmed_by(&old, begun), None, "it is another Node by now");
}

#[tokio::test(start_paused = true)]
async fn two_nodes_of_an_unknown_program_count_within_ten_minutes() {
    let (unknown, begun) = (LastUnknown::default(), Instant::now());
    let at = |second: u64| begun + Duration::from_secs(second);
    for (uid, second, is_second) in [
        ("a", 0, false),
        ("a", 10, false),
        ("b", 609, true),
        ("c", 1_209, false),
        ("d", 1_210, true),
    ] {
        assert_eq!(unknown.is_second(&uid.into(), at(second)), is_second, "{uid} {second}");
    }
}

fn node(managers: &[(&str, &str)]) -> Value {
    let fields = managers.iter().map(|(manager, time)| {
        json!({"manager": manager, "operation": "Update", "time": time,
            "fieldsV1": {"f:spec": {"f:podCIDR": {}, "f:podCIDRs": {}}}})
    });
    let managed: Vec<Value> = fields.collect();
    json!({"metadata": {"name": "a", "uid": "u", "managedFields": managed}})
}

fn setter(managers: &[(&str, &str)]) -> Option<String> {
    let node: Surveyed = serde_json::from_value(node(managers)).unwrap();
    other_setter(&node).map(str::to_owned)
}

#[test]
fn every_allocator_is_known_by_its_field_manager_and_people_are_not() {
    for (manager, label) in [
        ("kube-controller-manager", Some("kube-controller-manager")),
        ("cloud-controller-manager", Some("cloud-controller-manager")),
        ("aws-cloud-controller-manager", Some("cloud-controller-manager")),
        ("node-ipam-controller", Some("node-ipam-controller")),
        ("manager", Some("node-ipam-controller")),
        ("aws-ipam-controller", Some("aws-ipam-controller")),
        ("kops-controller", Some("kops-controller")),
        ("antrea-controller", Some("antrea-controller")),
        ("kubectl-patch", None),
        ("my-manager", None),
        ("", None),
    ] {
        assert_eq!(KnownAllocator::of(manager).map(|known| known.label), label, "{manager}");
    }
}

#[test]
fn the_setter_is_a_known_allocator_before_a_newer_unknown_one_and_never_this_program() {
    let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    assert_eq!(setter(&[]), None);
    assert_eq!(setter(&[(OURS, old)]), None);
    assert_eq!(setter(&[("kubectl-edit", new), (OURS, old)]), None, "applied by somebody too");
    assert_eq!(setter(&[("one", old), ("two", new)]).as_deref(), Some("two"));
    assert_eq!(setter(&[("manager", old), ("two", new)]).as_deref(), Some("manager"));
}

#[test]
fn the_answer_to_a_patch_names_whoever_was_first() {
    let is_set = |managers: &[&str], pretty: bool| {
        let managers: Vec<_> = managers.iter().map(|it| (*it, "2026-01-01T00:00:00Z")).collect();
        let node = node(&managers);
        let text = if pretty { format!("{node:#}") } else { node.to_string() };
        was_set_before(text.as_bytes())
    };
    for pretty in [false, true] {
        assert!(!is_set(&[], pretty));
        assert!(!is_set(&[OURS], pretty));
        assert!(is_set(&["kube-controller-manager"], pretty));
        assert!(is_set(&["infra-controller-manager-2"], pretty), "a longer name");
        assert!(is_set(&["kubectl-patch"], pretty));
    }
    // As the API server writes it: the manager before its fields.
    let written = |first: &str, setter: &str| {
        format!(
            r#"{{"metadata":{{"name":"a","uid":"u","managedFields":[{{"manager":"{first}","time":
            "2026-01-01T00:00:00Z","fieldsV1":{{"f:status":{{}}}}}},{{"manager":"{setter}","time":
            "2026-01-01T00:00:00Z","fieldsV1":{{"f:spec":{{"f:podCIDR":{{}}}}}}}}]}}}}"#
        )
    };
    assert!(!was_set_before(written("kops-controller", OURS).as_bytes()));
    assert!(was_set_before(written(OURS, "kops-controller").as_bytes()));
    for garbage in [&b"\xff f:podCIDR"[..], b"f:podCIDR", b""] {
        assert!(!was_set_before(garbage));
    }
}
