//! A manager that is cut off from its members and from its reference endpoints, and one whose members are cut off while
//! the references answer. The cut is a forwarder between the manager and them.

use std::sync::Arc;

use serde_json::json;
use tests::member::{Account, member};
use tests::poll::poll;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::kubefed::secret;
use crate::scene::{Conditions, Scene};

const MEMBERS: usize = 20;

/// Forwards connections from many ports to one address, until it is cut.
pub(crate) struct Forwarder {
    pub(crate) ports: Vec<u16>,
    is_cut: Arc<watch::Sender<bool>>,
    _stop: DropGuard,
}

impl Forwarder {
    pub(crate) async fn start(ports: usize, to: String) -> Self {
        let (stop, is_cut) = (CancellationToken::new(), Arc::new(watch::Sender::new(false)));
        let mut bound = Vec::new();
        for _ in 0..ports {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            bound.push(listener.local_addr().unwrap().port());
            let (ended, cut, to) = (stop.clone(), is_cut.subscribe(), to.clone());
            tokio::spawn(ended.run_until_cancelled_owned(accept(listener, cut, to)));
        }
        Self { ports: bound, is_cut, _stop: stop.drop_guard() }
    }

    /// Closes all connections, and new ones before a byte passes, or ends that.
    pub(crate) fn cut(&self, cut: bool) {
        self.is_cut.send_replace(cut);
    }
}

async fn accept(listener: TcpListener, cut: watch::Receiver<bool>, to: String) {
    while let Ok((near, _)) = listener.accept().await {
        let (mut cut, to) = (cut.clone(), to.clone());
        tokio::spawn(async move {
            tokio::select! {
                biased;
                // Dropping the connection closes it.
                _ = cut.wait_for(|cut| *cut) => {}
                () = forward(near, &to) => {}
            }
        });
    }
}

async fn forward(mut near: TcpStream, to: &str) {
    let Ok(mut far) = TcpStream::connect(to).await else { return };
    drop(copy_bidirectional(&mut near, &mut far).await);
}

/// A scene with the members behind the forwarder, all ready, and these reference endpoints.
async fn scene(forwarder: &Forwarder, references: &[String], secret: &serde_json::Value) -> Scene {
    let endpoints = references.join(",");
    let scene = Scene::set_with(&[
        &format!("--cluster-health-guard-endpoints={endpoints}"),
        "--cluster-health-guard-interval=1s",
        "--cluster-health-guard-timeout=900ms",
        "--cluster-health-guard-hold=3s",
        // Where events about the replica go.
        "--cluster-health-shards-namespace=kube-federation-system",
    ])
    .await;
    scene.create_secret("one", secret).await;
    for (port, number) in forwarder.ports.iter().zip(0..MEMBERS) {
        let endpoint = format!("https://127.0.0.1:{port}");
        let spec = json!({"apiEndpoint": endpoint, "secretRef": {"name": "one"}});
        scene.create_cluster(&name(number), &spec).await;
    }
    all(&scene, "ready", Conditions::is_ready).await;
    scene
}

fn name(number: usize) -> String {
    format!("member-{number}")
}

async fn all(scene: &Scene, what: &str, wanted: fn(&Conditions) -> bool) {
    for number in 0..MEMBERS {
        scene.until(&name(number), what, wanted).await;
    }
}

fn is_partition(conditions: &Conditions) -> bool {
    conditions.states() == ("Unknown".into(), "Unknown".into(), "HubPartition".into())
}

/// rule:our-outage-is-not-theirs
#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_manager_that_is_cut_off_are_unknown_and_never_offline() {
    let member = member().await;
    let account = Account::of(&member).await;
    let address = member.url().trim_start_matches("https://").to_owned();
    let members = Forwarder::start(MEMBERS, address.clone()).await;
    let references = Forwarder::start(2, address).await;
    let named = references.ports.iter().map(|port| format!("https://127.0.0.1:{port}"));
    let named = named.collect::<Vec<_>>();
    let scene = scene(&members, &named, &secret(&member, &account.token)).await;

    references.cut(true);
    members.cut(true);
    all(&scene, "unknown for the partition", is_partition).await;
    references.cut(false);
    members.cut(false);
    all(&scene, "ready again", Conditions::is_ready).await;
    let events = poll("the end of the partition is told", async || {
        let events = scene.kubectl("get events -A");
        events.contains("HubPartitionEnded").then_some(events)
    })
    .await;
    assert!(!events.contains("ClusterOffline"), "{events}");
}

/// rule:our-outage-is-not-theirs
#[tokio::test(flavor = "multi_thread")]
async fn members_that_are_cut_off_while_the_references_answer_are_offline() {
    let member = member().await;
    let account = Account::of(&member).await;
    let address = member.url().trim_start_matches("https://").to_owned();
    let members = Forwarder::start(MEMBERS, address).await;
    let scene = scene(&members, &[member.url().to_owned()], &secret(&member, &account.token)).await;

    members.cut(true);
    all(&scene, "offline", Conditions::is_offline).await;
    members.cut(false);
    all(&scene, "ready again", Conditions::is_ready).await;
    assert!(!scene.kubectl("get events -A").contains("HubPartition"));
}
