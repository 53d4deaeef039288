//! Readiness of the process while the API server is unreachable.

use std::path::PathBuf;
use std::time::Duration;

use tests::{ControlPlane, Match, Process, ports};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::scene::{Scene, launch, until_readyz};

const ARGS: &str = "--use-service-account-credentials=true";

/// An address of the API server that refuses connections until it is opened.
struct Door {
    port: u16,
    server: String,
    kubeconfig: PathBuf,
}

impl Door {
    fn closed(plane: &ControlPlane) -> Self {
        let port = ports::free_port();
        let server = plane.url().strip_prefix("https://").unwrap().to_owned();
        let direct = std::fs::read_to_string(plane.manager_kubeconfig()).unwrap();
        let kubeconfig = plane.dir().join(format!("door-{port}.kubeconfig"));
        let here = direct.replace(plane.url(), &format!("https://127.0.0.1:{port}"));
        std::fs::write(&kubeconfig, here).unwrap();
        Self { port, server, kubeconfig }
    }

    async fn open(self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut far = TcpStream::connect(&self.server).await.unwrap();
                tokio::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
            }
        });
    }
}

/// Alive, not ready, and waiting for the API server rather than giving up.
async fn waits_for_the_server(manager: &Process) {
    until_readyz(manager, 500).await;
    // Stock without leader election gives up after 10 s; twice that is not worth the time here.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(manager.is_running());
    let (status, body) = manager.get("/readyz").await.unwrap();
    assert_eq!(status, 500, "{body}");
    assert!(body.contains("[-]apiserver-reachable failed: reason withheld"), "{body}");
    assert_eq!(manager.get("/livez").await.unwrap(), (200, "ok".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_connections_at_start_is_waited_for_without_leader_election() {
    let scene = Scene::set().await;
    let door = Door::closed(&scene.cluster);
    let manager = Process::with_kubeconfig(&door.kubeconfig)
        .args(["--allocate-node-cidrs=true", "--cluster-cidr=10.0.0.0/12"])
        .args(["--leader-elect=false", ARGS])
        .start();
    waits_for_the_server(&manager).await;
    door.open().await;
    scene.serves("a").await;
    until_readyz(&manager, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_at_start_is_waited_for_with_leader_election() {
    let scene = Scene::set().await;
    scene.proxy.freeze();
    let manager = launch(&scene.proxy, ARGS);
    waits_for_the_server(&manager).await;
    scene.proxy.thaw();
    scene.serves("a").await;
    until_readyz(&manager, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readyz_fails_and_livez_stays_while_the_server_hangs() {
    let scene = Scene::set().await;
    let manager = scene.start(&format!("--leader-elect=false {ARGS}")).await;
    until_readyz(&manager, 200).await;
    scene.proxy.freeze();
    let body = until_readyz(&manager, 500).await;
    assert!(body.contains("[-]apiserver-reachable failed: reason withheld"), "{body}");
    assert!(body.contains("[+]informer-sync ok"), "the cache is as good as before: {body}");
    assert_eq!(manager.get("/livez").await.unwrap(), (200, "ok".into()));
    assert_eq!(manager.get("/healthz").await.unwrap(), (200, "ok".into()));
    assert!(manager.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_not_ready_before_the_first_list_is_complete() {
    let scene = Scene::set().await;
    let hold = scene.proxy.on(Match::node_lists()).hold();
    let manager = launch(&scene.proxy, &format!("--leader-elect=false {ARGS}"));
    hold.arrived(1).await;
    let body = until_readyz(&manager, 500).await;
    assert!(body.contains("[-]informer-sync failed: reason withheld"), "{body}");
    assert_eq!(manager.get("/livez").await.unwrap().0, 200);
    hold.release();
    until_readyz(&manager, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_the_signal_on_it_is_not_ready_but_alive() {
    let scene = Scene::set().await;
    let manager = scene.start(&format!("--leader-elect=false {ARGS}")).await;
    until_readyz(&manager, 200).await;
    let hold = scene.proxy.on(Match::node_patches()).hold();
    tests::mk_node("a").create(&scene.client).await;
    hold.arrived(1).await;
    manager.terminate();
    let body = until_readyz(&manager, 500).await;
    assert!(body.contains("[-]shutdown failed: reason withheld"), "{body}");
    assert_eq!(manager.get("/livez").await.unwrap(), (200, "ok".into()));
    hold.release();
    assert!(manager.exit(crate::scene::AT_ONCE).await.success());
}
