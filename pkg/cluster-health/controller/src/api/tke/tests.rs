use objects::Object;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::*;
use crate::api::ConditionStatus;

fn cluster(spec: Value, status: Value) -> Object<Cluster> {
    Object::read(json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
        "metadata": {"name": "cls-1", "uid": "u", "resourceVersion": "1"},
        "spec": spec, "status": status,
    }))
    .unwrap()
}

#[test]
fn a_cluster_without_a_status_is_initializing() {
    for status in
        [json!(null), json!({}), json!({"phase": ""}), json!({"phase": null, "conditions": null})]
    {
        let cluster = cluster(json!({"type": "Imported", "tenantID": "t"}), status);
        assert_eq!(cluster.status.phase, Phase::Initializing);
        assert_eq!(cluster.status.conditions, []);
    }
}

#[test]
fn words_and_times_that_are_not_known_do_not_hide_a_cluster() {
    let cluster = cluster(
        json!({"type": "Imported", "addresses": [{"type": "Tunnel", "host": "h", "port": 1}]}),
        json!({
            "phase": "Hibernating",
            "conditions": [
                {"type": "HealthCheck", "status": "Maybe", "lastProbeTime": "yesterday", "reason": null},
                {"type": "SyncVersion", "status": "True", "lastProbeTime": null,
                    "lastTransitionTime": "2026-01-02T03:04:05Z"},
            ],
        }),
    );
    assert_eq!(cluster.status.phase.to_string(), "Hibernating");
    let [odd, plain] = &cluster.status.conditions[..] else { panic!("two conditions") };
    assert_eq!((odd.status.to_string(), odd.last_probe_time), ("Maybe".to_owned(), None));
    assert_eq!(plain.status, ConditionStatus::True);
    assert_eq!(plain.last_transition_time.unwrap().to_string(), "2026-01-02T03:04:05Z");
    assert_eq!(cluster.body.spec.addresses[0].kind, AddressType::Other("Tunnel".into()));
}

#[test]
fn the_known_phases_are_written_as_they_are_read() {
    for word in ["Initializing", "Waiting", "Running", "Failed", "Confined", "Idling", "Upgrading"]
        .into_iter()
        .chain(["Terminating", "Upscaling", "Downscaling", "Recovering", "Odd"])
    {
        let phase: Phase = serde_json::from_value(json!(word)).unwrap();
        assert_eq!((phase.to_string(), json!(phase)), (word.to_owned(), json!(word)));
        assert_eq!(matches!(phase, Phase::Other(_)), word == "Odd");
    }
}

/// rule:secrets-are-never-shown
#[test]
fn passwords_of_machines_are_not_kept_in_clusters_and_machines() {
    let spec = json!({
        "type": "Baremetal", "clusterName": "cls-1", "ip": "10.0.0.1",
        "machines": [{"ip": "10.0.0.1", "password": "aHVudGVyMg=="}],
        "password": "aHVudGVyMg==", "privateKey": "aHVudGVyMg==",
    });
    let kept = cluster(spec.clone(), json!({})).whole();
    assert_eq!(kept["spec"], json!({"type": "Baremetal"}));
    let machine = Object::<Machine>::read(json!({
        "metadata": {"name": "mc-1", "uid": "u", "resourceVersion": "1"}, "spec": spec,
    }));
    let kept = machine.unwrap().whole();
    assert_eq!(kept["spec"], json!({"clusterName": "cls-1", "ip": "10.0.0.1"}));
}

#[test]
fn times_are_written_in_seconds_and_resources_as_they_are_shown() {
    let summary = ResourceSummary {
        capacity: [("cpu", "1500m".parse().unwrap()), ("memory", "1Ki".parse().unwrap())]
            .into_iter()
            .collect(),
        observed_time: Some("2026-01-02T03:04:05.678Z".parse().unwrap()),
        ..ResourceSummary::default()
    };
    let expected = json!({
        "capacity": {"cpu": "1500m", "memory": "1024"}, "allocatable": {}, "allocated": {},
        "observedTime": "2026-01-02T03:04:05Z",
    });
    assert_eq!(serde_json::to_value(summary).unwrap(), expected);
}

fn credential() -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
        "metadata": {"name": "cc-1", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "tenantID": "t", "clusterName": "cls-1",
        "caCert": "Y2E=", "caKey": "bm90IG5lZWRlZA==", "clientCert": "Y2VydA==",
        "clientKey": "aHVudGVyMg==", "token": "hunter2", "as": "user",
        "as-groups": ["a", "b"], "as-user-extra": {"scopes": "x,y"},
        "secretRef": {"namespace": "ns", "name": "s"},
    })
}

#[test]
fn the_fields_of_a_credential_that_a_probe_needs_are_decoded() {
    let read = ClusterCredential::read(credential().to_string().as_bytes()).unwrap();
    assert_eq!((&*read.metadata.name, &*read.cluster_name), ("cc-1", "cls-1"));
    assert_eq!(read.ca_cert.as_ref().unwrap().expose_secret(), b"ca");
    assert_eq!(read.client_cert.as_ref().unwrap().expose_secret(), b"cert");
    assert_eq!(read.client_key.as_ref().unwrap().expose_secret(), b"hunter2");
    assert_eq!(read.token.as_ref().unwrap().expose_secret(), "hunter2");
    assert_eq!((&*read.as_user, read.as_groups.len()), ("user", 2));
    assert_eq!(read.as_user_extra.get("scopes").map(AsRef::as_ref), Some("x,y"));
    assert_eq!(read.secret_ref, Some(SecretRef { namespace: "ns".into(), name: "s".into() }));
}

#[test]
fn absent_null_and_empty_secrets_are_none() {
    let list = json!({"items": [
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "b"}, "token": null, "caCert": null, "clientKey": null},
        {"metadata": {"name": "c"}, "token": "", "caCert": "", "clientKey": ""},
    ]});
    for read in CredentialPage::read(list.to_string().as_bytes()).unwrap().items {
        assert!(read.token.is_none() && read.ca_cert.is_none() && read.client_key.is_none());
    }
}

/// rule:secrets-are-never-shown
#[test]
fn neither_a_credential_nor_an_error_about_it_shows_a_secret() {
    let read = ClusterCredential::read(credential().to_string().as_bytes()).unwrap();
    let text = format!("{read:?} {:?} {:?}", read.token, read.client_key);
    assert!(!text.contains("hunter2") && !text.contains("104, 117"), "{text}");
    for (field, value) in [
        ("clientKey", json!("hunter2!")),
        ("token", json!(["hunter2"])),
        ("caCert", json!({"hunter2": 1})),
    ] {
        let mut odd = credential();
        odd[field] = value;
        let error = ClusterCredential::read(odd.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.field, field);
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}
