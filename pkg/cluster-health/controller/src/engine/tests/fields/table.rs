//! The values of each field of the kinds of cluster-health, and the fields that are not read.

use super::*;

/// Authorities in base64, one for each name.
pub(super) fn authority(name: &str) -> String {
    STANDARD.encode(pair(name).0)
}

/// A certificate and its key, one pair for each name.
fn pair(name: &str) -> (String, String) {
    thread_local! {
        static PAIRS: RefCell<HashMap<String, (String, String)>> = RefCell::default();
    }
    let make = || {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    PAIRS.with_borrow_mut(|all| all.entry(name.to_owned()).or_insert_with(make).clone())
}

/// A ClusterCredential of `cls-1`.
pub(super) fn credential(name: &str) -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
        "metadata": {"name": name}, "tenantID": "t", "clusterName": "cls-1", "token": name,
    })
}

fn kubefed() -> Value {
    json!({
        "object": crate::kubefed::testing::sent(|it| it["spec"]["secretRef"]["name"] = "s-1".into()),
        "config": {
            "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedConfig",
            "metadata": {"namespace": "fed", "name": "kubefed"}, "spec": {"clusterHealthCheck": {}},
        },
    })
}

#[test]
fn a_field_of_a_kubefed_cluster_or_config_that_is_changed_or_reverted_leaves_no_trace() {
    let url = "https://10.0.0.2:6443";
    let fields = [
        Field::new("object.spec.apiEndpoint", url, "10.0.0.3").refuses("ftp://10.0.0.4"),
        Field::new("object.spec.caBundle", authority("one"), authority("two")).refuses("%"),
        Field::new("object.spec.secretRef.name", "s-2", "s-3").refuses("No Name"),
        Field::new("object.spec.disabledTLSValidations", json!(["SubjectName"]), json!(["*"])),
        Field::new("object.spec.proxyURL", "http://10.1.0.1:3128", "socks5://10.1.0.2:1080")
            .refuses("ftp://10.1.0.3"),
        Field::new("config.spec.clusterHealthCheck.period", "20s", "30s").refuses("1ms"),
        Field::new("config.spec.clusterHealthCheck.timeout", "4s", "5s").refuses("-1s"),
        Field::new("config.spec.clusterHealthCheck.failureThreshold", 5, 6).refuses(0),
        Field::new("config.spec.clusterHealthCheck.successThreshold", 2, 4).refuses(-1),
    ];
    let cluster = Crd::read("config/crd/core.kubefed.io_kubefedclusters.yaml");
    let mut others = cluster.is_complete(&["spec"], "object", &fields, &[]);
    let config = Crd::read("config/crd/core.kubefed.io_kubefedconfigs.yaml");
    let of_federation = "settings of the federation, which only KubeFed reads";
    let exceptions = [("spec.*", of_federation), ("spec.clusterHealthCheck.*", of_federation)];
    others.extend(config.is_complete(&["spec"], "config", &fields, &exceptions));
    follows::<KubeFed>(&kubefed(), &fields, others);
}

/// Why fields of TKEStack's kinds are not read.
const OF_INSTALLER: &str = "the installer of TKEStack reads it, no probe needs it";
const OF_PEOPLE: &str = "people read it, no probe needs it";
const OF_OTHERS: &str = "fields of others";

fn tke() -> Value {
    let at = json!({"type": "Internal", "host": "10.0.0.1", "port": 6443});
    json!({
        "object": {
            "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
            "metadata": {"name": "cls-1"},
            "spec": {"tenantID": "t", "type": "Imported", "addresses": [at]},
            "status": {"phase": "Running"},
        },
        "credential": credential("cc-1"),
    })
}

fn of_cluster() -> Vec<Field> {
    let address = |host: &str, port: u16| json!([{"type": "Internal", "host": host, "port": port}]);
    vec![
        Field::new("object.spec.tenantID", "other", Value::Null),
        Field::new("object.spec.type", "Baremetal", Value::Null)
            .given("object.status.phase", "Initializing")
            .replaced(),
        Field::new("object.spec.clusterCredentialRef.name", "cc-2", "cc-3").refuses("cc-9"),
        Field::new("object.spec.addresses", address("10.0.0.2", 6443), address("10.0.0.3", 443))
            .refuses(json!([{"type": "Public", "host": "10.0.0.2", "port": 6443}])),
        Field::new("object.spec.addresses[].type", "Advertise", "Real").refuses("Support"),
        Field::new("object.spec.addresses[].host", "10.0.0.2", "fd00::1").refuses("a b"),
        Field::new("object.spec.addresses[].port", 443, 8443).refuses(0),
        Field::new("object.spec.addresses[].path", "/one", "/two").refuses("/a b"),
    ]
}

