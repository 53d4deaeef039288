//! The shipped samples: nothing is wrong with them, and with each one field wrong they are refused
//! in words that a person understands.

use serde_json::{Value, json};
use validation::{Environment, Kind, Operation, validate};

use crate::row::{edited, lines};

/// Objects of `config/samples` whose kind has rules.
fn samples() -> Vec<(Kind, Value)> {
    let texts = [
        include_str!("../../../../../config/samples/tke.yaml"),
        include_str!("../../../../../config/samples/kubefed.yaml"),
    ];
    let objects = texts.map(|text| serde_saphyr::from_multiple::<Value>(text).unwrap()).concat();
    objects.into_iter().filter_map(|object| Some((Kind::of(&object)?, object))).collect()
}

fn said(kind: Kind, object: &Value) -> Vec<String> {
    lines(&validate(kind, object, Operation::Create, &Environment::default()))
}

#[test]
fn nothing_is_wrong_with_the_samples() {
    let samples = samples();
    for (kind, object) in &samples {
        assert_eq!(said(*kind, object), [""; 0], "{object}");
    }
    let kinds: Vec<String> = samples.iter().map(|(kind, _)| kind.to_string()).collect();
    let expected = ["Cluster", "ClusterCredential", "Machine", "KubeFedConfig", "KubeFedCluster"];
    assert_eq!(kinds, expected);
}

/// The path of every field in a part of an object, as `edited` takes it.
fn fields(value: &Value, at: &str, found: &mut Vec<String>) {
    let names: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), field)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        _ => return,
    };
    for (name, field) in names {
        let path = if at.is_empty() { name } else { format!("{at}.{name}") };
        fields(field, &path, found);
        found.push(path);
    }
}

/// `spec.addresses.0.host` as the API server prints it.
fn printed(path: &str) -> String {
    let parts = path.split('.').map(|name| match name.parse::<usize>() {
        Ok(index) => format!("[{index}]"),
        Err(_) => format!(".{name}"),
    });
    parts.collect::<String>().trim_start_matches('.').to_owned()
}

#[test]
fn a_field_of_another_type_is_refused_by_its_path_wherever_it_is_in_a_sample() {
    let mut tried = 0;
    for (kind, object) in samples() {
        let mut paths = Vec::new();
        fields(&object, "", &mut paths);
        // Kept as it is: the schema does not name it. The rest is what every object has.
        let is_judged = |path: &&String| {
            *path != "spec.scope"
                && (!path.contains("metadata") || *path == "metadata.name")
                && *path != "apiVersion"
                && *path != "kind"
        };
        for path in paths.iter().filter(is_judged) {
            let wrong = edited(object.clone(), &json!({path.clone(): 0.5}));
            let field = printed(path);
            let expected = format!(
                "{field}: TypeInvalid: Invalid value: \"number\": {field} in body must be of type "
            );
            let said = said(kind, &wrong);
            assert!(said.iter().any(|line| line.starts_with(&expected)), "{kind} {path}: {said:?}");
            tried += 1;
        }
    }
    assert!(tried > 35, "{tried} fields");
}

#[test]
fn a_sample_with_one_mistake_is_refused_in_words_that_say_what_is_right() {
    let port = "must be between 1 and 65535, inclusive";
    let url = "host, host:port or http(s) URL of the API server";
    // (kind, what is changed, what is said)
    let rows = [
        (Kind::Cluster, json!({"metadata.name": null}), "metadata.name: Required: Required value: name or generateName is required".to_owned()),
        (Kind::Cluster, json!({"spec.tenantID": null}), "spec.tenantID: Required: Required value".to_owned()),
        (Kind::Cluster, json!({"spec.type": "imported"}), "spec.type: NotSupported: Unsupported value: \"imported\": supported values: \"Imported\", \"Baremetal\", \"EKSHosting\", \"Edge\"".to_owned()),
        (Kind::Cluster, json!({"spec.addresses": null}), "status.addresses: Required: Required value: a Cluster of type Imported has spec.addresses".to_owned()),
        (Kind::Cluster, json!({"spec.addresses.0.type": "internal"}), "spec.addresses[0].type: NotSupported: Unsupported value: \"internal\": supported values: \"Advertise\", \"Real\", \"Internal\"".to_owned()),
        (Kind::Cluster, json!({"spec.addresses.0.host": ""}), "spec.addresses[0].host: Required: Required value".to_owned()),
        (Kind::Cluster, json!({"spec.addresses.0.port": 643_300}), format!("spec.addresses[0].port: Invalid: Invalid value: 643300: {port}")),
        (Kind::ClusterCredential, json!({"clusterName": null}), "clusterName: Required: Required value".to_owned()),
        (Kind::Machine, json!({"spec.type": "Imported"}), "spec.type: NotSupported: Unsupported value: \"Imported\": supported values: \"Baremetal\", \"Edge\"".to_owned()),
        (Kind::Machine, json!({"spec.clusterName": ""}), "spec.clusterName: Required: Required value: the Cluster that the machine is of".to_owned()),
        (Kind::Machine, json!({"spec.ip": "10.20.0"}), "spec.ip: Invalid: Invalid value: \"10.20.0\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()),
        (Kind::Machine, json!({"spec.port": 0}), format!("spec.port: Invalid: Invalid value: 0: {port}")),
        (Kind::Machine, json!({"spec.username": ""}), "spec.username: Required: Required value: the user of SSH".to_owned()),
        (Kind::Machine, json!({"spec.privateKey": null}), "spec.password: Required: Required value: password or privateKey, in base64".to_owned()),
        (Kind::KubeFedConfig, json!({"spec.clusterHealthCheck.period": "10"}), "spec.clusterHealthCheck.period: Invalid: Invalid value: \"10\": must be a duration above 0, such as 10s".to_owned()),
        (Kind::KubeFedConfig, json!({"spec.clusterHealthCheck.failureThreshold": 0}), "spec.clusterHealthCheck.failureThreshold: Invalid: Invalid value: 0: must be greater than 0".to_owned()),
        (Kind::KubeFedCluster, json!({"spec.apiEndpoint": ""}), format!("spec.apiEndpoint: Required: Required value: {url}")),
        (Kind::KubeFedCluster, json!({"spec.apiEndpoint": "https://10.20.0.10:64430000"}), "spec.apiEndpoint: Invalid: Invalid value: \"https://10.20.0.10:64430000\": has a port that is not between 1 and 65535".to_owned()),
        (Kind::KubeFedCluster, json!({"spec.secretRef.name": null}), "spec.secretRef.name: Required: Required value: the Secret with the token of the member".to_owned()),
    ];
    for (kind, edits, expected) in rows {
        let (_, sample) = samples().into_iter().find(|(of, _)| *of == kind).unwrap();
        assert_eq!(said(kind, &edited(sample, &edits)), [expected], "{edits}");
    }
}
