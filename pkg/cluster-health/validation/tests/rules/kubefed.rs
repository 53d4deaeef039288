//! KubeFed's kinds.

use serde_json::{Value, json};

use crate::objects::{federation, member};
use crate::row::{Row, all_hold, edited, row};

/// `MA==` is no certificate; this is the beginning of one as far as PEM goes.
const PEM: &str =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1BPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";
const HTTP: &str = "warning: spec.apiEndpoint: over plain http the token can be read on the way";

pub(crate) fn rows() -> Vec<Row> {
    [endpoints(), secrets(), tls(), doubles(), health()].into_iter().flatten().collect()
}

#[test]
fn a_member_is_judged_field_by_field() {
    all_hold(rows());
}

fn endpoints() -> Vec<Row> {
    let at =
        |text: &str| row("member-endpoints-are-urls", member, json!({"spec.apiEndpoint": text}));
    let says = |shown: &str, why: &str| {
        format!("spec.apiEndpoint: Invalid: Invalid value: \"{shown}\": {why}")
    };
    let words = "must be a host, a host and port, or an http or https URL";
    vec![
        at("10.0.0.1"),
        at("10.0.0.1:6443"),
        at("api.example"),
        at("https://api.example/k8s/clusters/c-1"),
        at("HTTPS://[fd00::1]:6443"),
        at("http://10.0.0.1:8080").says(&[HTTP]),
        at("").says(&["spec.apiEndpoint: Required: Required value: host, host:port or http(s) URL of the API server"]),
        at("ftp://10.0.0.1").says(&["spec.apiEndpoint: NotSupported: Unsupported value: \"ftp://10.0.0.1\": supported values: \"http\", \"https\""]),
        at("10.0.0.1:0").says(&[&says("10.0.0.1:0", "has a port that is not between 1 and 65535")]),
        at("10.0.0.1:65536").says(&[&says("10.0.0.1:65536", "has a port that is not between 1 and 65535")]),
        at("https://").says(&[&says("https://", words)]),
        at("a b").says(&[&says("a b", words)]),
        at("api.example/path").says(&[&says("api.example/path", "a path needs https:// before the host")]),
        at("https://a/?x=1").says(&[&says("https://a/?x=1", "must not have a query or a fragment")]),
        at("https://user:planted@a").says(&[&says("(hidden)", "must not hold a user name; credentials belong into the Secret")]),
    ]
}

