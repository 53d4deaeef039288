//! The programs that are known to assign pod CIDRs, by the field managers as which they write Nodes.

use crate::{PRODUCT as OURS, Surveyed};

/// Label of the managers that are not in [`KNOWN`].
pub(crate) const OTHER: &str = "other";

/// A program that assigns pod CIDRs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KnownAllocator {
    /// The value of the label `manager` of the metric.
    pub(crate) label: &'static str,
    /// Field managers as which it writes; one that begins with `*` is the end of a name.
    managers: &'static [&'static str],
    /// How an operator stops it, for the message.
    pub(super) remedy: &'static str,
}

/// All known allocators. Cilium's operator is not in the list, because it writes only CiliumNodes.
pub(crate) static KNOWN: [KnownAllocator; 6] = [
    KnownAllocator {
        label: "kube-controller-manager",
        managers: &["kube-controller-manager"],
        remedy: "disable its node-ipam-controller with \
            --controllers=*,bootstrapsigner,tokencleaner,-node-ipam-controller",
    },
    KnownAllocator {
        label: "cloud-controller-manager",
        managers: &["*cloud-controller-manager"],
        remedy: "set its flag --allocate-node-cidrs=false",
    },
    KnownAllocator {
        label: "node-ipam-controller",
        // The second name is what its binary is called in images built by kubebuilder.
        managers: &["node-ipam-controller", "manager"],
        remedy: "remove sigs.k8s.io/node-ipam-controller from the cluster",
    },
    KnownAllocator {
        label: "aws-ipam-controller",
        managers: &["aws-ipam-controller"],
        remedy: "remove Gardener's aws-ipam-controller from the cluster",
    },
    KnownAllocator {
        label: "kops-controller",
        managers: &["kops-controller"],
        remedy: "disable the IPAM of kops-controller",
    },
    KnownAllocator {
        label: "antrea-controller",
        managers: &["antrea-controller"],
        remedy: "set nodeIPAM.enableNodeIPAM to false in the ConfigMap antrea-config",
    },
];

impl KnownAllocator {
    /// The program that writes as this field manager.
    pub(crate) fn of(manager: &str) -> Option<&'static Self> {
        let writes_as = |name: &&str| match name.strip_prefix('*') {
            Some(end) => manager.ends_with(end),
            None => manager == *name,
        };
        KNOWN.iter().find(|known| known.managers.iter().any(writes_as))
    }
}

/// The field manager other than this program that set the pod CIDRs of the Node; the newest if there
/// are several. `None` where this program set them: one of its replicas may have led before.
pub(super) fn other_setter(node: &Surveyed) -> Option<&str> {
    if node.setters.iter().any(|(_, manager)| manager == OURS) {
        return None;
    }
    let newest = node.setters.iter().max_by_key(|(at, manager)| {
        // A name that says more counts first.
        (KnownAllocator::of(manager).is_some(), *at)
    });
    newest.map(|(_, manager)| manager.as_str())
}

/// Whether the answer to a PATCH, which is the Node or its metadata, says that another program had set
/// the same CIDRs before: then the PATCH has changed nothing.
pub(crate) fn was_set_before(answer: &[u8]) -> bool {
    const MANAGER: &str = "\"manager\":\"";
    let Ok(text) = str::from_utf8(answer) else { return false };
    let Some(fields) = text.find("f:podCIDR") else { return false };
    // The API server writes a manager before its fields. Where it is ours, nothing need be decoded.
    let manager = text[..fields].rfind(MANAGER).map(|at| &text[at + MANAGER.len()..]);
    let is_ours =
        manager.is_some_and(|it| it.strip_prefix(OURS).is_some_and(|it| it.starts_with('"')));
    !is_ours
        && serde_json::from_slice(answer).is_ok_and(|node: Surveyed| other_setter(&node).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

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
            let managers: Vec<_> =
                managers.iter().map(|it| (*it, "2026-01-01T00:00:00Z")).collect();
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
}
