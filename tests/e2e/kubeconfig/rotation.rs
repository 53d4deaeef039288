//! Files that are replaced while the process runs take effect, and refused credentials are
//! reported.

use std::fs;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::json;
use tests::control_plane::{ADMIN_GROUP, ControlPlane, Identity, Options};
use tests::temp_dir::TempDir;
use tests::{mk_node, poll};
use tokio::time::{Instant, sleep, sleep_until};

use crate::forward::Forward;
use crate::scene::{SHORT_LEASE, Scene, launch};

const DAY: Duration = Duration::from_secs(86_400);
/// Enough for a start on a busy machine.
const SHORT_LIFE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_replaced_before_its_end_costs_neither_leader_nor_standby() {
    let scene = Scene::set().await;
    let write = |identity: &Identity| {
        let chain = scene.file("client.crt", &identity.certificate_pem);
        (chain, scene.file("client.key", &identity.key_pem))
    };
    let made = Instant::now();
    let (chain, key) = write(&scene.certificate(SHORT_LIFE));
    let user = json!({"client-certificate": chain, "client-key": key});
    let kubeconfig = scene.kubeconfig(&scene.server(), &user);
    let leader = launch(&kubeconfig, SHORT_LEASE).start();
    leader.line("Controller starting...").await;
    let standby = launch(&kubeconfig, SHORT_LEASE).start();
    standby.line("New leader elected").await;
    write(&scene.certificate(DAY));
    // The life of a certificate is real time; a while longer, for renewals with the new one.
    sleep_until(made + SHORT_LIFE + Duration::from_secs(3)).await;
    assert!(leader.is_running() && standby.is_running());
    assert_eq!(leader.get("/readyz").await.unwrap().0, 200);
    assert_eq!(standby.get("/readyz").await.unwrap().0, 200);
    scene.serves("a").await;
    leader.kill();
    standby.line("Controller starting...").await;
    scene.serves("b").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_whose_certificate_has_ended_is_not_ready_and_says_so() {
    let scene = Scene::set().await;
    // Another process leads.
    let leading =
        scene.file("leading", &fs::read_to_string(scene.cluster.admin_kubeconfig()).unwrap());
    let leader = launch(leading.as_ref(), "").start();
    leader.line("Controller starting...").await;
    let Identity { certificate_pem, key_pem, .. } = scene.certificate(SHORT_LIFE);
    let chain = scene.file("client.crt", &certificate_pem);
    let key = scene.file("client.key", &key_pem);
    let user = json!({"client-certificate": chain, "client-key": key});
    let standby = launch(&scene.kubeconfig(&scene.server(), &user), "").start();
    let readyz = |wanted: u16| {
        let standby = &standby;
        async move || standby.get("/readyz").await.ok().filter(|(code, _)| *code == wanted)
    };
    poll("the standby is ready", readyz(200)).await;
    let (_, body) = poll("the standby is not ready", readyz(500)).await;
    assert!(body.contains("[-]apiserver-reachable"), "{body}");
    let line = standby.line("refuses requests that this process needs").await;
    assert!(line.contains("401") && line.contains("renew the credentials"), "{line}");

    let Identity { certificate_pem, key_pem, .. } = scene.certificate(DAY);
    scene.file("client.crt", &certificate_pem);
    scene.file("client.key", &key_pem);
    poll("the standby is ready again", readyz(200)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kubeconfig_itself_may_be_replaced() {
    let scene = Scene::set().await;
    let user = |life| {
        let Identity { certificate_pem, key_pem, .. } = scene.certificate(life);
        json!({
            "client-certificate-data": crate::scene::base64(&certificate_pem),
            "client-key-data": crate::scene::base64(&key_pem),
        })
    };
    let made = Instant::now();
    let kubeconfig = scene.kubeconfig(&scene.server(), &user(SHORT_LIFE));
    let manager = launch(&kubeconfig, SHORT_LEASE).start();
    manager.line("Controller starting...").await;
    scene.kubeconfig(&scene.server(), &user(DAY));
    manager.line("Client credentials have changed").await;
    sleep_until(made + SHORT_LIFE + Duration::from_secs(3)).await;
    assert!(manager.is_running());
    scene.serves("a").await;
}

/// A certificate as `openssl req -x509` makes it: authority and server in one.
fn authority_and_server() -> (String, String) {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_ca_is_used_even_if_it_is_the_servers_own_certificate() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let mut forward = Forward::to("127.0.0.1", plane.url()).await;
    let dir = TempDir::new("rotated-ca").unwrap();
    let old = fs::read_to_string(plane.dir().join("ca.crt")).unwrap();
    let (new, new_key) = authority_and_server();
    let bundle = dir.join("ca.crt");
    fs::write(&bundle, &old).unwrap();

    // The administrator's kubeconfig, with the CA in a file.
    let mut file = Kubeconfig::read_from(plane.admin_kubeconfig()).unwrap();
    let cluster = file.clusters[0].cluster.as_mut().unwrap();
    cluster.server = Some(forward.url());
    cluster.certificate_authority_data = None;
    cluster.certificate_authority = Some(bundle.display().to_string());
    let kubeconfig = dir.join("kubeconfig");
    fs::write(&kubeconfig, serde_json::to_string(&exposed(&file)).unwrap()).unwrap();
    let manager = launch(&kubeconfig, SHORT_LEASE).start();
    manager.line("Controller starting...").await;

    // First both CAs are trusted, then the server uses a certificate of the new CA.
    fs::write(&bundle, format!("{old}{new}")).unwrap();
    manager.line("Client credentials have changed").await;
    fs::write(plane.dir().join("server.key"), &new_key).unwrap();
    fs::write(plane.dir().join("server.crt"), &new).unwrap();
    let insecure = insecure_client(&plane).await;
    poll("the server shows its new certificate", async || {
        shows(&forward.url(), &new).await.then_some(())
    })
    .await;
    forward.cut().await;
    sleep(Duration::from_secs(7)).await; // longer than a lease that could not be renewed
    assert!(manager.is_running());
    mk_node("a").create(&insecure).await;
    let nodes = Api::<Node>::all(insecure);
    poll("the Node has its CIDR", async || nodes.get("a").await.unwrap().spec?.pod_cidr).await;
}

/// The file as JSON, with its secrets, which the type itself writes out.
fn exposed(file: &Kubeconfig) -> serde_json::Value {
    serde_json::to_value(file).unwrap()
}

async fn insecure_client(plane: &ControlPlane) -> kube::Client {
    let path = plane.kubeconfig("admin", &[ADMIN_GROUP]).unwrap();
    let mut file = Kubeconfig::read_from(path).unwrap();
    let cluster = file.clusters[0].cluster.as_mut().unwrap();
    cluster.certificate_authority_data = None;
    cluster.insecure_skip_tls_verify = Some(true);
    let config =
        kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

/// Whether a connection that trusts this certificate alone can be made.
async fn shows(url: &str, pem: &str) -> bool {
    let configs = transport::TlsConfigs::default();
    let trust = transport::Trust::from_pem(pem.as_bytes()).unwrap();
    let endpoint =
        transport::Endpoint::new(&configs, &trust, None, transport::Protocol::Http1).unwrap();
    let wire = transport::open(&endpoint);
    let request = http::Request::get(format!("{url}/livez"));
    let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    wire.send(request).await.is_ok()
}
