//! The shipped samples: nothing is wrong with them, and with each one field wrong they are refused
//! in words that a person understands.

use serde_json::{Value, json};
use validation::{Environment, Kind, Operation, validate};

use crate::row::{edited, lines};

/// Objects of `config/samples` whose kind has rules.
pub(crate) fn samples() -> Vec<(Kind, Value)> {
    let texts = [
        include_str!("../../../../../config/samples/tke.yaml"),
        include_str!("../../../../../config/samples/kubefed.yaml"),
        include_str!("../../../../../config/samples/cluster-cidrs.yaml"),
        include_str!("../../../../../config/samples/cluster-api.yaml"),
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
    let expected = [
        "Cluster",
        "ClusterCredential",
        "Machine",
        "KubeFedConfig",
        "KubeFedCluster",
        "ClusterCIDR",
        "ClusterCIDR",
        "AWSCluster",
    ];
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

/// Every sample with one field of another type: which field, and the sample.
pub(crate) fn of_other_types() -> Vec<(Kind, String, Value)> {
    // Kept as it is: the schema does not name it. The rest is what every object has.
    let is_judged = |path: &String| {
        path != "spec.scope"
            && (!path.contains("metadata") || path == "metadata.name")
            && path != "apiVersion"
            && path != "kind"
    };
    let of_sample = |(kind, object): (Kind, Value)| {
        let mut paths = Vec::new();
        fields(&object, "", &mut paths);
        let wrong = move |path: String| {
            let wrong = edited(object.clone(), &json!({path.clone(): 0.5}));
            (kind, printed(&path), wrong)
        };
        paths.into_iter().filter(is_judged).map(wrong)
    };
    samples().into_iter().flat_map(of_sample).collect()
}

#[test]
fn a_field_of_another_type_is_refused_by_its_path_wherever_it_is_in_a_sample() {
    let wrong = of_other_types();
    for (kind, field, object) in &wrong {
        let expected = format!(
            "{field}: TypeInvalid: Invalid value: \"number\": {field} in body must be of type "
        );
        let said = said(*kind, object);
        assert!(said.iter().any(|line| line.starts_with(&expected)), "{kind} {field}: {said:?}");
    }
    assert!(wrong.len() > 70, "{} fields", wrong.len());
}

/// Samples with one mistake, and what is said of it.
pub(crate) fn with_a_mistake() -> Vec<(Kind, Value, String)> {
    let port = "must be between 1 and 65535, inclusive";
    let url = "host, host:port or http(s) URL of the API server";
    // (kind, what is changed, what is said)
    let rows = [
        (Kind::Cluster, json!({"metadata.name": null}), "metadata.name: Required: Required value: name or generateName is required".to_owned()),
        (Kind::Cluster, json!({"spec.tenantID": null}), "spec.tenantID: Required: Required value: the tenant that the cluster is of".to_owned()),
        (Kind::Cluster, json!({"spec.type": "imported"}), "spec.type: NotSupported: Unsupported value: \"imported\": supported values: \"Imported\", \"Baremetal\", \"EKSHosting\", \"Edge\"".to_owned()),
        (Kind::Cluster, json!({"spec.addresses": null}), "status.addresses: Required: Required value: say in spec.addresses where the API server of the cluster is".to_owned()),
        (Kind::Cluster, json!({"spec.addresses.0.type": "internal"}), "spec.addresses[0].type: NotSupported: Unsupported value: \"internal\": supported values: \"Advertise\", \"Real\", \"Internal\"".to_owned()),
        (Kind::Cluster, json!({"spec.addresses.0.host": ""}), "spec.addresses[0].host: Required: Required value: the name or IP address of the API server".to_owned()),
        (Kind::Cluster, json!({"spec.addresses.0.port": 643_300}), format!("spec.addresses[0].port: Invalid: Invalid value: 643300: {port}")),
        (Kind::ClusterCredential, json!({"clusterName": null}), "clusterName: Required: Required value: the Cluster that it leads into".to_owned()),
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
        (Kind::ClusterCidr, json!({"spec.ipv4": "10.20.0.0"}), "spec.ipv4: Invalid: Invalid value: \"10.20.0.0\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()),
        (Kind::ClusterCidr, json!({"spec.perNodeHostBits": 2}), "spec.perNodeHostBits: Invalid: Invalid value: 2: must be between 4 and 124, inclusive".to_owned()),
        (Kind::ClusterCidr, json!({"spec.perNodeHostBits": 17}), "spec.perNodeHostBits: Invalid: Invalid value: 17: must be less than or equal to 16 for 10.20.0.0/16".to_owned()),
        (Kind::ClusterCidr, json!({"spec.nodeSelector.nodeSelectorTerms.0.matchExpressions.0.operator": "exists"}), "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].operator: NotSupported: Unsupported value: \"exists\": supported values: \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\"".to_owned()),
        (Kind::AwsCluster, json!({"spec.region": null}), "spec.region: Required: Required value: the region of AWS".to_owned()),
        (Kind::AwsCluster, json!({"spec.networkSpec.vpc.cidrBlock": "10.0.0.0/8"}), "spec.networkSpec.vpc.cidrBlock: Invalid: Invalid value: \"10.0.0.0/8\": the mask of a VPC is /16 to /28".to_owned()),
        (Kind::AwsCluster, json!({"spec.networkSpec.subnets.0.cidrBlock": "10.66.0.0"}), "spec.networkSpec.subnets[0].cidrBlock: TypeInvalid: Invalid value: \"string\": spec.networkSpec.subnets[0].cidrBlock in body must be of type cidr (such as 10.0.0.0/16): \"string\"".to_owned()),
    ];
    let wrong = |(kind, edits, expected): (Kind, Value, String)| {
        let (_, sample) = samples().into_iter().find(|(of, _)| *of == kind).unwrap();
        (kind, edited(sample, &edits), expected)
    };
    rows.into_iter().map(wrong).collect()
}

#[test]
fn a_sample_with_one_mistake_is_refused_in_words_that_say_what_is_right() {
    for (kind, object, expected) in with_a_mistake() {
        assert_eq!(said(kind, &object), [expected], "{object}");
    }
}
