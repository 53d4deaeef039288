use objects::Object;
use serde_json::json;

use super::*;

#[test]
fn a_member_is_read_and_its_proxy_is_not_printed() {
    let member: Object<KubeFedCluster> = Object::read(json!({
        "metadata": {"namespace": "fed", "name": "a", "uid": "u", "resourceVersion": "1"},
        "spec": {"apiEndpoint": "https://h", "secretRef": {"name": "s"},
            "proxyURL": "http://user:hunter2@proxy", "disabledTLSValidations": ["*"]},
        "status": {"conditions": null, "zones": ["a"], "region": null},
    }))
    .unwrap();
    let spec = &member.body.spec;
    assert_eq!((&*spec.api_endpoint, &*spec.secret_ref.name), ("https://h", "s"));
    assert_eq!(spec.proxy_url, "http://user:hunter2@proxy");
    assert_eq!((member.status.zones.len(), &member.status.region), (1, &None));
    let text = format!("{member:?} {spec:?}");
    assert!(!text.contains("hunter2") && text.contains("\"*\""), "{text}");
}

#[test]
fn of_a_config_only_the_block_about_health_is_read() {
    let config: Object<KubeFedConfig> = Object::read(json!({
        "metadata": {"namespace": "fed", "name": "kubefed", "uid": "u", "resourceVersion": "1"},
        "spec": {"scope": "Cluster", "clusterHealthCheck": {"period": "10s", "failureThreshold": 3}},
    }))
    .unwrap();
    let expected = ClusterHealthCheck {
        period: Some("10s".into()),
        failure_threshold: Some(3),
        ..ClusterHealthCheck::default()
    };
    assert_eq!(config.body.spec.cluster_health_check, Some(expected));
}
