//! The forms in which a kubeconfig can name a user and a server.

use std::time::Duration;

use client::{ClientOptions, Clients, Profile, RequestMetrics};
use http::Request;
use kube::client::Body;
use prometheus::Registry;
use serde_json::json;
use tests::control_plane::Identity;

use crate::forward::Forward;
use crate::scene::{Scene, base64, launch};

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test(flavor = "multi_thread")]
async fn a_token_works() {
    let scene = Scene::set().await;
    let token = scene.token().await;
    scene.works(&scene.server(), &json!({"token": token})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_file_works_with_a_path_relative_to_the_kubeconfig() {
    let scene = Scene::set().await;
    scene.file("token", &format!("{}\n", scene.token().await));
    scene.works(&scene.server(), &json!({"tokenFile": "token"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_certificate_and_its_key_work() {
    let scene = Scene::set().await;
    let Identity { certificate_pem, key_pem, .. } = scene.certificate(DAY);
    let chain = scene.file("client.crt", &certificate_pem);
    let key = scene.file("client.key", &key_pem);
    scene.works(&scene.server(), &json!({"client-certificate": chain, "client-key": key})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_a_certificate_and_its_key_works() {
    let scene = Scene::set().await;
    let Identity { certificate_pem, key_pem, .. } = scene.certificate(DAY);
    let ca = std::fs::read_to_string(scene.ca()).unwrap();
    let server = json!({"server": scene.cluster.url(), "certificate-authority-data": base64(&ca)});
    let user = json!({
        "client-certificate-data": base64(&certificate_pem),
        "client-key-data": base64(&key_pem),
    });
    scene.works(&server, &user).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_under_another_address_works_by_its_tls_server_name_and_not_without() {
    let scene = Scene::set().await;
    let forward = Forward::at("127.0.0.2", &scene.cluster).await;
    let user = json!({"token": scene.token().await});
    let mut server = json!({"server": forward.url(), "certificate-authority": scene.ca()});
    let refused = launch(&scene.kubeconfig(&server, &user), "").start();
    let line = refused.line("tls-server-name").await;
    assert!(line.contains("kubernetes.default.svc"), "{line}");
    refused.kill();

    server["tls-server-name"] = json!("kubernetes.default.svc");
    scene.works(&server, &user).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_verified_works_also_under_a_bare_master() {
    let scene = Scene::set().await;
    let forward = Forward::at("127.0.0.2", &scene.cluster).await;
    let user = json!({"token": scene.token().await});
    let server = json!({"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": true});
    let kubeconfig = scene.kubeconfig(&server, &user);
    // Without a scheme: https, since TLS is configured.
    let master = format!("--master={}", forward.url().strip_prefix("https://").unwrap());
    let manager = launch(&kubeconfig, &master).start();
    manager.line("Controller starting...").await;
    scene.serves("a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_account_of_a_pod_works_and_its_token_is_followed() {
    let scene = Scene::set().await;
    scene.ca();
    scene.file("token", "expired");
    let registry = Registry::new();
    let options = ClientOptions {
        kubeconfig: None,
        master: None,
        product: "test".into(),
        version: "v0".into(),
        commit: "0".into(),
    };
    let metrics = RequestMetrics::new(&registry).unwrap();
    let (_, port) = scene.cluster.url().rsplit_once(':').unwrap();
    // The folder that the kubelet mounts is the same on every machine, so not the test's.
    let clients = Clients::of_pod(&scene.dir, "127.0.0.1", port, &options, &metrics).await.unwrap();
    let client = clients.build(Profile::root("test")).unwrap();
    let ask = async || {
        let request = Request::get("/api/v1/nodes").body(Body::empty()).unwrap();
        let answer = client::answer(&client, request, Duration::from_secs(10)).await.unwrap();
        (answer.status == 200).then_some(())
    };
    assert_eq!(ask().await, None, "the token is not good yet");
    scene.file("token", &scene.token().await);
    tests::poll("the new token is used", ask).await;
}
