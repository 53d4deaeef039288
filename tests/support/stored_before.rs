//! Objects that were stored before the schemas of `config/crd` had their rules.

use serde_json::{Value, json};

use crate::kubectl::Kubectl;
use crate::poll::poll;
use crate::programs::workspace;

/// The schema of an older release: types, and no rule.
pub fn without_rules(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let rules =
                ["x-kubernetes-validations", "minimum", "maximum", "pattern", "maxLength", "enum"];
            for rule in rules {
                // A field may have such a name; that is an object.
                if !fields.get(rule).is_some_and(Value::is_object) {
                    fields.remove(rule);
                }
            }
            fields.values_mut().for_each(without_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(without_rules),
        _ => {}
    }
}

/// A server that has had these objects before its schemas had rules, and has the rules now.
pub async fn after_an_upgrade(objects: &[Value]) -> Kubectl {
    let kubectl = Kubectl::without_crds().await;
    let files = [
        "platform.tkestack.io_clusters",
        "platform.tkestack.io_machines",
        "core.kubefed.io_kubefedclusters",
    ];
    let files = files.map(|file| format!("config/crd/{file}.yaml"));
    for file in &files {
        let text = std::fs::read_to_string(workspace().join(file)).unwrap();
        let mut crd: Value = serde_saphyr::from_str(&text).unwrap();
        without_rules(&mut crd);
        kubectl.create(&crd);
    }
    kubectl.await_crds();
    for object in objects {
        poll("the kind is served", async || kubectl.may_create(object).then_some(())).await;
    }
    for file in &files {
        kubectl.run(&format!("replace -f {file}"));
    }
    for object in objects {
        let mut names = 0;
        // Objects that are accepted meanwhile do no harm.
        poll("the rules are in force", async || {
            names += 1;
            let mut another = object.clone();
            another["metadata"]["name"] = json!(format!("another.{names}"));
            (!kubectl.may_create(&another)).then_some(())
        })
        .await;
    }
    kubectl
}

/// Everything is wrong with them that a schema finds.
pub fn hopeless() -> [Value; 5] {
    let cluster = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls.bad"},
        "spec": {"tenantID": "t", "type": "Baremetal", "clusterCIDR": "x",
            "machines": [{"ip": "x", "port": 0, "username": ""}, {"ip": "x", "port": 70_000, "username": ""}],
            "features": {"ha": {"tke": {"vip": "lb", "vrid": 999}, "thirdParty": {}}},
            "addresses": [{"type": "Real", "host": "", "port": 0, "path": "a"}]},
    });
    let machine = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": "mc.bad"},
        "spec": {"clusterName": "", "type": "", "ip": "", "port": 0, "username": ""},
    });
    let member = json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": "bad", "namespace": "default"},
        "spec": {"apiEndpoint": "", "secretRef": {"name": "A"}, "proxyURL": "x",
            "disabledTLSValidations": ["*", "SubjectName"]},
    });
    let empty = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls.empty"},
        "spec": {"tenantID": "", "type": "Baremetal", "clusterCIDR": "", "serviceCIDR": "", "version": "",
            "networkDevice": "", "dnsDomain": "", "features": {"gpuType": ""},
            "machines": [{"ip": "", "port": 22, "username": "root"}],
            "addresses": [{"type": "", "host": "", "port": 1}]},
    });
    let imported = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls.odd"},
        "spec": {"tenantID": "t", "type": "Imported", "features": {"gpuType": "Odd"},
            "properties": {"maxNodePodNum": 7, "maxClusterServiceNum": 7}},
    });
    [cluster, empty, imported, machine, member]
}
