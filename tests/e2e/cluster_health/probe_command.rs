//! `infra-controller-manager probe`, as a person at a terminal uses it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::kubectl::{FEDERATION, hub};
use tests::member::{Account, member};
use tests::planted::Planted;
use tests::programs::product;

use crate::kubefed::{secret, spec};

pub(crate) fn probe(arguments: &[&str]) -> Output {
    Command::new(product()).arg("probe").args(arguments).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn probe_prints_the_result_and_sets_the_exit_code() {
    let mut plane = member().await;
    let kubeconfig = plane.admin_kubeconfig();
    let planted = planted_in(&kubeconfig);
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    let probe = |arguments: &[&str]| {
        let output = probe(arguments);
        assert_shows_nothing(&planted, &output);
        output
    };
    let well = probe(&[&kubeconfig, "--authenticated-read", "-ojson"]);
    let found: Value = serde_json::from_slice(&well.stdout).unwrap();
    assert!(well.status.success(), "{found}");
    assert_eq!((&found["verdict"], &found["code"]), (&"ok".into(), &Value::Null));
    let paths: Vec<_> =
        found["attempts"].as_array().unwrap().iter().map(|it| it["path"].clone()).collect();
    assert_eq!(paths, ["/readyz", "/api/v1/namespaces"]);
    assert!(found["attempts"][0]["phases"]["tls"].as_f64().unwrap() > 0.0);
    assert!(
        found["serverCertificateExpires"].is_string() && found["credentialExpires"].is_string()
    );

    let text = String::from_utf8(probe(&[&kubeconfig]).stdout).unwrap();
    assert!(
        text.contains("/readyz  new") && text.contains("ok: /readyz responded with ok"),
        "{text}"
    );

    // Without its CA the certificate of the server is not trusted.
    let stranger = probe(&["--server", plane.url(), "-ojson"]);
    let found: Value = serde_json::from_slice(&stranger.stdout).unwrap();
    assert_eq!((stranger.status.code(), &found["code"]), (Some(1), &"tls-verify".into()));

    plane.stop_api_server().await;
    let gone = probe(&[&kubeconfig, "-ojson"]);
    let found: Value = serde_json::from_slice(&gone.stdout).unwrap();
    assert_eq!((gone.status.code(), &found["code"]), (Some(1), &"connect-refused".into()));
    assert_eq!(found["attempts"].as_array().unwrap().len(), 3);
    plane.start_api_server().await.unwrap();

    let nowhere = probe(&["--kubeconfig=/nowhere"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nowhere.stderr).starts_with("error: "));
}

/// The client's key, as a kubeconfig holds it and in PEM.
fn planted_in(kubeconfig: &Path) -> Planted {
    let text = std::fs::read_to_string(kubeconfig).unwrap();
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    let encoded = config["users"][0]["user"]["client-key-data"].as_str().unwrap();
    let key = STANDARD.decode(encoded).unwrap();
    let planted = Planted::default();
    planted.plant(std::str::from_utf8(&key).unwrap());
    planted
}

fn assert_shows_nothing(planted: &Planted, output: &Output) {
    for shown in [&output.stdout, &output.stderr] {
        let found = planted.found_in(&String::from_utf8_lossy(shown));
        assert_eq!(found, None, "a secret is shown");
    }
}

/// Runs `probe` with this manifest on standard input.
fn probe_manifest(arguments: &[&str], manifest: &str) -> Output {
    let mut command = Command::new(product());
    command.args(["probe", "-f", "-", "-ojson"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Verdict and code.
fn verdict_and_code(output: &Output) -> (Value, Value) {
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    (found["verdict"].clone(), found["code"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_probed_by_its_object_in_the_management_api_or_in_a_manifest() {
    let (hub, member) = futures::join!(hub(), member());
    let account = Account::of(&member).await;
    account.empower().await;
    let planted = planted_in(&hub.plane.admin_kubeconfig());
    planted.plant(&account.token);
    let metadata = |name: &str| json!({"name": name, "namespace": FEDERATION});
    let federated = |name: &str, secret: &str| {
        json!({"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
            "metadata": metadata(name), "spec": spec(&member, secret)})
    };
    let data = secret(&member, &account.token);
    let mut token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata("one"),
        "stringData": data});
    token["metadata"]["labels"] = json!({"infra-controller-manager/send-to-member": "true"});
    let (host, port) = member.url().trim_start_matches("https://").rsplit_once(':').unwrap();
    let port: u16 = port.parse().unwrap();
    let address = json!([{"type": "Real", "host": host, "port": port}]);
    let imported = json!({"apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
        "metadata": {"name": "cls-1"},
        "spec": {"tenantID": "t", "type": "Imported", "addresses": address}});
    let credential = json!({"apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
        "metadata": {"name": "cc-1"}, "tenantID": "t", "clusterName": "cls-1",
        "secretRef": {"namespace": FEDERATION, "name": "one"}});
    let stored =
        [federated("one", "one"), federated("bare", "none"), token.clone(), imported, credential];
    hub.create_all(&stored);
    let kubeconfig = format!("--kubeconfig={}", hub.plane.admin_kubeconfig().display());
    let by_object = |object: &str| {
        let text = probe(&[object, &kubeconfig]);
        assert_shows_nothing(&planted, &text);
        let output = probe(&[object, &kubeconfig, "-ojson"]);
        assert_shows_nothing(&planted, &output);
        output
    };

    let (ok, none) = (json!("ok"), Value::Null);
    assert_eq!(verdict_and_code(&by_object("kubefedcluster/one")), (ok.clone(), none.clone()));
    let read = by_object("cluster/cls-1");
    assert_eq!(verdict_and_code(&read), (ok.clone(), none.clone()));
    let found: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(found["attempts"][1]["path"], "/api/v1/namespaces");

    let bare = by_object("kubefedcluster/bare");
    assert_eq!(verdict_and_code(&bare), (json!("config"), json!("secret-missing")));
    assert_eq!(bare.status.code(), Some(1));
    let missing = by_object("kubefedcluster/missing");
    let error = String::from_utf8_lossy(&missing.stderr);
    assert!(error.starts_with("error: cannot find KubeFedCluster"), "{error}");

    let by_manifest = |arguments: &[&str], manifest: &str| {
        let output = probe_manifest(arguments, manifest);
        assert_shows_nothing(&planted, &output);
        verdict_and_code(&output)
    };
    let whole = format!("{}\n---\n{token}\n", federated("new", "one"));
    assert_eq!(by_manifest(&[], &whole), (ok.clone(), none.clone()));
    // What is not in the manifest is there already.
    let half = federated("new", "one").to_string();
    assert_eq!(by_manifest(&[], &half), (json!("config"), json!("secret-missing")));
    assert_eq!(by_manifest(&[&kubeconfig], &half), (ok, none));
}
