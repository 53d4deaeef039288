//! Requests that are judged, and when.

use serde_json::{Value, json};
use validation::{CheckResult, Environment, ErrorType, Kind, Operation, validate};

use crate::objects::{all, baremetal, imported, machine, member};
use crate::row::{edited, environment_of, lines, row};

/// Everything is wrong with it, and everything that it needs fails.
fn hopeless() -> (Value, Environment) {
    let edits = json!({
        "metadata.name": "A", "spec.clusterCIDR": "x", "spec.machines.0.port": 0,
        "spec.machines.1.ip": "10.0.0.1",
    });
    let environment = json!({
        "clusters": [imported()], "machines": [], "licence": {"maxClusters": 1, "maxNodes": 1, "maxCPUs": 1},
        "networkChecks": {"ssh": {"10.0.0.1:22": "connect-refused"}},
    });
    (edited(baremetal(), &edits), environment_of(environment))
}

/// rule:deletions-and-status-writes-are-free
#[test]
fn metadata_and_status_of_an_object_can_be_changed_whatever_is_wrong_with_it() {
    let (old, environment) = hopeless();
    assert!(validate(Kind::Cluster, &old, Operation::Create, &environment).errors.len() > 3);
    let changes =
        json!({"metadata": {"name": "A", "finalizers": []}, "status": {"phase": "Failed"}});
    let object = edited(old.clone(), &changes);
    let findings = validate(Kind::Cluster, &object, Operation::Update { old: &old }, &environment);
    assert_eq!(findings, validation::Findings::default());
    let renamed = edited(object, &json!({"spec.displayName": "b", "spec.machines.1.port": -1}));
    let findings = validate(Kind::Cluster, &renamed, Operation::Update { old: &old }, &environment);
    assert!(!findings.errors.is_empty(), "the spec has changed");
}

#[test]
fn what_was_wrong_before_refuses_only_who_touches_it() {
    let rule = "stored-errors-are-not-repeated";
    let wrong = json!({"spec.machines.0.port": 0, "spec.properties": {"maxNodePodNum": 7}});
    let with = |more: Value| {
        let mut edits = wrong.clone();
        edits.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row(rule, baremetal, edits).was(wrong.clone())
    };
    let port =
        "spec.machines[0].port: Invalid: Invalid value: 0: must be between 1 and 65535, inclusive";
    with(json!({"spec.displayName": "b"})).holds();
    with(json!({"spec.machines.1.username": "ops"})).says(&[port]).holds();
    let pods = "spec.properties.maxNodePodNum: NotSupported: Unsupported value: 8: supported values: \"16\", \"32\", \"64\", \"128\", \"256\"";
    with(json!({"spec.properties": {"maxNodePodNum": 8}})).says(&[pods]).holds();
}

#[test]
fn what_the_environment_does_not_tell_is_named_and_refuses_nothing() {
    let licence = json!({"licence": {"maxClusters": 1, "maxNodes": 1, "maxCPUs": 1}});
    let environment = environment_of(licence);
    let questions = |object: Value| {
        let kind = Kind::of(&object).unwrap();
        let findings = validate(kind, &object, Operation::Create, &environment);
        assert_eq!(lines(&findings), [""; 0], "{object}");
        findings.unchecked.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let told = |field: &str, question: &str, by: &str| {
        format!("{field}: not checked: {question} ({by} of the environment would tell)")
    };
    let limit = told("spec.name", "whether the licence allows it", "clusters");
    let ssh = |at: &str, target: &str| {
        told(at, &format!("whether SSH answers at {target}"), "networkChecks.ssh")
    };
    let two = [ssh("spec.machines[0]", "10.0.0.1:22"), ssh("spec.machines[1]", "10.0.0.2:22")];
    assert_eq!(questions(baremetal()), [vec![limit.clone(); 3], two.to_vec()].concat());
    let cluster = edited(imported(), &json!({"spec.clusterCredentialRef": {"name": "cc-1"}}));
    let expected = [
        limit.clone(),
        limit.clone(),
        limit.clone(),
        told(
            "spec.clusterCredentialRef",
            "whether the ClusterCredential cc-1 is whole",
            "clusterCredentials",
        ),
        told("spec.addresses[0]", "whether 10.0.0.1:6443 can be connected to", "networkChecks.tcp"),
        told(
            "spec.clusterCredentialRef",
            "whether the API server takes the ClusterCredential cc-1",
            "networkChecks.credentials",
        ),
        told("metadata.name", "whether the cluster is imported already", "networkChecks.imports"),
    ];
    assert_eq!(questions(cluster), expected);
    let expected = [
        told("spec.clusterName", "whether there is a Cluster cls-1 with room for it", "clusters"),
        limit.clone(),
        limit,
        told("spec.ip", "whether another Machine of cls-1 has the address 10.0.1.1", "machines"),
        ssh("spec", "10.0.1.1:22"),
    ];
    assert_eq!(questions(machine()), expected);
    let odd = edited(machine(), &json!({"spec.clusterName": "a\nb"}));
    let expected = "whether there is a Cluster a?b with room for it";
    assert!(questions(odd)[0].contains(expected));
    let same = told(
        "spec.apiEndpoint",
        "whether another KubeFedCluster is the same cluster",
        "kubeFedClusters",
    );
    assert_eq!(questions(member()), [same]);
}

#[test]
fn the_network_is_not_asked_about_what_is_wrong_or_did_not_change() {
    let environment = environment_of(json!({"clusters": [], "machines": []}));
    let asked = |object: &Value, operation: Operation<'_>| {
        validate(Kind::Cluster, object, operation, &environment).unchecked.len()
    };
    let old = baremetal();
    assert_eq!(asked(&old, Operation::Create), 2);
    assert_eq!(
        asked(&edited(baremetal(), &json!({"spec.clusterCIDR": "x"})), Operation::Create),
        0
    );
    let moved = edited(baremetal(), &json!({"spec.machines.1.port": 2222}));
    assert_eq!(asked(&moved, Operation::Update { old: &old }), 1);
}

