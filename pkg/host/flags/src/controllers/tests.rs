use super::*;

const IPAM: Controller =
    Controller { name: "node-ipam-controller", aliases: &["nodeipam"], on_by_default: true };
const A: Controller = Controller { name: "health-a-controller", aliases: &[], on_by_default: true };
const B: Controller = Controller { name: "health-b-controller", aliases: &[], on_by_default: true };
const SHY: Controller = Controller { name: "shy-controller", aliases: &[], on_by_default: false };

fn known() -> Known {
    Known::new(vec![IPAM, A, B, SHY]).unwrap()
}

fn list(text: &str) -> Vec<String> {
    crate::syntax::composite::csv(text).unwrap()
}

fn enabled(text: &str) -> Vec<&'static str> {
    known().select(&list(text)).unwrap().enabled.into_iter().collect()
}

fn error(text: &str) -> String {
    known().select(&list(text)).unwrap_err().to_string()
}

#[test]
fn the_star_turns_on_what_is_on_by_default_wherever_it_stands() {
    let all = ["health-a-controller", "health-b-controller", "node-ipam-controller"];
    assert_eq!(enabled("*"), all);
    assert_eq!(enabled("-shy-controller,*"), all);
    let rest = ["health-b-controller", "node-ipam-controller"];
    assert_eq!(enabled("-health-a-controller,*"), rest);
    assert_eq!(enabled("*,-health-a-controller"), rest);
}

#[test]
fn without_star_only_named_controllers_run() {
    assert_eq!(enabled("shy-controller"), ["shy-controller"]);
    assert_eq!(enabled(""), [""; 0]);
    assert_eq!(enabled("-nodeipam"), [""; 0]);
}

#[test]
fn the_first_entry_that_names_a_controller_decides() {
    assert_eq!(enabled("nodeipam,-node-ipam-controller"), ["node-ipam-controller"]);
    assert_eq!(enabled("-nodeipam,node-ipam-controller"), [""; 0]);
}

#[test]
fn an_alias_is_resolved_before_the_list_is_scanned() {
    assert_eq!(enabled("nodeipam"), ["node-ipam-controller"]);
}

#[test]
fn a_controller_enabled_by_name_differs_from_one_enabled_by_the_star() {
    let selection = known().select(&list("*,nodeipam,-health-b-controller")).unwrap();
    assert!(selection.is_named("node-ipam-controller"));
    assert!(
        !selection.is_named("health-a-controller") && !selection.is_named("health-b-controller")
    );
}

#[test]
fn kubeadms_list_is_accepted() {
    let text = "*,bootstrapsigner,tokencleaner";
    assert!(enabled(text).contains(&"node-ipam-controller"));
    assert_eq!(not_hosted(&list(text)), ["bootstrapsigner", "tokencleaner"]);
}

#[test]
fn upstream_names_turned_off_are_ignored_in_silence() {
    let text = "*,-bootstrap-signer-controller,-nodelifecycle";
    assert!(!enabled(text).is_empty());
    assert!(not_hosted(&list(text)).is_empty());
}

#[test]
fn upstream_names_are_canonical_ones_and_old_aliases_but_not_ours() {
    for name in ["deployment-controller", "deployment", "podgc", "ttl-controller", "route", "svm"] {
        assert!(is_upstream(name), "{name}");
    }
    for name in ["node-ipam-controller", "nodeipam", "bootstrap-signer", "endpoints", "*", ""] {
        assert!(!is_upstream(name), "{name}");
    }
}

#[test]
fn all_unknown_names_are_reported_together() {
    let message = error("*,foo,-bar,tokencleaner,Nodeipam,");
    assert_eq!(
        message,
        "there is no controller \"foo\", \"bar\", \"Nodeipam\", \"\"; this program hosts: \
         node-ipam-controller, health-a-controller, health-b-controller, shy-controller"
    );
}

#[test]
fn one_name_has_one_meaning() {
    let clash = Controller { name: "other-controller", aliases: &["nodeipam"], ..IPAM };
    let error = Known::new(vec![IPAM, clash]).unwrap_err();
    assert_eq!(error, RegistryError::Twice("nodeipam"));
    let error = Known::new(vec![IPAM, IPAM]).unwrap_err();
    assert_eq!(error, RegistryError::Twice("node-ipam-controller"));
}
