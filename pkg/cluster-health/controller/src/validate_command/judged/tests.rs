use serde_json::json;

use super::super::printed;
use super::*;

fn machine(name: &str, ip: &str) -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": name},
        "spec": {"clusterName": "cls-1", "type": "Baremetal", "ip": ip, "port": 22,
            "username": "root", "password": "c2VjcmV0"},
    })
}

fn cluster() -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls-1"},
        "spec": {"tenantID": "t", "type": "Imported",
            "addresses": [{"type": "Real", "host": "h", "port": 1}]},
    })
}

/// Without a network.
fn all(
    objects: &[Value],
    old: &[Value],
    wanted: Option<Wanted>,
    environment: Environment,
) -> Vec<Judged> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(super::all(objects, old, wanted, environment, None))
}

/// With nothing stored.
fn empty() -> Environment {
    Environment { clusters: Some(vec![]), machines: Some(vec![]), ..Environment::default() }
}

fn errors(objects: &[Value], old: &[Value], wanted: Option<Wanted>) -> Vec<String> {
    let judged = all(objects, old, wanted, empty());
    printed::errors(&judged).lines().map(str::to_owned).collect()
}

#[test]
fn an_object_counts_as_stored_for_those_after_it_unless_it_is_refused() {
    let no_cluster =
        "spec.clusterName: Invalid: Invalid value: \"cls-1\": there is no Cluster of this name";
    let one = machine("mc-1", "10.0.0.1");
    assert_eq!(errors(std::slice::from_ref(&one), &[], None), [no_cluster]);
    assert_eq!(errors(&[cluster(), one.clone()], &[], None), [""; 0]);
    let twin = machine("mc-2", "10.0.0.1");
    let taken = "Machine/mc-2: spec.ip: Duplicate: Duplicate value: \"10.0.0.1\"";
    assert_eq!(errors(&[cluster(), one.clone(), twin], &[], None), [taken]);
    let mut wrong = cluster();
    wrong["spec"]["type"] = json!("Odd");
    assert_eq!(errors(&[wrong, one], &[], None).len(), 2, "and the Cluster is not there then");
}

#[test]
fn what_is_stored_is_changed_and_everything_else_is_made() {
    let mut other = cluster();
    other["spec"]["type"] = json!("Edge");
    let changed = "spec.type: Invalid: Invalid value: \"Edge\": field is immutable";
    assert_eq!(errors(&[other.clone()], &[cluster()], None), [changed]);
    assert_eq!(errors(&[other.clone()], &[cluster()], Some(Wanted::Update)), [changed]);
    assert_eq!(errors(&[other.clone()], &[cluster()], Some(Wanted::Create)), [""; 0]);
    let unknown = "metadata.name: Invalid: Not found: it is not among the objects of --old";
    assert_eq!(errors(&[other], &[], Some(Wanted::Update)), [unknown]);
}

#[test]
fn kinds_without_rules_are_named_and_unknown_ones_refused() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
    let upstreams = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster"});
    let judged = all(&[namespace, upstreams], &[], None, empty());
    assert_eq!(printed::errors(&judged), "");
    let said = printed::remarks(&judged);
    assert!(
        said.starts_with(
            "Namespace/a: kind: not checked: there are no rules for Namespace of v1\n"
        ),
        "{said}"
    );
    for object in
        [json!({"apiVersion": "apps/v1", "kind": "Namespace"}), json!("text"), json!(null)]
    {
        let lines = errors(std::slice::from_ref(&object), &[], None);
        assert!(
            lines[0].starts_with("kind: NotSupported: Unsupported value: "),
            "{object}: {lines:?}"
        );
        assert!(lines[0].contains("\"Cluster of platform.tkestack.io/v1\", "), "{lines:?}");
    }
}

#[test]
fn programs_read_all_of_it() {
    let member = json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"namespace": "fed", "name": "one"},
        "spec": {"apiEndpoint": "http://a", "secretRef": {}},
    });
    let text = printed::json(&all(&[member], &[], None, Environment::default()));
    let read: Value = serde_json::from_str(&text).unwrap();
    let question = "whether another KubeFedCluster is the same cluster";
    let expected = json!({"valid": false, "objects": [{
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster", "namespace": "fed", "name": "one",
        "errors": [{
            "field": "spec.secretRef.name", "type": "Required", "reason": "FieldValueRequired",
            "detail": "Required value: the Secret with the token of the member",
        }],
        "warnings": ["spec.apiEndpoint: over plain http the token can be read on the way"],
        "notChecked": [{"field": "spec.apiEndpoint", "question": question, "toldBy": "kubeFedClusters"}],
    }]});
    assert_eq!(read, expected);
}

#[test]
fn an_object_is_known_by_kind_namespace_and_name() {
    let object = |namespace: &str, name: &str| json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"namespace": namespace, "name": name}});
    let (one, unnamed) = (Identity::of(&object("n", "one")), Identity::of(&object("", "")));
    let stored = [object("n", "two"), object("m", "one"), object("n", "one"), object("", "")];
    assert_eq!(one.find(&stored), Some(&stored[2]));
    assert_eq!(one.find(&stored[..2]), None);
    assert_eq!(unnamed.find(&stored), None, "the API server makes its name");
    assert_eq!([one, unnamed].map(|it| it.to_string()), ["K/n/one", "K/(no name)"]);
    assert_eq!(Identity::of(&json!(7)).to_string(), "(no kind)/(no name)");
    assert_eq!(Identity::of(&object("n\n", "a\nvalid")).to_string(), "K/n?/a?valid");
}