#[test]
fn a_field_of_another_type_is_told_once_and_nothing_is_said_of_what_is_in_it() {
    let rule = "wrong-types-are-told-first";
    let of = |field: &str, found: &str, wanted: &str| {
        format!(
            "{field}: TypeInvalid: Invalid value: \"{found}\": {field} in body must be of type {wanted}: \"{found}\""
        )
    };
    row(rule, baremetal, json!({"spec": "x"})).says(&[&of("spec", "string", "object")]).holds();
    for (field, value, found, wanted) in [
        ("spec.type", json!(7), "integer", "string"),
        ("spec.features", json!([]), "array", "object"),
        ("spec.dnsDomain", json!(0.5), "number", "string"),
    ] {
        let mut edits = json!({"spec.type": "Edge", "spec.version": "1"});
        edits[field] = value;
        row(rule, baremetal, edits).says(&[&of(field, found, wanted)]).holds();
    }
    let extra = json!({"spec.kubeletExtraArgs": {"v": 4, "a": "b"}});
    row(rule, baremetal, extra)
        .says(&[&of("spec.kubeletExtraArgs.v", "integer", "string")])
        .holds();
    let odd_key = json!({"spec.kubeletExtraArgs": {"a\nb": 4}});
    row(rule, baremetal, odd_key)
        .says(&[&of("spec.kubeletExtraArgs.a?b", "integer", "string")])
        .holds();
    let port = json!({"spec.machines.0.port": "22"});
    row(rule, baremetal, port).says(&[&of("spec.machines[0].port", "string", "integer")]).holds();
    let many: Vec<Value> =
        (0..33).map(|at| json!({"type": "Real", "host": format!("h{at}"), "port": 1})).collect();
    row(rule, imported, json!({"spec.addresses": many}))
        .says(&["spec.addresses: TooMany: Too many: 33: must have at most 32 items"])
        .holds();
}

/// rule:secrets-are-not-echoed
#[test]
fn nothing_that_is_said_holds_what_is_secret() {
    let planted = "cGxhbnRlZA=="; // "planted", in base64
    let wrong = "planted\u{0}not base64";
    for secret in [planted, wrong] {
        for name in ["password", "privateKey", "passPhrase"] {
            let at = format!("spec.machines.0.{name}");
            let object = edited(
                baremetal(),
                &json!({at: secret, "spec.machines.0.ip": "user:planted@host"}),
            );
            let findings =
                validate(Kind::Cluster, &object, Operation::Create, &Environment::default());
            let said = format!("{findings:?}");
            assert!(
                !findings.errors.is_empty() && !said.contains("planted") && !said.contains(planted),
                "{said}"
            );
        }
    }
    let edits = json!({"clientKey": [planted], "token": {"a": planted}, "caCert": wrong});
    let object = edited(crate::objects::credential(), &edits);
    let said = format!(
        "{:?}",
        validate(Kind::ClusterCredential, &object, Operation::Create, &Environment::default())
    );
    assert!(said.contains("clientKey") && said.contains("token"), "{said}");
    assert!(!said.contains("planted") && !said.contains(planted), "{said}");
}

#[test]
fn types_have_the_names_of_causes_and_texts_are_on_one_line() {
    assert_eq!(ErrorType::NotSupported.reason(), "FieldValueNotSupported");
    assert_eq!(ErrorType::TooMany.to_string(), "TooMany");
    let long = format!("a\n\"{}", "b".repeat(200));
    let object = edited(imported(), &json!({"spec.type": long}));
    let findings = validate(Kind::Cluster, &object, Operation::Create, &Environment::default());
    let shown = format!("\"a\\u000a\\\"{}…\"", "b".repeat(77));
    assert_eq!(findings.errors[0].error_type, ErrorType::TooLong);
    assert!(
        findings.errors[1].detail.starts_with(&format!("Unsupported value: {shown}: ")),
        "{findings:?}"
    );
}

#[test]
fn kinds_are_known_by_their_version_too_and_only_those_with_rules() {
    for object in all() {
        let kind = Kind::of(&object).unwrap();
        assert_eq!(
            (kind.api_version(), kind.to_string()),
            (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap().to_owned())
        );
        let other = edited(object, &json!({"apiVersion": "cluster.x-k8s.io/v1beta2"}));
        assert_eq!(Kind::of(&other), None);
    }
    assert_eq!(Kind::of(&json!(null)), None);
}

#[test]
fn the_result_of_a_check_is_ok_or_a_code_and_never_what_a_server_wrote() {
    let read = |text: &str| CheckResult::try_from(text.to_owned());
    assert_eq!(read("ok"), Ok(CheckResult::Passed));
    assert_eq!(read("http-503"), Ok(CheckResult::Failed("http-503".to_owned())));
    for text in ["", "Connection refused", "SSH-2.0-OpenSSH", &"a".repeat(41)] {
        assert!(read(text).is_err(), "{text}");
    }
}
