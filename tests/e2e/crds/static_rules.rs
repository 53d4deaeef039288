//! Rules that the schemas of `config/crd` have: the API server finds the same fields and causes as
//! the library.

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tests::dynamic::api;
use validation::{Environment, Kind, Operation};

use crate::plane;

fn master(ip: &str) -> Value {
    json!({"ip": ip, "port": 22, "username": "root", "password": "c2VjcmV0"})
}

fn baremetal() -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls-1"},
        "spec": {"tenantID": "t", "type": "Baremetal", "version": "1.22.3", "clusterCIDR": "10.244.0.0/16",
            "dnsDomain": "cluster.local", "features": {"ha": {}},
            "addresses": [{"type": "Real", "host": "h", "port": 1}],
            "machines": [master("10.0.0.1"), master("10.0.0.2")]},
    })
}

fn machine() -> Value {
    let mut spec = master("10.0.0.1");
    spec["clusterName"] = json!("cls-1");
    spec["type"] = json!("Baremetal");
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": "mc-1"},
        "spec": spec,
    })
}

fn member() -> Value {
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"apiEndpoint": "https://10.0.0.1:6443", "secretRef": {"name": "one"}},
    })
}

/// An object with one mistake: where it is, its value, and what the API server and the library call
/// it. Null takes the field away.
type Row = (fn() -> Value, &'static str, Value, &'static str, &'static str);

const REQUIRED: &str = "FieldValueRequired";
const INVALID: &str = "FieldValueInvalid";

fn mistakes_of_clusters() -> Vec<Row> {
    let tke = json!({"vip": "lb", "vrid": 1});
    let others = json!({"vip": "10.0.0.9", "vport": 0});
    vec![
        (baremetal, "/metadata/name", json!("a.b"), "metadata.name", INVALID),
        (baremetal, "/spec/tenantID", Value::Null, "spec.tenantID", REQUIRED),
        (baremetal, "/spec/type", Value::Null, "spec.type", REQUIRED),
        (baremetal, "/spec/type", json!(""), "spec.type", "FieldValueNotSupported"),
        (baremetal, "/spec/type", json!(7), "spec.type", "FieldValueTypeInvalid"),
        (baremetal, "/spec/clusterCIDR", Value::Null, "spec.clusterCIDR", REQUIRED),
        (baremetal, "/spec/clusterCIDR", json!(""), "spec.clusterCIDR", REQUIRED),
        (baremetal, "/spec/clusterCIDR", json!("10.0.0.0/33"), "spec.clusterCIDR", INVALID),
        (baremetal, "/spec/clusterCIDR", json!("::ffff:10.0.0.0/104"), "spec.clusterCIDR", INVALID),
        (baremetal, "/spec/machines", Value::Null, "spec.machines", REQUIRED),
        (baremetal, "/spec/machines", json!([]), "spec.machines", REQUIRED),
        (baremetal, "/spec/machines/1/ip", Value::Null, "spec.machines[1].ip", REQUIRED),
        (baremetal, "/spec/machines/1/ip", json!(""), "spec.machines[1].ip", REQUIRED),
        (baremetal, "/spec/machines/1/ip", json!("10.0.0.256"), "spec.machines[1].ip", INVALID),
        (baremetal, "/spec/machines/1/ip", json!("10.0.0.01"), "spec.machines[1].ip", INVALID),
        (baremetal, "/spec/machines/1/ip", json!("::ffff:1.2.3.4"), "spec.machines[1].ip", INVALID),
        (baremetal, "/spec/machines/1/ip", json!("fe80::1%eth0"), "spec.machines[1].ip", INVALID),
        (
            baremetal,
            "/spec/machines/1/ip",
            json!("10.0.0.1"),
            "spec.machines[1].ip",
            "FieldValueDuplicate",
        ),
        (baremetal, "/spec/machines/1/port", Value::Null, "spec.machines[1].port", REQUIRED),
        (baremetal, "/spec/machines/1/port", json!(0), "spec.machines[1].port", INVALID),
        (baremetal, "/spec/machines/1/port", json!(65536), "spec.machines[1].port", INVALID),
        (
            baremetal,
            "/spec/machines/1/port",
            json!("22"),
            "spec.machines[1].port",
            "FieldValueTypeInvalid",
        ),
        (baremetal, "/spec/machines/1/username", json!(""), "spec.machines[1].username", REQUIRED),
        (
            baremetal,
            "/spec/machines/1/password",
            Value::Null,
            "spec.machines[1].password",
            REQUIRED,
        ),
        (
            baremetal,
            "/spec/machines/1/password",
            json!(""),
            "spec.machines[1].password",
            "FieldValueTypeInvalid",
        ),
        (baremetal, "/spec/features/ha/tke", tke, "spec.features.ha.tke.vip", INVALID),
        (
            baremetal,
            "/spec/features/ha/tke",
            json!({"vip": "10.0.0.9", "vrid": 256}),
            "spec.features.ha.tke.vrid",
            INVALID,
        ),
        (
            baremetal,
            "/spec/features/ha/thirdParty",
            others,
            "spec.features.ha.thirdParty.vport",
            INVALID,
        ),
        (
            baremetal,
            "/spec/addresses/0/type",
            json!("Tunnel"),
            "spec.addresses[0].type",
            "FieldValueNotSupported",
        ),
        (baremetal, "/spec/addresses/0/host", json!(""), "spec.addresses[0].host", REQUIRED),
        (baremetal, "/spec/addresses/0/port", json!(0), "spec.addresses[0].port", INVALID),
        (baremetal, "/spec/addresses/0/path", json!("a"), "spec.addresses[0].path", INVALID),
        (
            baremetal,
            "/spec/addresses",
            json!(vec![baremetal()["spec"]["addresses"][0].clone(); 33]),
            "spec.addresses",
            "FieldValueTooMany",
        ),
    ]
}

fn mistakes_of_machines_and_members() -> Vec<Row> {
    vec![
        (machine, "/metadata/name", json!("a.b"), "metadata.name", INVALID),
        (machine, "/spec/clusterName", json!(""), "spec.clusterName", REQUIRED),
        (machine, "/spec/type", Value::Null, "spec.type", REQUIRED),
        (machine, "/spec/ip", json!("host"), "spec.ip", INVALID),
        (machine, "/spec/port", json!(-1), "spec.port", INVALID),
        (machine, "/spec/username", json!(""), "spec.username", REQUIRED),
        (machine, "/spec/password", Value::Null, "spec.password", REQUIRED),
        (member, "/spec/apiEndpoint", json!(""), "spec.apiEndpoint", REQUIRED),
        (member, "/spec/apiEndpoint", json!("https://user:secret@a"), "spec.apiEndpoint", INVALID),
        (member, "/spec/secretRef", Value::Null, "spec.secretRef", REQUIRED),
        (member, "/spec/secretRef/name", json!(""), "spec.secretRef.name", REQUIRED),
        (member, "/spec/secretRef/name", json!("A"), "spec.secretRef.name", INVALID),
        (member, "/spec/proxyURL", json!("proxy:3128"), "spec.proxyURL", INVALID),
        (
            member,
            "/spec/disabledTLSValidations",
            json!(["All"]),
            "spec.disabledTLSValidations[0]",
            "FieldValueNotSupported",
        ),
        (
            member,
            "/spec/disabledTLSValidations",
            json!(["*", "SubjectName"]),
            "spec.disabledTLSValidations",
            INVALID,
        ),
    ]
}

/// Changes that are refused of what is stored.
fn changes() -> Vec<Row> {
    vec![
        (baremetal, "/spec/type", json!("Imported"), "spec.type", INVALID),
        (machine, "/spec/type", json!("Edge"), "spec.type", INVALID),
        (machine, "/spec/clusterName", json!("cls-2"), "spec.clusterName", INVALID),
    ]
}

fn with(mut object: Value, at: &str, value: Value) -> Value {
    let (parent, name) = at.rsplit_once('/').unwrap();
    let parent = object.pointer_mut(parent).unwrap();
    match value {
        Value::Null => drop(parent.as_object_mut().unwrap().remove(name)),
        value => parent[name] = value,
    }
    object
}

/// Field and reason of every cause in a refusal; none when it is taken.
fn causes(answer: kube::Result<DynamicObject>) -> Vec<(String, String)> {
    let status = match answer {
        Ok(_) => return Vec::new(),
        Err(kube::Error::Api(status)) => status,
        Err(error) => panic!("no answer: {error}"),
    };
    assert_eq!(status.code, 422, "{status:?}");
    let causes = status.details.map(|details| details.causes).unwrap_or_default();
    // Said where CEL was left out since the schema had refused already.
    let causes = causes.into_iter().filter(|cause| cause.field != "<nil>");
    let causes: Vec<_> = causes.map(|cause| (cause.field, cause.reason)).collect();
    // For a value of another type, a schema also reports that the value is not in the enum.
    let is_of_another_type =
        |field: &str| causes.contains(&(field.to_owned(), "FieldValueTypeInvalid".to_owned()));
    let is_told = |cause: &&(String, String)| {
        cause.1 != "FieldValueNotSupported" || !is_of_another_type(&cause.0)
    };
    causes.iter().filter(is_told).cloned().collect()
}

fn by_library(object: &Value, operation: Operation<'_>) -> Vec<(String, String)> {
    let kind = Kind::of(object).unwrap();
    let findings = validation::validate(kind, object, operation, &Environment::default());
    let errors = findings.errors.into_iter();
    errors.map(|error| (error.field, error.error_type.reason().to_owned())).collect()
}

/// A schema names the list in which an item is there twice.
fn as_a_schema_says(field: &str, reason: &str) -> (String, String) {
    let list = field.split_once('[').filter(|_| reason == "FieldValueDuplicate");
    (list.map_or(field, |(list, _)| list).to_owned(), reason.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_and_the_library_refuse_the_same_field_for_the_same_cause() {
    let kubectl = plane().await;
    let client = kubectl.plane.client().await;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    for base in [baremetal, machine, member] {
        let (api, object) = api(&client, &base()).await;
        api.create(&PostParams::default(), &object).await.unwrap();
        assert_eq!(by_library(&base(), Operation::Create), [], "{}", base());
    }
    let mut wrong = Vec::new();
    let mistakes = [mistakes_of_clusters(), mistakes_of_machines_and_members()].concat();
    for (base, at, value, field, reason) in mistakes {
        let object = with(with(base(), "/metadata/name", json!("new")), at, value);
        let expected = vec![(field.to_owned(), reason.to_owned())];
        let (api, sent) = api(&client, &object).await;
        let server = causes(api.create(&dry_run, &sent).await);
        let library = by_library(&object, Operation::Create);
        if server != [as_a_schema_says(field, reason)] || library != expected {
            wrong.push(format!("{at} in {object}: {server:?}, library {library:?}"));
        }
    }
    for (base, at, value, field, reason) in changes() {
        let object = with(base(), at, value);
        let expected = vec![(field.to_owned(), reason.to_owned())];
        let (api, sent) = api(&client, &object).await;
        let merge = PatchParams { dry_run: true, ..PatchParams::default() };
        let name = sent.metadata.name.clone().unwrap();
        let server = causes(api.patch(&name, &merge, &Patch::Merge(&sent)).await);
        let library = by_library(&object, Operation::Update { old: &base() });
        if server != expected || library != expected {
            wrong.push(format!("{at} in {object}: {server:?}, library {library:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
