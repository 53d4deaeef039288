//! Exec plugins: programs that print our credentials.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tests::control_plane::Identity;

use crate::scene::{SHORT_LEASE, Scene, launch};

const V1: &str = "client.authentication.k8s.io/v1";

/// Output of an exec plugin.
fn credential(status: &Value) -> String {
    json!({"apiVersion": V1, "kind": "ExecCredential", "status": status}).to_string()
}

fn exec(command: &str) -> Value {
    json!({"exec": {"apiVersion": V1, "command": command, "interactiveMode": "Never"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_gives_a_token_works_and_runs_once_for_all_clients() {
    let scene = Scene::set().await;
    let status = json!({"token": scene.token().await});
    let answer = scene.file("answer", &credential(&status));
    let runs = scene.file("runs", "");
    let plugin = scene.program("login", &format!("echo run >>{runs}\ncat {answer}"));
    let manager = scene.leads(&scene.server(), &exec(&plugin)).await;
    scene.serves("a").await;
    assert_eq!(fs::read_to_string(&runs).unwrap().lines().count(), 1);
    let token = status["token"].as_str().unwrap();
    assert!(!manager.lines().join("\n").contains(token), "the token is in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_gives_a_certificate_works_and_is_run_again_before_its_end() {
    let scene = Scene::set().await;
    let Identity { certificate_pem, key_pem, .. } = scene.certificate(Duration::from_secs(86_400));
    let end = k8s_openapi::jiff::Timestamp::now() + Duration::from_secs(15);
    let status = json!({
        "clientCertificateData": certificate_pem, "clientKeyData": key_pem,
        "expirationTimestamp": end.to_string(),
    });
    let answer = scene.file("answer", &credential(&status));
    let runs = scene.file("runs", "");
    let plugin = scene.program("login", &format!("echo run >>{runs}\ncat {answer}"));
    scene.works(&scene.server(), &exec(&plugin)).await;
    let manager = scene.leads(&scene.server(), &exec(&plugin)).await;
    let began = fs::read_to_string(&runs).unwrap().lines().count();
    tests::eventually("the plugin is run again", || {
        fs::read_to_string(&runs).unwrap().lines().count() > began
    })
    .await;
    assert!(manager.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_hangs_and_prints_secrets_costs_neither_the_lease_nor_the_secret() {
    let scene = Scene::set().await;
    let status = json!({
        "token": scene.token().await,
        "expirationTimestamp": (k8s_openapi::jiff::Timestamp::now()
            + Duration::from_secs(10)).to_string(),
    });
    let answer = scene.file("answer", &credential(&status));
    let plugin = scene.program("login", &format!("cat {answer}"));
    let kubeconfig = scene.kubeconfig(&scene.server(), &exec(&plugin));
    let manager = launch(&kubeconfig, SHORT_LEASE).start();
    manager.line("Controller starting...").await;
    scene.program("login", "echo HUSH; echo HUSH >&2; sleep 6; exit 7");
    let line = manager.line("exec plugin cannot be used").await;
    assert!(line.contains("exit status: 7"), "{line}");
    // It still leads, with a lease of 6 s, and works on what the plugin gave before.
    scene.serves("a").await;
    assert!(manager.is_running());
    assert!(!manager.lines().join("\n").contains("HUSH"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_not_there_ends_the_start_with_its_name() {
    let scene = Scene::set().await;
    let kubeconfig = scene.kubeconfig(&scene.server(), &exec("./no-such-login"));
    let manager = launch(&kubeconfig, "").start();
    let status = manager.exit(tests::PATIENCE).await;
    assert_eq!(status.code(), Some(1));
    let lines = manager.lines().join("\n");
    assert!(lines.contains("no-such-login") && lines.contains("--kubeconfig"), "{lines}");
}