fn secrets() -> Vec<Row> {
    let at = |value: Value| row("members-name-a-secret", member, json!({"spec.secretRef": value}));
    let none = "Required: Required value: the Secret with the token of the member";
    vec![
        at(json!({"name": "a.b"})),
        at(json!(null)).says(&[&format!("spec.secretRef: {none}")]),
        at(json!({})).says(&[&format!("spec.secretRef.name: {none}")]),
        at(json!({"name": ""})).says(&[&format!("spec.secretRef.name: {none}")]),
        at(json!({"name": "A"})).says(&["spec.secretRef.name: Invalid: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]),
    ]
}

fn tls() -> Vec<Row> {
    let waived = |names: Value| {
        row("waived-checks-are-known", member, json!({"spec.disabledTLSValidations": names}))
    };
    let proxy = |text: &str| row("member-proxies-are-urls", member, json!({"spec.proxyURL": text}));
    let bundle =
        |text: &str| row("member-authorities-are-pem", member, json!({"spec.caBundle": text}));
    let refused = |shown: &str| {
        format!(
            "spec.proxyURL: Invalid: Invalid value: \"{shown}\": must be an absolute URL with the scheme http, https or socks5"
        )
    };
    let unknown = |at: usize, shown: &str| {
        format!(
            "spec.disabledTLSValidations[{at}]: NotSupported: Unsupported value: \"{shown}\": supported values: \"*\", \"SubjectName\", \"ValidityPeriod\""
        )
    };
    let mut rows = vec![
        waived(json!(["*"])),
        waived(json!(["SubjectName", "ValidityPeriod"])),
        waived(json!(["SubjectName", "All"])).says(&[&unknown(1, "All")]),
        waived(json!(["*", "SubjectName"])).says(&["spec.disabledTLSValidations: Invalid: Invalid value: \"array\": * waives every check and stands alone"]),
        bundle(PEM),
        bundle("").says(&["spec.caBundle: TypeInvalid: Invalid value: \"string\": spec.caBundle in body must be of type byte (base64): \"string\""]),
        bundle("Y2VydA==").says(&["warning: spec.caBundle: holds no certificate in PEM"]),
        bundle("not base64").says(&["spec.caBundle: TypeInvalid: Invalid value: \"string\": spec.caBundle in body must be of type byte (base64): \"string\""]),
    ];
    for text in ["", "http://proxy:3128", "https://user:planted@proxy", "socks5://[fd00::1]:1080"] {
        rows.push(proxy(text));
    }
    for text in [
        "proxy:3128",
        "ftp://proxy",
        "http://",
        "http://proxy:0",
        "http://proxy:99999",
        "::",
        "http://a b",
    ] {
        rows.push(proxy(text).says(&[&refused(text)]));
    }
    rows.push(proxy("ftp://user:planted@proxy").says(&[&refused("(hidden)")]));
    rows
}

fn doubles() -> Vec<Row> {
    let at = |name: &str, endpoint: &str| {
        let other = edited(member(), &json!({"metadata.name": name, "spec.apiEndpoint": endpoint}));
        row("doubled-members-are-told", member, json!({}))
            .given(json!({"kubeFedClusters": [other]}))
    };
    let uids = |other: &str| {
        let two = edited(member(), &json!({"metadata.name": "two", "spec.apiEndpoint": "b"}));
        row("doubled-members-are-told", member, json!({})).given(json!({
            "kubeFedClusters": [two],
            "networkChecks": {"kubeSystemUIDs": {"fed/one": "uid-1", "fed/two": other}},
        }))
    };
    vec![
        at("two", "https://10.0.0.1:443"),
        at("one", "https://10.0.0.1:6443"),
        uids("uid-2"),
        at("two", "10.0.0.1:6443/").says(&[]),
        at("two", "HTTPS://10.0.0.1:6443/")
            .says(&["warning: spec.apiEndpoint: the KubeFedCluster fed/two has the same endpoint"]),
        uids("uid-1")
            .says(&["warning: spec.apiEndpoint: the KubeFedCluster fed/two is the same cluster"]),
    ]
}

fn health() -> Vec<Row> {
    let at = |name: &str, value: Value| {
        let path = format!("spec.clusterHealthCheck.{name}");
        row("health-checks-are-whole", federation, json!({path: value}))
    };
    let span = |name: &str, shown: &str| {
        format!(
            "spec.clusterHealthCheck.{name}: Invalid: Invalid value: {shown}: must be a duration above 0, such as 10s"
        )
    };
    let count = |name: &str, shown: &str| {
        format!(
            "spec.clusterHealthCheck.{name}: Invalid: Invalid value: {shown}: must be greater than 0"
        )
    };
    let none = |name: &str, hint: &str| {
        format!("spec.clusterHealthCheck.{name}: Required: Required value{hint}")
    };
    vec![
        at("period", json!("1m30s")),
        at("failureThreshold", json!(1)),
        at("period", json!(null)).says(&[&none("period", ": a duration, such as 10s")]),
        at("period", json!("soon")).says(&[&span("period", "\"soon\"")]),
        at("timeout", json!("0s")).says(&[&span("timeout", "\"0s\"")]),
        at("timeout", json!("-1s")).says(&[&span("timeout", "\"-1s\"")]),
        at("failureThreshold", json!(0)).says(&[&count("failureThreshold", "0")]),
        at("successThreshold", json!(null))
            .says(&[&none("successThreshold", ": a number of probes, such as 3")]),
        row("health-checks-are-whole", federation, json!({"spec.clusterHealthCheck": null}))
            .says(&["spec.clusterHealthCheck: Required: Required value: how members are probed"]),
    ]
}