fn of_credential() -> Vec<Field> {
    let ((one, key), (_, key_of_other)) = (pair("client"), pair("other client"));
    let [one, key, key_of_other] = [one, key, key_of_other].map(|it| STANDARD.encode(it));
    vec![
        Field::new("credential.tenantID", "other", Value::Null),
        Field::new("credential.clusterName", "cls-2", Value::Null),
        Field::new("credential.caCert", authority("one"), authority("two"))
            .refuses(STANDARD.encode("no PEM")),
        Field::new("credential.clientCert", one.clone(), Value::Null)
            .given("credential.clientKey", key.clone())
            .given("credential.clientCert", authority("renewed")),
        Field::new("credential.clientKey", Value::Null, Value::Null)
            .given("credential.clientCert", one)
            .given("credential.clientKey", key)
            .refuses(key_of_other),
        Field::new("credential.token", "one", "two").refuses(""),
        Field::new("credential.as", "alice", "bob").refuses("a\nb"),
        Field::new("credential.as-groups", json!(["one"]), json!(["one", "two"]))
            .given("credential.as", "root"),
        Field::new("credential.as-user-extra", json!({"a": "1"}), json!({"a": "1,2"}))
            .given("credential.as", "root"),
        Field::new("credential.secretRef.namespace", "ns-2", "ns-3")
            .given("credential.token", Value::Null)
            .given("credential.secretRef", json!({"namespace": "ns-1", "name": "s-1"}))
            .refuses(""),
        Field::new("credential.secretRef.name", "s-2", "s-3")
            .given("credential.token", Value::Null)
            .given("credential.secretRef", json!({"namespace": "ns-1", "name": "s-1"}))
            .refuses("No Name"),
    ]
}

#[test]
fn a_field_of_a_tke_cluster_or_credential_that_is_changed_or_reverted_leaves_no_trace() {
    let fields = [of_cluster(), of_credential()].concat();
    let installer = [
        "finalizers",
        "version",
        "networkType",
        "networkDevice",
        "clusterCIDR",
        "serviceCIDR",
        "dnsDomain",
        "publicAlternativeNames",
        "features",
        "properties",
        "machines",
        "dockerExtraArgs",
        "kubeletExtraArgs",
        "apiServerExtraArgs",
        "controllerManagerExtraArgs",
        "schedulerExtraArgs",
    ];
    let installer = installer.map(|name| format!("spec.{name}"));
    let mut exceptions: Vec<_> = installer.iter().map(|it| (&**it, OF_INSTALLER)).collect();
    exceptions.extend([("spec.displayName", OF_PEOPLE)]);
    exceptions.extend(
        ["spec.*", "spec.clusterCredentialRef.*", "spec.addresses[].*"].map(|it| (it, OF_OTHERS)),
    );
    let cluster = Crd::read("config/crd/platform.tkestack.io_clusters.yaml");
    let mut others = cluster.is_complete(&["spec"], "object", &fields, &exceptions);
    let never = "a key that is not ours to use: rule:secrets-are-never-shown";
    let mut exceptions: Vec<_> = [
        "etcdCACert",
        "etcdCAKey",
        "etcdAPIClientCert",
        "etcdAPIClientKey",
        "caKey",
        "bootstrapToken",
        "certificateKey",
    ]
    .map(|it| (it, never))
    .to_vec();
    exceptions.extend([("username", OF_PEOPLE), ("*", OF_OTHERS), ("secretRef.*", OF_OTHERS)]);
    exceptions.extend(["apiVersion", "kind", "metadata"].map(|it| (it, "of every object")));
    let credential = Crd::read("config/crd/platform.tkestack.io_clustercredentials.yaml");
    let of_each_object = ["apiVersion", "kind", "metadata"].map(|it| format!("credential.{it}"));
    let kept = credential.is_complete(&[""], "credential", &fields, &exceptions).into_iter();
    // Without a name and a namespace a reference to a Secret is wrong.
    let is_alone =
        |path: &String| !of_each_object.contains(path) && path != "credential.secretRef.*";
    others.extend(kept.filter(|(path, _)| is_alone(path)));
    follows::<Tke>(&tke(), &fields, others);
}

