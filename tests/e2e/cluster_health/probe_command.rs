//! `infra-controller-manager probe`, as a person at a terminal uses it.

use std::process::{Command, Output};

use serde_json::Value;
use tests::member::member;
use tests::programs::product;

fn probe(arguments: &[&str]) -> Output {
    Command::new(product()).arg("probe").args(arguments).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_told_as_well_or_as_what_is_wrong_with_it_and_by_the_exit_code() {
    let mut plane = member().await;
    let kubeconfig = plane.admin_kubeconfig().display().to_string();
    let kubeconfig = format!("--kubeconfig={kubeconfig}");
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

    // Nobody vouches for it without its CA.
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