/// The fields of a ClusterProfile, as its schema has them.
fn of_profile() -> Vec<Field> {
    let at =
        |rest: &str| -> &'static str { format!("object.status.accessProviders[].{rest}").leak() };
    let config = at("cluster.extensions[].extension");
    let extension =
        |name: &str, secret: &str| json!([{"name": name, "extension": {"clusterName": secret}}]);
    let exec = "client.authentication.k8s.io/exec";
    let none = || Value::Null;
    vec![
        Field::new("object.spec.clusterManager.name", "infra-controller-manager", none())
            .replaced(),
        Field::new(at("name"), "kubeconfig-secretreader", none())
            .given(config, json!({"clusterName": "s", "name": "s-1", "key": "value"}))
            .refuses("unknown"),
        Field::new(at("cluster.server"), "https://10.0.0.2", "https://10.0.0.3:6443")
            .refuses("ftp://10.0.0.4"),
        Field::new(at("cluster.tls-server-name"), "two.example.org", "three.example.org")
            .refuses("no name"),
        Field::new(at("cluster.insecure-skip-tls-verify"), true, none()),
        Field::new(at("cluster.certificate-authority"), none(), none()).refuses("/etc/ca.crt"),
        Field::new(at("cluster.certificate-authority-data"), authority("one"), authority("two"))
            .refuses("%"),
        Field::new(at("cluster.proxy-url"), "http://10.1.0.1:3128", "socks5://10.1.0.2:1080")
            .refuses("ftp://10.1.0.3"),
        Field::new(at("cluster.extensions"), extension(exec, "s-2"), extension(exec, "s-3"))
            .refuses(extension("another", "s-2")),
        Field::new(at("cluster.extensions[].name"), none(), none()).refuses("another"),
        Field::new(config, json!({"clusterName": "s-2"}), json!({"clusterName": "s-3"}))
            .refuses(json!({})),
    ]
}

/// What the extension of an access provider with a kubeconfig says, which has no schema.
fn of_kubeconfig() -> Vec<Field> {
    let at =
        |rest: &str| -> &'static str { format!("object.status.accessProviders[].{rest}").leak() };
    let config = |rest: &str| at(&format!("cluster.extensions[].extension.{rest}"));
    let none = || Value::Null;
    let fields = [
        Field::new(config("name"), "s-2", "s-3").refuses("No Name"),
        Field::new(config("key"), none(), none()).refuses("ca.crt"),
        Field::new(config("context"), none(), none()).refuses("two"),
        Field::new(config("namespace"), none(), none()).refuses("other"),
    ];
    let kubeconfig = json!({"name": "s-1", "key": "value"});
    fields
        .map(|it| {
            let it = it.given(at("name"), "kubeconfig-secretreader");
            it.given(at("cluster.extensions[].extension"), kubeconfig.clone())
        })
        .into()
}

#[test]
fn a_field_of_a_cluster_profile_that_is_changed_or_reverted_leaves_no_trace() {
    let objects = json!({"object": crate::cluster_profile::testing::sent(|_| {})});
    let fields = of_profile();
    let exceptions = [
        ("spec.displayName", OF_PEOPLE),
        (
            "status.accessProviders[].cluster.disable-compression",
            "no answer to a probe is compressed",
        ),
    ];
    let profile = Crd::read("tests/cluster-inventory-api/clusterprofiles.yaml");
    let roots = ["spec", "status.accessProviders[]"];
    let others = profile.is_complete(&roots, "object", &fields, &exceptions);
    follows::<ClusterProfiles>(&objects, &[fields, of_kubeconfig()].concat(), others);
}

#[test]
fn a_field_of_a_cluster_of_cluster_api_that_is_changed_or_reverted_leaves_no_trace() {
    let objects = json!({"object": ClusterApi::object("u", 1, 1, "")});
    let fields = [
        Field::new("object.spec.paused", true, Value::Null),
        Field::new("object.spec.controlPlaneEndpoint.host", "10.0.0.2", "fd00::1"),
        Field::new("object.spec.controlPlaneEndpoint.port", 443, 8443),
    ];
    let of_core = "a controller of Clusters reads it, no probe needs it";
    let exceptions =
        ["clusterNetwork", "controlPlaneRef", "infrastructureRef", "availabilityGates", "topology"];
    let exceptions = exceptions.map(|name| format!("spec.{name}"));
    let exceptions: Vec<_> = exceptions.iter().map(|it| (&**it, of_core)).collect();
    let cluster = Crd::read("config/crd/cluster.x-k8s.io_clusters.yaml");
    let others = cluster.is_complete(&["spec"], "object", &fields, &exceptions);
    follows::<ClusterApi>(&objects, &fields, others);
}
